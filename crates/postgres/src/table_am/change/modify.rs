//! UPDATE, DELETE and row locks.
//!
//! The callbacks send hot rows to heap and cold rows to `cold_change`. A hot row that heap calls deleted may
//! have been packed. Such a row is changed or locked at its new place (`moved`), and the new TID replaces the
//! caller's, so that the caller goes on with the same row.

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, CommandId, ItemPointer, ItemPointerData, LockTupleMode, LockWaitPolicy, Relation, Snapshot,
    TM_FailureData, TM_Result, TupleTableSlot, uint8,
};

use super::request::{ChangeRequest, LockRequest};
use super::{cold_change, insert};
use crate::compat;
use crate::host::heap_am::{heap_direct, heap_guarded};
use crate::host::relation::Open;
use crate::storage::change::delete_bitmap;
use crate::storage::file::{metapage, tid};
use crate::table_am::read::moved;

/// `tuple_delete`: hot rows go straight through.
#[allow(clippy::too_many_arguments, reason = "the server's signature")]
pub unsafe extern "C-unwind" fn tuple_delete(
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
        let rel = Open::of(rel);
        if tid::is_cold(*tid) {
            let mut change = ChangeRequest { cid, crosscheck, wait, failure: &mut *failure };
            return delete_cold(rel, tid, &mut change, changing_partition);
        }
        write_bulk_changes();
        let result = heap_direct!(tuple_delete(
            rel.as_ptr(),
            tid,
            cid,
            snapshot,
            crosscheck,
            wait,
            failure,
            changing_partition
        ));
        if result != TM_Result::TM_Deleted {
            return result;
        }
        let mut change = ChangeRequest { cid, crosscheck, wait, failure: &mut *failure };
        delete_moved(rel, tid, &mut change, changing_partition)
    }
}

/// Deletes a row that heap calls deleted, if it was only moved, perhaps several times. Every snapshot saw the
/// row when it was moved. So `crosscheck` sees it, too, and is not asked.
#[pg_guard]
unsafe extern "C-unwind" fn delete_moved(
    rel: Open,
    tid: ItemPointer,
    change: &mut ChangeRequest,
    changing_partition: bool,
) -> TM_Result::Type {
    // SAFETY: as the server calls it; what heap says of the failure is good until the second attempt.
    unsafe {
        change.crosscheck = std::ptr::null_mut();
        while let Some(place) = moved::place(rel, *tid, change.failure.xmax) {
            *tid = place;
            let result = cold_change::delete(rel, place, change, changing_partition);
            if result != TM_Result::TM_Deleted {
                return result;
            }
        }
        TM_Result::TM_Deleted
    }
}

/// Gives claimed stripes back before a hot row is changed or locked. That may wait, and no transaction may
/// wait while it excludes others from stripes.
unsafe fn write_bulk_changes() {
    if delete_bitmap::any() {
        // SAFETY: as the server calls us; no content lock is held.
        unsafe { write_claims() }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn write_claims() {
    // SAFETY: no content lock is held, as `write_bulk_changes` says.
    unsafe { delete_bitmap::write_all() }
}

#[pg_guard]
unsafe extern "C-unwind" fn delete_cold(
    rel: Open,
    tid: ItemPointer,
    change: &mut ChangeRequest,
    changing_partition: bool,
) -> TM_Result::Type {
    // SAFETY: as the server calls it.
    unsafe {
        let result = cold_change::delete(rel, *tid, change, changing_partition);
        if result != TM_Result::TM_Deleted {
            return result;
        }
        delete_moved(rel, tid, change, changing_partition)
    }
}

/// `tuple_update`.
#[allow(clippy::too_many_arguments, reason = "the server's signature")]
#[pg_guard]
pub unsafe extern "C-unwind" fn tuple_update(
    rel: Relation,
    tid: ItemPointer,
    slot: *mut TupleTableSlot,
    cid: CommandId,
    snapshot: Snapshot,
    crosscheck: Snapshot,
    wait: bool,
    failure: *mut TM_FailureData,
    mode: *mut LockTupleMode::Type,
    update_indexes: *mut compat::UpdateIndexes,
) -> TM_Result::Type {
    // SAFETY: heap's callback with the server's arguments.
    unsafe {
        let rel = Open::of(rel);
        metapage::ensure(rel);
        let mut change = ChangeRequest { cid, crosscheck, wait, failure: &mut *failure };
        let mut result = if tid::is_cold(*tid) {
            *update_indexes = compat::ALL_INDEXES;
            cold_change::update(rel, *tid, slot, &mut change, &mut *mode)
        } else {
            delete_bitmap::write_all();
            heap_guarded!(tuple_update(
                rel.as_ptr(),
                tid,
                slot,
                cid,
                snapshot,
                crosscheck,
                wait,
                change.failure,
                mode,
                update_indexes
            ))
        };
        change.crosscheck = std::ptr::null_mut();
        while result == TM_Result::TM_Deleted
            && let Some(place) = moved::place(rel, *tid, change.failure.xmax)
        {
            *tid = place;
            *update_indexes = compat::ALL_INDEXES;
            result = cold_change::update(rel, place, slot, &mut change, &mut *mode);
        }
        // Index insertion follows and may need the directory. It does not follow where heap keeps the new
        // version on the same page.
        if compat::updates_indexes(*update_indexes) && result == TM_Result::TM_Ok {
            insert::prepare_for_indexes();
        }
        result
    }
}

/// `tuple_lock`: hot rows go straight through.
#[allow(clippy::too_many_arguments, reason = "the server's signature")]
pub unsafe extern "C-unwind" fn tuple_lock(
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
        let rel = Open::of(rel);
        let place = place_of(tid, slot);
        if tid::is_cold(place) {
            *tid = place;
            let failure = &mut *failure;
            let mut request = LockRequest { snapshot, slot, cid, mode, wait, flags, failure };
            return lock_cold(rel, tid, &mut request);
        }
        write_bulk_changes();
        // A caller that does not want to wait for others waits for a mover all the same, because a mover does
        // not change the row.
        let is_error = wait == LockWaitPolicy::LockWaitError;
        let policy = if is_error { LockWaitPolicy::LockWaitSkip } else { wait };
        loop {
            let result = heap_direct!(tuple_lock(
                rel.as_ptr(),
                tid,
                snapshot,
                slot,
                cid,
                mode,
                policy,
                flags,
                failure
            ));
            match result {
                TM_Result::TM_Deleted => {
                    let failure = &mut *failure;
                    let mut request = LockRequest { snapshot, slot, cid, mode, wait, flags, failure };
                    return lock_moved(rel, tid, &mut request);
                }
                TM_Result::TM_WouldBlock if awaited_mover(rel, tid, is_error) => {}
                _ => return result,
            }
        }
    }
}

/// Waits for the mover that is about to move a row, if a mover is what holds the row. Otherwise it returns
/// false, or raises an ERROR if `is_error` is set.
#[pg_guard]
unsafe extern "C-unwind" fn awaited_mover(rel: Open, tid: ItemPointer, is_error: bool) -> bool {
    // SAFETY: as the server calls tuple_lock; nothing is pinned or locked here.
    unsafe {
        let awaited = moved::await_mover(rel, *tid);
        if !awaited && is_error {
            cold_change::would_block(rel);
        }
        awaited
    }
}

/// Locks a row that heap calls deleted, if it was only moved, perhaps several times.
#[pg_guard]
unsafe extern "C-unwind" fn lock_moved(
    rel: Open,
    tid: ItemPointer,
    request: &mut LockRequest,
) -> TM_Result::Type {
    // SAFETY: as there. The TID may be the slot's own.
    unsafe {
        let mut at = *tid;
        let mut result = TM_Result::TM_Deleted;
        while result == TM_Result::TM_Deleted
            && let Some(place) = moved::place(rel, at, request.failure.xmax)
        {
            at = place;
            result = cold_change::lock(rel, &mut at, request);
        }
        *tid = at;
        result
    }
}

/// The TID of the row that the caller means. Copying a slot loses the TID of a row that is on no page, and
/// the replication worker hands in such a copy. The tuple in the copy still has the TID (see
/// `scan_steps::name_writers`). Heap must not get an invalid TID: it would take it for a page to be added.
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
    rel: Open,
    tid: ItemPointer,
    request: &mut LockRequest,
) -> TM_Result::Type {
    // SAFETY: as the server calls it.
    unsafe {
        // The TID may be the slot's own.
        let mut at = *tid;
        let result = cold_change::lock(rel, &mut at, request);
        *tid = at;
        if result != TM_Result::TM_Deleted {
            return result;
        }
        lock_moved(rel, tid, request)
    }
}
