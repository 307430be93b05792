//! From a cold row's successor to the last version of the row.
//!
//! Called by `cold_change` for a row that has been updated, if the caller wants to go on to its newest
//! version. The successor of a cold row is a hot row. It is looked at as heap looks at the next version in a
//! chain:
//! - under a SnapshotDirty
//! - waiting for a transaction that is changing it
//! - only if the transaction that inserted it is the one that buried the cold row
//!
//! Once there is a version to lock, heap's own callback locks it and follows the chain further.
//!
//! Invariant: heap gets only hot TIDs.

use pgrx::pg_sys::{
    self, Buffer, CommandId, HeapTupleData, ItemPointerData, LockTupleMode, LockWaitPolicy, Relation,
    Snapshot, SnapshotData, SnapshotType, TM_FailureData, TM_Result, TransactionId, TupleTableSlot, uint8,
};

use super::cold_change;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::heap_am::heap_guarded;
use crate::host::heap_tuple::updater;
use crate::storage::change::delete_bitmap;
use crate::storage::change::row_proxy::OTHER_PARTITION;
use crate::storage::file::tid;

/// Locks the last version of a row. Transaction `by` has replaced its cold version with the one at `at`.
pub(super) unsafe fn lock_successor(
    rel: Relation,
    at: &mut ItemPointerData,
    mut by: TransactionId,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
    cid: CommandId,
    mode: LockTupleMode::Type,
    wait: LockWaitPolicy::Type,
    flags: uint8,
    failure: &mut TM_FailureData,
) -> TM_Result::Type {
    // SAFETY: as the server calls tuple_lock; the pin of heap_fetch is given up before anything waits.
    unsafe {
        failure.traversed = true;
        loop {
            if is_in_other_partition(*at) {
                error::raise(
                    PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                    "tuple to be locked was already moved to another partition due to concurrent update",
                    "",
                    "",
                );
            }
            let mut dirty =
                SnapshotData { snapshot_type: SnapshotType::SNAPSHOT_DIRTY, ..SnapshotData::default() };
            let mut tuple = HeapTupleData { t_self: *at, ..HeapTupleData::default() };
            let mut pin: Buffer = 0;
            let live = pg_sys::heap_fetch(rel, &raw mut dirty, &raw mut tuple, &raw mut pin, true);
            if tuple.t_data.is_null() {
                return TM_Result::TM_Deleted;
            }
            let header = tuple.t_data;
            if (*header).t_choice.t_heap.t_xmin != by {
                // The place has another row now, so the last version was deleted.
                pg_sys::ReleaseBuffer(pin);
                return TM_Result::TM_Deleted;
            }
            if live {
                let busy = dirty.xmax;
                let cmin = pg_sys::TransactionIdIsCurrentTransactionId(by)
                    .then(|| pg_sys::HeapTupleHeaderGetCmin(header));
                pg_sys::ReleaseBuffer(pin);
                if busy != pg_sys::InvalidTransactionId {
                    if !cold_change::wait_for(rel, busy, at, wait, pg_sys::XLTW_Oper::XLTW_FetchUpdated) {
                        return TM_Result::TM_WouldBlock;
                    }
                    continue;
                }
                if let Some(cmin) = cmin.filter(|&cmin| cmin >= cid) {
                    failure.xmax = by;
                    failure.cmax = cmin;
                    return TM_Result::TM_SelfModified;
                }
                delete_bitmap::write_all();
                let result =
                    heap_guarded!(tuple_lock(rel, at, snapshot, slot, cid, mode, wait, flags, failure));
                failure.traversed = true;
                return result;
            }
            // The version was updated again, or deleted.
            let next = (*header).t_ctid;
            let last = tid::block_of(next) == tid::block_of(*at) && next.ip_posid == at.ip_posid;
            by = updater(header);
            pg_sys::ReleaseBuffer(pin);
            if last {
                return TM_Result::TM_Deleted;
            }
            *at = next;
        }
    }
}

fn is_in_other_partition(at: ItemPointerData) -> bool {
    tid::block_of(at) == tid::block_of(OTHER_PARTITION) && at.ip_posid == OTHER_PARTITION.ip_posid
}
