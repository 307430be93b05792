//! Rows in the order of an index, for CLUSTER.
//!
//! Called by `cluster` for hot rows, which keep their headers, and for each group of stripes that it
//! rewrites. The sort is the server's own for CLUSTER. It compares by the index's operators, collations and
//! expressions, within maintenance_work_mem and then on temporary files.
//!
//! Invariant: every row that is put comes out once.

use pgrx::pg_sys::{self, HeapTuple, TupleDesc, TupleTableSlot};

use crate::host::relation::Open;

/// A sort of whole rows by the key of one btree index.
pub struct IndexSort {
    sort: *mut pg_sys::Tuplesortstate,
    descriptor: TupleDesc,
}

impl IndexSort {
    /// An empty sort of rows of `rel` by `index`. Both stay open until it is drained.
    pub unsafe fn new(rel: Open, index: Open) -> Self {
        // SAFETY: both are open.
        unsafe {
            let descriptor = rel.descriptor();
            let memory = pg_sys::maintenance_work_mem;
            let none = std::ptr::null_mut();
            let sort = pg_sys::tuplesort_begin_cluster(descriptor, index.as_ptr(), memory, none, 0);
            Self { sort, descriptor }
        }
    }

    /// Adds the row in the slot.
    pub unsafe fn put(&mut self, slot: *mut TupleTableSlot) {
        // SAFETY: the slot has the sort's row type and all its columns are there; the sort copies the tuple.
        unsafe {
            let tuple = pg_sys::heap_form_tuple(self.descriptor, (*slot).tts_values, (*slot).tts_isnull);
            pg_sys::tuplesort_putheaptuple(self.sort, tuple);
            pg_sys::heap_freetuple(tuple);
        }
    }

    /// Adds a version of a row with its header.
    pub unsafe fn put_tuple(&mut self, tuple: HeapTuple) {
        // SAFETY: the tuple has the sort's row type; the sort copies it.
        unsafe { pg_sys::tuplesort_putheaptuple(self.sort, tuple) }
    }

    /// Hands all versions out in order and ends the sort. A version is valid until `each` returns.
    pub unsafe fn drain_tuples(self, mut each: impl FnMut(HeapTuple)) {
        // SAFETY: tuples belong to the sort until the next one is fetched.
        unsafe {
            pg_sys::tuplesort_performsort(self.sort);
            loop {
                let tuple = pg_sys::tuplesort_getheaptuple(self.sort, true);
                if tuple.is_null() {
                    break;
                }
                each(tuple);
                pgrx::check_for_interrupts!();
            }
            pg_sys::tuplesort_end(self.sort);
        }
    }

    /// Hands all rows out in order and ends the sort. A slot's row is valid until `each` returns.
    pub unsafe fn drain(self, mut each: impl FnMut(*mut TupleTableSlot)) {
        // SAFETY: tuples belong to the sort until the next one is fetched.
        unsafe {
            let slot = pg_sys::MakeSingleTupleTableSlot(self.descriptor, &raw const pg_sys::TTSOpsHeapTuple);
            self.drain_tuples(|tuple| {
                pg_sys::ExecStoreHeapTuple(tuple, slot, false);
                each(slot);
                pg_sys::ExecClearTuple(slot);
            });
            pg_sys::ExecDropSingleTupleTableSlot(slot);
        }
    }
}
