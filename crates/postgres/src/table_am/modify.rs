//! UPDATE, DELETE and row locks.
//!
//! Hot rows are heap's. Changing or locking a cold row needs proxy rows, which this version does not have: it says so.

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, CommandId, ItemPointer, ItemPointerData, LockTupleMode, LockWaitPolicy, Relation, Snapshot,
    TM_FailureData, TM_Result, TupleTableSlot, uint8,
};

use super::delegate::{heap_direct, heap_guarded};
use super::tid;
use crate::host::{error, relation};
use crate::storage::{directory, metapage};

fn refuse(rel: Relation, tid: ItemPointer, what: &str) -> ! {
    // SAFETY: the server holds the relation open and passes a valid TID.
    let (table, at) = unsafe { (relation::quoted_name(rel), *tid) };
    let (block, offset) = (tid::block_of(at), at.ip_posid);
    error::not_supported(
        format!("{what} a row of table {table} that is stored in a stripe is not supported yet"),
        &format!(
            "The row at ({block},{offset}) was loaded in bulk; only rows in heap pages can be changed or locked."
        ),
        "Load the changed rows into a new table, or keep rows that change in a heap table.",
    )
}

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
            return refuse_delete(rel, tid);
        }
        heap_direct!(tuple_delete(rel, tid, cid, snapshot, crosscheck, wait, failure, changing_partition))
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn refuse_delete(rel: Relation, tid: ItemPointer) -> TM_Result::Type {
    refuse(rel, tid, "deleting")
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
        if tid::is_cold(*tid) {
            refuse(rel, tid, "updating");
        }
        metapage::ensure(rel);
        directory::prepare();
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
        let mut place = place_of(tid, slot);
        if tid::is_cold(place) {
            return refuse_lock(rel, &raw mut place);
        }
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
unsafe extern "C-unwind" fn refuse_lock(rel: Relation, tid: ItemPointer) -> TM_Result::Type {
    refuse(rel, tid, "locking")
}
