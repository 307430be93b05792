//! Rows of any plan node that the server's executor runs, as batches.
//!
//! Invariant: a row's values are copied before the next row is asked for, because the slot that holds them is
//! the child's own.

use std::sync::Arc;

use pgrx::pg_sys::{self, PlanState, TupleTableSlot};
use query::{BATCH_ROWS, Batch, Host, Result, Source, Unit};
use vector::{Values, Vector};

use crate::convert::{ColumnType, ColumnWriter};

/// An initialised plan node as a source.
pub struct Rows {
    child: *mut PlanState,
    columns: Vec<Column>,
    /// Columns up to the last one that is read.
    deformed: i32,
    ended: bool,
}

enum Column {
    Read(ColumnWriter),
    /// Any value of the type.
    Unread(Vector),
}

impl Rows {
    /// The rows of an initialised node.
    ///
    /// # Safety
    /// As `source::open`.
    pub unsafe fn open(child: *mut PlanState) -> Self {
        // SAFETY: the caller's promise; every initialised node knows its row type.
        let kinds = unsafe { ColumnType::of_all(pg_sys::ExecGetResultType(child)) };
        let columns: Vec<_> = kinds.into_iter().map(|kind| Column::Read(ColumnWriter::new(kind))).collect();
        Self { child, deformed: columns.len() as i32, columns, ended: false }
    }

    /// The next row, its columns out of the tuple.
    unsafe fn next_row(&self) -> Option<*mut TupleTableSlot> {
        // SAFETY: the child is initialised.
        unsafe {
            let slot = pg_sys::ExecProcNode(self.child);
            if slot.is_null() || (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 {
                return None;
            }
            if i32::from((*slot).tts_nvalid) < self.deformed {
                pg_sys::slot_getsomeattrs_int(slot, self.deformed);
            }
            Some(slot)
        }
    }
}

impl Source for Rows {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        if self.ended {
            return Ok(None);
        }
        host.check_interrupts()?;
        let mut rows = 0;
        // SAFETY: the child is initialised and this is the main thread.
        unsafe {
            while rows < BATCH_ROWS {
                let Some(slot) = self.next_row() else {
                    self.ended = true;
                    break;
                };
                for (index, column) in self.columns.iter_mut().enumerate() {
                    if let Column::Read(writer) = column {
                        writer.push(&[slot], index);
                    }
                }
                rows += 1;
            }
        }
        let columns = self.columns.iter_mut().map(|column| {
            Arc::new(match column {
                Column::Read(writer) => writer.take(),
                Column::Unread(value) => {
                    Vector::new(value.logical, Values::Constant(Box::new(value.clone()), rows))
                }
            })
        });
        let columns = columns.collect();
        Ok((rows > 0).then(|| Box::new(Some(Batch::new(rows, columns))) as Box<dyn Unit>))
    }

    fn read_only(&mut self, columns: &[bool]) {
        for (column, _) in self.columns.iter_mut().zip(columns).filter(|(_, read)| !**read) {
            if let Column::Read(writer) = column {
                // SAFETY: NULL is a value of every type.
                unsafe { writer.push_value(pg_sys::Datum::null(), true) };
                *column = Column::Unread(writer.take());
            }
        }
        self.deformed = columns.iter().rposition(|&read| read).map_or(0, |last| last as i32 + 1);
    }

    /// The child may be an index scan whose order the plan above relies on.
    fn is_ordered(&self) -> bool {
        true
    }
}
