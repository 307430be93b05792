//! Rows of a chunk that the stripe could not answer for: native conditions are run row by row, and columns
//! get the type that they have now.

use std::sync::Arc;

use pgrx::pg_sys::Datum;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use query::Batch;
use stripe::scan::{ColumnOrigin, LoadedChunk};

use super::read::VectorScan;
use crate::convert::ColumnWriter;
use crate::host::slots;
use crate::scan::datums;
use crate::scan::fill_batch::Use;
use crate::scan::table::Column;

impl VectorScan {
    /// The selected rows of a chunk that pass every native condition.
    ///
    /// # Safety
    /// Called under guard, on the main thread, while the node is initialised.
    pub(super) unsafe fn checked(&mut self, mut loaded: LoadedChunk) -> Batch {
        let passed = match loaded.checks.is_empty() {
            true => None,
            // SAFETY: the caller's promise.
            false => Some(unsafe { self.passing_rows(&mut loaded) }),
        };
        for (origin, column) in loaded.origins.iter_mut().zip(&mut self.table.columns) {
            // SAFETY: the caller's promise.
            unsafe { as_of_today(column, origin) };
        }
        let batch = self.layout.batch(loaded);
        match passed {
            Some(rows) => batch.take(&rows),
            None => batch,
        }
    }

    /// Runs the native conditions that a chunk could not answer: which of the selected rows pass.
    unsafe fn passing_rows(&mut self, loaded: &mut LoadedChunk) -> Vec<u32> {
        let mut passed = Vec::new();
        let mut first = 0u32;
        let count = loaded.selection.len();
        let table = &mut self.table;
        let mut using = Use { hands_out: false, keep_position: false, direct: None, row_checks: &mut [] };
        // SAFETY: the node is initialised; the batch keeps every pointer readable for its rows. The guarded
        // loop owns nothing that an ERROR could skip, and the list has room for all that it adds.
        unsafe {
            while (first as usize) < count {
                table.fill_batch(loaded, &mut using);
                let end = table.batch.end;
                if end == 0 {
                    break;
                }
                passed.reserve(end);
                let (batch, slot, econtext) = (&table.batch, table.scan_slot, table.econtext);
                pg_guard_ffi_boundary(|| {
                    for at in 0..end {
                        slots::forget_row(econtext);
                        slots::clear(slot);
                        datums::fill(slot, &batch.checks, at);
                        slots::filled(slot, table.columns_in_scan_slot);
                        (*econtext).ecxt_scantuple = slot;
                        if batch.steps.iter().all(|step| slots::passes(step.state, econtext)) {
                            passed.push(first + at as u32);
                        }
                    }
                });
                first += end as u32;
            }
        }
        table.counters.rows_filtered += (count - passed.len()) as u64;
        passed
    }
}

/// Gives a vector the type that its column has now: one with the same bytes (integer to oid, say), or the
/// table would have been rewritten.
unsafe fn as_of_today(column: &mut Column, origin: &mut ColumnOrigin) {
    let (ColumnOrigin::Whole(vector) | ColumnOrigin::Taken(vector)) = origin else { return };
    if vector.logical == column.reader.kind().logical {
        return;
    }
    let mut writer = ColumnWriter::new(*column.reader.kind());
    let (mut values, mut nulls) = (vec![Datum::null(); vector.len()], vec![true; vector.len()]);
    column.reader.reset();
    column.reader.datums_in(vector, 0..vector.len(), &mut values, &mut nulls);
    // SAFETY: Datums of the column's type, alive until the reader is reset.
    unsafe { writer.push_datums(&values, &nulls) };
    *vector = Arc::new(writer.take());
}
