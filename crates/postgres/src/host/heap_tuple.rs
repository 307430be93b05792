//! Which transactions have written or changed a heap tuple.
//!
//! Used for the user's hot rows, and for rows of the catalogs beside the users' tables. Invariant: it does
//! not say whether such a transaction has committed.

use pgrx::pg_sys::{self, HeapTupleHeader, TransactionId};

/// The transaction that has inserted a tuple. None if the tuple is frozen.
pub unsafe fn inserter(header: HeapTupleHeader) -> Option<TransactionId> {
    // SAFETY: the tuple is pinned, or a copy; xmin and the infomask bits do not change but for hints.
    unsafe {
        let frozen = (pg_sys::HEAP_XMIN_COMMITTED | pg_sys::HEAP_XMIN_INVALID) as u16;
        let is_frozen = (*header).t_infomask & frozen == frozen;
        (!is_frozen).then(|| (*header).t_choice.t_heap.t_xmin)
    }
}

/// The transaction that updated or deleted a tuple whose xmax is decided.
pub unsafe fn updater(header: HeapTupleHeader) -> TransactionId {
    // SAFETY: the tuple is pinned.
    unsafe {
        let bits = u32::from((*header).t_infomask);
        let multi = pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_XMAX_IS_MULTI | pg_sys::HEAP_XMAX_LOCK_ONLY;
        if bits & multi == pg_sys::HEAP_XMAX_IS_MULTI {
            return pg_sys::HeapTupleGetUpdateXid(header);
        }
        (*header).t_choice.t_heap.t_xmax
    }
}

/// The transaction that has updated or deleted a tuple. It may still run or may have been rolled back. None
/// if the tuple was at most locked.
pub unsafe fn deleter(header: HeapTupleHeader) -> Option<TransactionId> {
    // SAFETY: the tuple is pinned and its page locked.
    unsafe { is_changed(header).then(|| updater(header)) }
}

/// Whether a transaction has updated or deleted a tuple. It may still run or may have been rolled back.
pub unsafe fn is_changed(header: HeapTupleHeader) -> bool {
    // SAFETY: the tuple is pinned.
    tells_change(u32::from(unsafe { (*header).t_infomask }))
}

/// `is_changed`, given the tuple's bits.
pub const fn tells_change(bits: u32) -> bool {
    bits & pg_sys::HEAP_XMAX_INVALID == 0 && !is_locked_only(bits)
}

/// Whether a tuple's bits, which have no HEAP_XMAX_INVALID, tell only of locks.
pub const fn is_locked_only(bits: u32) -> bool {
    let exclusive = pg_sys::HEAP_XMAX_IS_MULTI | pg_sys::HEAP_LOCK_MASK;
    bits & pg_sys::HEAP_XMAX_LOCK_ONLY != 0 || bits & exclusive == pg_sys::HEAP_XMAX_EXCL_LOCK
}
