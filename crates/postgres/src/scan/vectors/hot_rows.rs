//! Rows in heap pages as batches.

use std::sync::Arc;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, Datum};
use query::Batch;
use vector::Vector;

use super::read::VectorScan;
use crate::convert::ColumnWriter;
use crate::host::{error, slots};
use crate::scan::datums::Step;
use crate::storage::file::tid;

/// Hot rows taken at once, at most. All of them lie on one page.
const ROWS: usize = 64;

/// Hot rows on their way into columns. Their values point into their page. Two slots take turns: where a row
/// lies on another page than those before, the other slot still holds the pin of theirs.
#[derive(Default)]
pub(super) struct HotRows {
    slots: Vec<*mut pg_sys::TupleTableSlot>,
    /// The slot that the next row comes to.
    next: usize,
    /// Whether the row in the other slot was read, and not taken: it lies on the next page.
    is_waiting: bool,
    /// `ROWS` values of each wanted column, and which are NULL.
    values: Vec<Datum>,
    nulls: Vec<bool>,
}

impl HotRows {
    /// Forgets the row that waits: the scan begins again.
    pub const fn forget(&mut self) {
        self.is_waiting = false;
    }
}

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
        let attributes: Vec<usize> = writers.iter().map(|(attribute, _)| *attribute).collect();
        let mut rows = 0;
        let mut ended = false;
        while !ended && rows + ROWS <= query::BATCH_ROWS {
            pgrx::check_for_interrupts!();
            // SAFETY: as above.
            let found = unsafe { self.next_hot_rows(&attributes, &mut ended) }?;
            rows += found;
            let HotRows { values, nulls, .. } = &self.hot_rows;
            let each = values.chunks_exact(ROWS).zip(nulls.chunks_exact(ROWS));
            for ((_, writer), (values, nulls)) in writers.iter_mut().zip(each) {
                if let (Some(values), Some(nulls)) = (values.get(..found), nulls.get(..found)) {
                    // SAFETY: values of these columns, whose page is pinned.
                    unsafe { writer.push_datums(values, nulls) };
                }
            }
        }
        if ended {
            for &slot in &self.hot_rows.slots {
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
        if !self.hot_rows.slots.is_empty() {
            return;
        }
        // SAFETY: the caller's promise: the executor state is the node's.
        unsafe {
            let state = (*self.table.custom).ss.ps.state;
            let previous = pg_sys::MemoryContextSwitchTo((*state).es_query_cxt);
            let tables = &raw mut (*state).es_tupleTable;
            self.hot_rows.slots = (0..2).map(|_| pg_sys::table_slot_create(self.table.rel, tables)).collect();
            pg_sys::MemoryContextSwitchTo(previous);
        }
    }

    /// Takes the next hot rows that pass, of one page: how many. None: there is no scan of heap pages.
    ///
    /// # Safety
    /// As `hot_batch`, after `make_slots`.
    unsafe fn next_hot_rows(&mut self, attributes: &[usize], ended: &mut bool) -> Option<usize> {
        let hot = self.table.hot.as_ref()?;
        let (steps, econtext, columns) = (&self.table.hot_steps, self.table.econtext, self.table.hot_columns);
        let HotRows { slots, next, is_waiting, values, nulls } = &mut self.hot_rows;
        values.resize(attributes.len() * ROWS, Datum::null());
        nulls.resize(attributes.len() * ROWS, true);
        let &[one, other] = slots.as_slice() else { return None };
        let (mut found, mut block, mut seen, mut filtered) = (0, 0, 0, 0);
        // SAFETY: scan, slots and expressions belong to the initialised node; the closure owns nothing that
        // an ERROR could skip.
        unsafe {
            pg_guard_ffi_boundary(|| {
                while found < ROWS {
                    let slot = if *is_waiting == (*next == 0) { other } else { one };
                    if !std::mem::take(is_waiting) {
                        if !hot.next_into(slot) {
                            *ended = true;
                            break;
                        }
                        *next = 1 - *next;
                        slots::deform(slot, columns);
                        seen += 1;
                        let passes = passes(steps, econtext, slot);
                        filtered += u64::from(!passes);
                        if found > 0 && tid::block_of((*slot).tts_tid) != block {
                            // The next row would let go of the page of those that were taken.
                            *is_waiting = passes;
                            break;
                        }
                        if !passes {
                            continue;
                        }
                    }
                    block = tid::block_of((*slot).tts_tid);
                    let (from, from_nulls) = ((*slot).tts_values, (*slot).tts_isnull);
                    for (column, &attribute) in attributes.iter().enumerate() {
                        let at = column * ROWS + found;
                        if let (Some(value), Some(null)) = (values.get_mut(at), nulls.get_mut(at)) {
                            (*value, *null) = (*from.add(attribute), *from_nulls.add(attribute));
                        }
                    }
                    found += 1;
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
