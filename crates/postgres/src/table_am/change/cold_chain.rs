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
    self, Buffer, CommandId, HeapTupleData, ItemPointerData, SnapshotData, SnapshotType, TM_Result,
    TransactionId,
};

use super::cold_change;
use super::request::LockRequest;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::heap_am::heap_guarded;
use crate::host::heap_tuple::updater;
use crate::host::relation::Open;
use crate::storage::change::delete_bitmap;
use crate::storage::change::row_proxy::OTHER_PARTITION;
use crate::storage::file::tid;

/// Locks the last version of a row. Transaction `by` has replaced its cold version with the one at `at`.
///
/// # Safety
/// As the server calls `tuple_lock`: `rel` is open, and the request's pointers are the server's.
pub(super) unsafe fn lock_successor(
    rel: Open,
    at: &mut ItemPointerData,
    mut by: TransactionId,
    request: &mut LockRequest,
) -> TM_Result::Type {
    request.failure.traversed = true;
    loop {
        if is_in_other_partition(*at) {
            error::raise(
                PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                "tuple to be locked was already moved to another partition due to concurrent update",
                "",
                "",
            );
        }
        // SAFETY: the caller's promise; no pin is held here.
        match unsafe { look(rel, *at, by) } {
            Version::Gone => return TM_Result::TM_Deleted,
            Version::Replaced { next, by: updater } => {
                by = updater;
                *at = next;
            }
            Version::Live { busy: Some(whom), .. } => {
                let what = pg_sys::XLTW_Oper::XLTW_FetchUpdated;
                // SAFETY: nothing is pinned or locked here.
                if !unsafe { cold_change::wait_for(rel, whom, at, request.wait, what) } {
                    return TM_Result::TM_WouldBlock;
                }
            }
            Version::Live { busy: None, cmin: Some(cmin) } if cmin >= request.cid => {
                request.failure.xmax = by;
                request.failure.cmax = cmin;
                return TM_Result::TM_SelfModified;
            }
            // SAFETY: as above; the TID is a hot row's.
            Version::Live { .. } => return unsafe { lock_hot(rel, at, request) },
        }
    }
}

/// What stands at a place in a chain of versions.
enum Version {
    /// The row was deleted, or the place was given to another row.
    Gone,
    /// The version was updated by `by`; the next one is at `next`.
    Replaced { next: ItemPointerData, by: TransactionId },
    /// The last version, who is changing it, and the command that inserted it if this transaction did.
    Live { busy: Option<TransactionId>, cmin: Option<CommandId> },
}

/// Looks at the version at `at`, which `by` has inserted.
unsafe fn look(rel: Open, at: ItemPointerData, by: TransactionId) -> Version {
    // SAFETY: the tuple is looked at while its page is pinned.
    unsafe {
        let mut dirty =
            SnapshotData { snapshot_type: SnapshotType::SNAPSHOT_DIRTY, ..SnapshotData::default() };
        let mut tuple = HeapTupleData { t_self: at, ..HeapTupleData::default() };
        let mut pin: Buffer = 0;
        let live = pg_sys::heap_fetch(rel.as_ptr(), &raw mut dirty, &raw mut tuple, &raw mut pin, true);
        if tuple.t_data.is_null() {
            return Version::Gone;
        }
        let header = tuple.t_data;
        let version = if (*header).t_choice.t_heap.t_xmin != by {
            // The place has been given to another row: the last version was deleted.
            Version::Gone
        } else if live {
            let busy = (dirty.xmax != pg_sys::InvalidTransactionId).then_some(dirty.xmax);
            let cmin = pg_sys::TransactionIdIsCurrentTransactionId(by)
                .then(|| pg_sys::HeapTupleHeaderGetCmin(header));
            Version::Live { busy, cmin }
        } else {
            // Updated again, or deleted.
            let next = (*header).t_ctid;
            let last = tid::same(next, at);
            let by = updater(header);
            if last { Version::Gone } else { Version::Replaced { next, by } }
        };
        pg_sys::ReleaseBuffer(pin);
        version
    }
}

/// Has heap lock the version at `at` and follow the chain further.
unsafe fn lock_hot(rel: Open, at: &mut ItemPointerData, request: &mut LockRequest) -> TM_Result::Type {
    // SAFETY: as the server calls tuple_lock; nothing is pinned or locked here.
    unsafe {
        delete_bitmap::write_all();
        let LockRequest { snapshot, slot, cid, mode, wait, flags, .. } = *request;
        let result = heap_guarded!(tuple_lock(
            rel.as_ptr(),
            at,
            snapshot,
            slot,
            cid,
            mode,
            wait,
            flags,
            request.failure
        ));
        request.failure.traversed = true;
        result
    }
}

fn is_in_other_partition(at: ItemPointerData) -> bool {
    tid::same(at, OTHER_PARTITION)
}
