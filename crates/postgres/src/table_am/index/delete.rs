//! Deletion of index entries on the spot, when an index page is about to split.
//!
//! Heap looks into its pages for the TIDs that it is asked about. Cold TIDs have no page there, and heap
//! would raise an ERROR. So their entries are kept. A simple deletion names none, as no entry of a cold row
//! is ever marked dead. A bottom-up deletion may keep any entry.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Relation, TM_IndexDeleteOp, TransactionId};

use crate::host::heap_am::heap_guarded;
use crate::storage::file::tid;

/// `index_delete_tuples`.
#[pg_guard]
pub unsafe extern "C-unwind" fn index_delete_tuples(
    rel: Relation,
    operation: *mut TM_IndexDeleteOp,
) -> TransactionId {
    // SAFETY: deltids has ndeltids entries; status is indexed by their ids and may keep entries nobody names.
    unsafe {
        let op = &mut *operation;
        let count = usize::try_from(op.ndeltids).unwrap_or(0);
        let entries = std::slice::from_raw_parts_mut(op.deltids, count);
        let mut hot = 0;
        for at in 0..count {
            if !tid::is_cold(entries[at].tid) {
                entries.swap(hot, at);
                hot += 1;
            }
        }
        if hot == count {
            return heap_guarded!(index_delete_tuples(rel, operation));
        }
        if op.bottomup {
            // Entries that are left out of the array are kept in the index.
            op.ndeltids = hot as i32;
            if hot == 0 {
                return pg_sys::InvalidTransactionId;
            }
            return heap_guarded!(index_delete_tuples(rel, operation));
        }
        for entry in &entries[hot..] {
            (*op.status.offset(isize::from(entry.id))).knowndeletable = false;
        }
        if hot == 0 {
            return pg_sys::InvalidTransactionId;
        }
        op.ndeltids = hot as i32;
        let horizon = heap_guarded!(index_delete_tuples(rel, operation));
        op.ndeltids = count as i32;
        horizon
    }
}
