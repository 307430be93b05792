//! Inserts: every row becomes a hot row.
//!
//! The metapage has to exist before heap gets to write, or heap would take block 0. The directory's locks are taken
//! here because index insertion follows, and a unique check may need the directory while it holds a page lock.

use std::ffi::c_int;

use pgrx::pg_guard;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{BulkInsertState, CommandId, Relation, TupleTableSlot, uint32};

use super::heap;
use crate::storage::{directory, metapage};

unsafe fn get_ready(rel: Relation) {
    // SAFETY: rel is open with RowExclusiveLock.
    unsafe {
        metapage::ensure(rel);
        directory::prepare();
    }
}

/// `tuple_insert`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_insert(
    rel: Relation,
    slot: *mut TupleTableSlot,
    cid: CommandId,
    options: c_int,
    state: BulkInsertState,
) {
    // SAFETY: heap's own callback with the arguments that the server gave.
    unsafe {
        get_ready(rel);
        let Some(call) = heap().tuple_insert else { return };
        pg_guard_ffi_boundary(|| call(rel, slot, cid, options, state));
    }
}

/// `multi_insert`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn multi_insert(
    rel: Relation,
    slots: *mut *mut TupleTableSlot,
    count: c_int,
    cid: CommandId,
    options: c_int,
    state: BulkInsertState,
) {
    // SAFETY: as above.
    unsafe {
        get_ready(rel);
        let Some(call) = heap().multi_insert else { return };
        pg_guard_ffi_boundary(|| call(rel, slots, count, cid, options, state));
    }
}

/// `tuple_insert_speculative`: always hot.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_insert_speculative(
    rel: Relation,
    slot: *mut TupleTableSlot,
    cid: CommandId,
    options: c_int,
    state: BulkInsertState,
    token: uint32,
) {
    // SAFETY: as above.
    unsafe {
        get_ready(rel);
        let Some(call) = heap().tuple_insert_speculative else { return };
        pg_guard_ffi_boundary(|| call(rel, slot, cid, options, state, token));
    }
}
