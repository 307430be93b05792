//! Inserts: rows go to the heap, or to the rows in memory that become stripes.
//!
//! `storage::pending_rows` decides once for each command and table where the rows go. Speculative insertions
//! (ON CONFLICT) are always hot.
//!
//! Two things are done before heap writes. The metapage is made, as heap would otherwise take block 0. The
//! directory's locks are taken, because index insertion follows, and a unique check may need the directory
//! while it holds a page lock.
//!
//! Invariant: when a callback returns, each slot has its TID, unless nobody is going to look at the slot.

use std::cell::Cell;
use std::ffi::c_int;

use crate::compat;
use crate::host::heap_am::heap;
use pgrx::pg_guard;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, BulkInsertState, CommandId, Relation, SubTransactionId, TupleTableSlot, uint32};

use crate::host::relation::Open;
use crate::storage::directory;
use crate::storage::file::{metapage, tid};
use crate::storage::pending_rows::{self, PendingRows};

thread_local! {
    /// The transaction and subtransaction that hold the directory's locks already.
    static PREPARED: Cell<(u32, SubTransactionId)> = const { Cell::new((0, 0)) };
}

/// Makes the metapage, and takes the locks that index insertion may need.
///
/// # Safety
/// `rel` is locked with RowExclusiveLock.
pub(super) unsafe fn get_ready(rel: Open) {
    // SAFETY: the lock is promised.
    unsafe {
        metapage::ensure(rel);
        if rel.may_have_indexes() {
            prepare_for_indexes();
        }
    }
}

/// Takes the locks that index insertion may need, once in each subtransaction.
pub(super) unsafe fn prepare_for_indexes() {
    // SAFETY: MyProc is this backend's own entry.
    unsafe {
        let now = (compat::local_transaction(), pg_sys::GetCurrentSubTransactionId());
        if PREPARED.get() != now {
            directory::prepare();
            PREPARED.set(now);
        }
    }
}

/// `tuple_insert`.
#[pg_guard]
pub unsafe extern "C-unwind" fn tuple_insert(
    rel: Relation,
    slot: *mut TupleTableSlot,
    cid: CommandId,
    options: c_int,
    state: BulkInsertState,
) {
    // SAFETY: heap's own callback with the arguments that the server gave.
    unsafe {
        let rel = Open::of(rel);
        if let Some(set) = pending_rows::set_for(rel, cid, options)
            && (*set).next_hot(1) == 0
        {
            keep(set, rel, &[slot]);
            return;
        }
        get_ready(rel);
        let Some(call) = heap().tuple_insert else { return };
        pg_guard_ffi_boundary(|| call(rel.as_ptr(), slot, cid, options, state));
    }
}

/// `multi_insert`.
#[pg_guard]
pub unsafe extern "C-unwind" fn multi_insert(
    rel: Relation,
    slots: *mut *mut TupleTableSlot,
    count: c_int,
    cid: CommandId,
    options: c_int,
    state: BulkInsertState,
) {
    // SAFETY: as above; the server gives `count` slots.
    unsafe {
        let rel = Open::of(rel);
        let all = std::slice::from_raw_parts(slots, usize::try_from(count).unwrap_or(0));
        let set = pending_rows::set_for(rel, cid, options);
        let hot = set.map_or(all.len(), |set| (*set).next_hot(all.len()));
        let (_, kept) = all.split_at(hot);
        if hot > 0 {
            get_ready(rel);
            let Some(call) = heap().multi_insert else { return };
            pg_guard_ffi_boundary(|| call(rel.as_ptr(), slots, hot as c_int, cid, options, state));
        }
        if let Some(set) = set
            && !kept.is_empty()
        {
            keep(set, rel, kept);
        }
    }
}

/// Hands rows to the pending rows of their command.
unsafe fn keep(set: *mut PendingRows, rel: Open, slots: &[*mut TupleTableSlot]) {
    // SAFETY: nothing between `set_for` and here removes the set.
    unsafe {
        for &slot in slots {
            (*slot).tts_tid = tid::tid(pg_sys::InvalidBlockNumber, 0);
        }
        (*set).push(rel, slots);
        if pending_rows::over_limit() {
            pending_rows::relieve(rel);
        }
    }
}

/// `tuple_insert_speculative`.
#[pg_guard]
pub unsafe extern "C-unwind" fn tuple_insert_speculative(
    rel: Relation,
    slot: *mut TupleTableSlot,
    cid: CommandId,
    options: c_int,
    state: BulkInsertState,
    token: uint32,
) {
    // SAFETY: as the server calls it.
    unsafe {
        let rel = Open::of(rel);
        get_ready(rel);
        let Some(call) = heap().tuple_insert_speculative else { return };
        pg_guard_ffi_boundary(|| call(rel.as_ptr(), slot, cid, options, state, token));
    }
}

/// `finish_bulk_insert`.
#[pg_guard]
pub unsafe extern "C-unwind" fn finish_bulk_insert(rel: Relation, _options: c_int) {
    // SAFETY: as the server calls it.
    unsafe { pending_rows::finish_bulk_insert(Open::of(rel)) }
}
