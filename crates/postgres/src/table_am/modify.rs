//! UPDATE, DELETE and row locks.
//!
//! Hot rows are heap's, cold rows are `cold_change`'s.

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, CommandId, ItemPointer, ItemPointerData, LockTupleMode, LockWaitPolicy, Relation, Snapshot,
    TM_FailureData, TM_Result, TupleTableSlot, uint8,
};

use super::delegate::{heap_direct, heap_guarded};
use super::{cold_change, insert, tid};
use crate::storage::delete_bitmap;

/// `tuple_delete`: hot rows go straight through.
pub(super) unsafe extern "C-unwind" fn tuple_delete(
    rel: Relation,
    tid: ItemPointer,
    cid: CommandId,
    snapshot: Snapshot,
    crosscheck: Snapshot,
    wait: bool,
    failure: *mut TM_FailureData,
    changing_partition: bool,
) -> TM_Result::Type {
    // SAFETY: this frame owns nothing.
    unsafe {
        if tid::is_cold(*tid) {
            return delete_cold(rel, tid, cid, crosscheck, wait, failure, changing_partition);
        }
        write_bulk_changes();
        heap_direct!(tuple_delete(rel, tid, cid, snapshot, crosscheck, wait, failure, changing_partition))
    }
}

/// Before a hot row is changed or locked, which may wait: nobody may wait while it has stripes to itself.
unsafe fn write_bulk_changes() {
    if delete_bitmap::any() {
        // SAFETY: as the server calls us; no content lock is held.
        unsafe { write_claims() }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn write_claims() {
    // SAFETY: as above.
    unsafe { delete_bitmap::write_all() }
}

#[pg_guard]
unsafe extern "C-unwind" fn delete_cold(
    rel: Relation,
    tid: ItemPointer,
    cid: CommandId,
    crosscheck: Snapshot,
    wait: bool,
    failure: *mut TM_FailureData,
    changing_partition: bool,
) -> TM_Result::Type {
    // SAFETY: as the server calls it.
    unsafe { cold_change::delete(rel, *tid, cid, crosscheck, wait, &mut *failure, changing_partition) }
}

/// `tuple_update`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_update(
    rel: Relation,
    tid: ItemPointer,
    slot: *mut TupleTableSlot,
    cid: CommandId,
    snapshot: Snapshot,
    crosscheck: Snapshot,
    wait: bool,
    failure: *mut TM_FailureData,
    mode: *mut LockTupleMode::Type,
    update_indexes: *mut bool,
) -> TM_Result::Type {
    // SAFETY: heap's callback with the server's arguments. Index insertion may follow, hence the directory's locks.
    unsafe {
        insert::get_ready(rel);
        if tid::is_cold(*tid) {
            *update_indexes = true;
            return cold_change::update(rel, *tid, slot, cid, crosscheck, wait, &mut *failure, &mut *mode);
        }
        delete_bitmap::write_all();
        heap_guarded!(tuple_update(
            rel,
            tid,
            slot,
            cid,
            snapshot,
            crosscheck,
            wait,
            failure,
            mode,
            update_indexes
        ))
    }
}

/// `tuple_lock`: hot rows go straight through.
pub(super) unsafe extern "C-unwind" fn tuple_lock(
    rel: Relation,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
    cid: CommandId,
    mode: LockTupleMode::Type,
    wait: LockWaitPolicy::Type,
    flags: uint8,
    failure: *mut TM_FailureData,
) -> TM_Result::Type {
    // SAFETY: this frame owns nothing.
    unsafe {
        let place = place_of(tid, slot);
        if tid::is_cold(place) {
            *tid = place;
            return lock_cold(rel, tid, snapshot, slot, cid, mode, wait, flags, failure);
        }
        write_bulk_changes();
        heap_direct!(tuple_lock(rel, tid, snapshot, slot, cid, mode, wait, flags, failure))
    }
}

/// The TID that is meant. Copying a slot loses the TID of a row that is on no page, and the replication worker goes by such
/// a copy; the tuple in it still knows (see `scan_steps::name_writers`). Heap must not get an invalid TID: it would take it
/// for a page to be added.
unsafe fn place_of(tid: ItemPointer, slot: *mut TupleTableSlot) -> ItemPointerData {
    // SAFETY: a slot whose operations are those of heap's slots begins with a HeapTupleTableSlot.
    unsafe {
        if tid::block_of(*tid) != pg_sys::InvalidBlockNumber
            || !std::ptr::eq((*slot).tts_ops, &raw const pg_sys::TTSOpsBufferHeapTuple)
        {
            return *tid;
        }
        let tuple = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
        if tuple.is_null() { *tid } else { (*tuple).t_self }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn lock_cold(
    rel: Relation,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
    cid: CommandId,
    mode: LockTupleMode::Type,
    wait: LockWaitPolicy::Type,
    flags: uint8,
    failure: *mut TM_FailureData,
) -> TM_Result::Type {
    // SAFETY: as the server calls it.
    unsafe {
        // The TID may be the slot's own.
        let mut at = *tid;
        let result = cold_change::lock(rel, &mut at, snapshot, slot, cid, mode, wait, flags, &mut *failure);
        *tid = at;
        result
    }
}
