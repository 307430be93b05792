//! Rows in heap pages as batches.

use std::sync::Arc;

use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use query::Batch;
use vector::Vector;

use super::read::VectorScan;
use crate::convert::ColumnWriter;
use crate::host::{error, slots};
use crate::scan::datums::Step;

/// Hot rows taken at once: each holds a pin on its page.
const SLOTS: usize = 64;

impl VectorScan {
    /// Hot rows that pass the native conditions; None when there are no more.
    ///
    /// # Safety
    /// Called under guard, on the main thread, while the node is initialised and started.
    pub(super) unsafe fn hot_batch(&mut self) -> Option<Batch> {
        // SAFETY: the caller's promise: the node has a slot table and its scan is open.
        unsafe { self.make_slots() };
        let mut writers: Vec<(usize, ColumnWriter)> = Vec::new();
        for column in self.request.columns().iter().filter_map(|&at| self.table.columns.get(at)) {
            writers.push((column.index, ColumnWriter::new(*column.reader.kind())));
        }
        let mut rows = 0;
        let mut ended = false;
        while !ended && rows + SLOTS <= query::BATCH_ROWS {
            pgrx::check_for_interrupts!();
            // SAFETY: as above.
            let found = unsafe { self.next_hot_rows(&mut ended) }?;
            rows += found;
            for (index, writer) in &mut writers {
                // SAFETY: these slots hold rows of the table.
                unsafe { writer.push(self.hot_slots.get(..found).unwrap_or_default(), *index) };
            }
        }
        if ended {
            for &slot in &self.hot_slots {
                // SAFETY: a slot of ours.
                unsafe { pg_sys::ExecClearTuple(slot) };
            }
            self.end_hot();
        }
        let mut columns: Vec<Arc<Vector>> =
            writers.iter_mut().map(|(_, writer)| Arc::new(writer.take())).collect();
        for (at, derive) in &self.derived {
            let place = self.request.columns().iter().position(|column| column == at);
            let Some(values) = place.and_then(|place| columns.get(place)) else { continue };
            match derive.of_vector(values.as_ref().clone()) {
                Ok(made) => columns.push(Arc::new(made)),
                Err(problem) => error::raise_plain(problem),
            }
        }
        (rows > 0 || !ended).then(|| Batch::new(rows, columns))
    }

    /// Makes the slots that hot rows lie in, once for all starts. They are released with the others of the
    /// executor state.
    ///
    /// # Safety
    /// As `hot_batch`.
    unsafe fn make_slots(&mut self) {
        if !self.hot_slots.is_empty() {
            return;
        }
        // SAFETY: the caller's promise: the executor state is the node's.
        unsafe {
            let state = (*self.table.custom).ss.ps.state;
            let previous = pg_sys::MemoryContextSwitchTo((*state).es_query_cxt);
            let tables = &raw mut (*state).es_tupleTable;
            self.hot_slots = (0..SLOTS).map(|_| pg_sys::table_slot_create(self.table.rel, tables)).collect();
            pg_sys::MemoryContextSwitchTo(previous);
        }
    }

    /// Fills the slots with the next hot rows that pass: how many. None: there is no scan of heap pages.
    ///
    /// # Safety
    /// As `hot_batch`, after `make_slots`.
    unsafe fn next_hot_rows(&mut self, ended: &mut bool) -> Option<usize> {
        let hot = self.table.hot.as_ref()?;
        let (steps, econtext, columns) = (&self.table.hot_steps, self.table.econtext, self.table.hot_columns);
        let free = self.hot_slots.as_slice();
        let (mut found, mut seen, mut filtered) = (0, 0, 0);
        // SAFETY: scan, slots and expressions belong to the initialised node; the closure owns nothing that
        // an ERROR could skip.
        unsafe {
            pg_guard_ffi_boundary(|| {
                while let Some(&slot) = free.get(found) {
                    if !hot.next_into(slot) {
                        *ended = true;
                        break;
                    }
                    slots::deform(slot, columns);
                    seen += 1;
                    if passes(steps, econtext, slot) {
                        found += 1;
                    } else {
                        filtered += 1;
                    }
                }
            });
        }
        self.table.hot_rows += seen;
        self.table.hot_filtered += filtered;
        Some(found)
    }
}

/// Whether a deformed row passes these conditions.
#[inline]
unsafe fn passes(
    steps: &[Step],
    econtext: *mut pg_sys::ExprContext,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: the caller's promise; conditions read what the slot has.
    unsafe {
        if steps.is_empty() {
            return true;
        }
        slots::forget_row(econtext);
        (*econtext).ecxt_scantuple = slot;
        steps.iter().all(|step| slots::passes(step.state, econtext))
    }
}
