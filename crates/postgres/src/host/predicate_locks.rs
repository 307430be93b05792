//! Predicate locks, and conflicts of serializable transactions.

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, BlockNumber, ItemPointer, Relation, Snapshot, TransactionId};

use super::relation::Open;

mod c {
    use super::{BlockNumber, ItemPointer, Relation, Snapshot, TransactionId};
    unsafe extern "C-unwind" {
        pub fn PredicateLockRelation(relation: Relation, snapshot: Snapshot);
        pub fn PredicateLockTID(relation: Relation, tid: ItemPointer, snapshot: Snapshot, xid: TransactionId);
        pub fn CheckForSerializableConflictOutNeeded(relation: Relation, snapshot: Snapshot) -> bool;
        pub fn CheckForSerializableConflictOut(relation: Relation, xid: TransactionId, snapshot: Snapshot);
        pub fn CheckForSerializableConflictIn(relation: Relation, tid: ItemPointer, block: BlockNumber);
        pub fn TransferPredicateLocksToHeapRelation(relation: Relation);
    }
}

/// Takes a serializable transaction's predicate lock on a whole relation.
pub unsafe fn predicate_lock_relation(rel: Open, snapshot: Snapshot) {
    // SAFETY: a call into the server, guarded so that its ERROR unwinds.
    unsafe { pg_guard_ffi_boundary(|| c::PredicateLockRelation(rel.as_ptr(), snapshot)) }
}

/// Whether this transaction, or that of a parallel worker's leader, is a serializable one.
#[inline]
pub fn is_serializable() -> bool {
    // SAFETY: a plain number of the server's.
    unsafe { pg_sys::XactIsoLevel == pg_sys::XACT_SERIALIZABLE as i32 }
}

/// Takes a predicate lock on one row, unless transaction `inserter` is the reader itself.
#[inline]
pub unsafe fn predicate_lock_tid(rel: Open, tid: ItemPointer, snapshot: Snapshot, inserter: TransactionId) {
    #[inline(never)]
    unsafe fn lock(rel: Open, tid: ItemPointer, snapshot: Snapshot, inserter: TransactionId) {
        // SAFETY: as above.
        unsafe { pg_guard_ffi_boundary(|| c::PredicateLockTID(rel.as_ptr(), tid, snapshot, inserter)) }
    }
    if is_serializable() {
        // SAFETY: as above.
        unsafe { lock(rel, tid, snapshot, inserter) }
    }
}

/// Whether a read under `snapshot` has to look for conflicts with writes that it does not see.
#[inline]
pub unsafe fn serializable_reads(rel: Open, snapshot: Snapshot) -> bool {
    #[inline(never)]
    unsafe fn needed(rel: Open, snapshot: Snapshot) -> bool {
        // SAFETY: as above.
        unsafe { pg_guard_ffi_boundary(|| c::CheckForSerializableConflictOutNeeded(rel.as_ptr(), snapshot)) }
    }
    // SAFETY: as above.
    is_serializable() && unsafe { needed(rel, snapshot) }
}

/// Reports a read that did not see what `xid` wrote.
pub unsafe fn serializable_missed(rel: Open, xid: TransactionId, snapshot: Snapshot) {
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| c::CheckForSerializableConflictOut(rel.as_ptr(), xid, snapshot)) }
}

/// Reports a write to the relation, to be matched with others' predicate locks on it.
pub fn serializable_write(rel: Open) {
    // SAFETY: as above.
    unsafe {
        pg_guard_ffi_boundary(|| {
            c::CheckForSerializableConflictIn(rel.as_ptr(), std::ptr::null_mut(), pg_sys::InvalidBlockNumber);
        });
    }
}

/// Reports a write to one row, to be matched with others' predicate locks on it, its block and its relation.
pub unsafe fn serializable_write_row(rel: Open, tid: ItemPointer, block: BlockNumber) {
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| c::CheckForSerializableConflictIn(rel.as_ptr(), tid, block)) }
}

/// Turns every predicate lock on rows, pages and indexes of the relation into one on the whole relation.
pub fn transfer_predicate_locks(rel: Open) {
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| c::TransferPredicateLocksToHeapRelation(rel.as_ptr())) }
}
