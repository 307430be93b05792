//! Rows of any plan node that the server's executor runs, as batches.
//!
//! Invariant: a row's values are copied before the next row is asked for, because the slot that holds them is the child's own.

use std::sync::Arc;

use pgrx::pg_sys::{self, PlanState, TupleTableSlot};
use query::{BATCH_ROWS, Batch, Host, Result, Source, Unit};

use crate::convert::{ColumnType, ColumnWriter};

/// An initialised plan node as a source.
pub struct Rows {
    child: *mut PlanState,
    writers: Vec<ColumnWriter>,
    ended: bool,
}

impl Rows {
    /// The rows of an initialised node.
    ///
    /// # Safety
    /// As `source::open`.
    pub unsafe fn open(child: *mut PlanState) -> Self {
        // SAFETY: the caller's promise; every initialised node knows its row type.
        let kinds = unsafe { ColumnType::of_all(pg_sys::ExecGetResultType(child)) };
        Self { child, writers: kinds.into_iter().map(ColumnWriter::new).collect(), ended: false }
    }

    /// The next row, its columns out of the tuple.
    unsafe fn next_row(&self) -> Option<*mut TupleTableSlot> {
        // SAFETY: the child is initialised.
        unsafe {
            let slot = pg_sys::ExecProcNode(self.child);
            if slot.is_null() || (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 {
                return None;
            }
            if i32::from((*slot).tts_nvalid) < (*(*slot).tts_tupleDescriptor).natts {
                pg_sys::slot_getallattrs(slot);
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
                for (index, writer) in self.writers.iter_mut().enumerate() {
                    writer.push(&[slot], index);
                }
                rows += 1;
            }
        }
        let columns = self.writers.iter_mut().map(|writer| Arc::new(writer.take())).collect();
        Ok((rows > 0).then(|| Box::new(Some(Batch::new(rows, columns))) as Box<dyn Unit>))
    }

    /// The child may be an index scan whose order the plan above relies on.
    fn is_ordered(&self) -> bool {
        true
    }
}
