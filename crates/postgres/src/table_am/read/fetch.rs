//! Rows by TID: row versions for triggers and rechecks, TID scans.
//!
//! Hot TIDs go straight to heap. Whether a cold row is there, the directory and the proxies say under the
//! caller's own snapshot.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, ItemPointer, Relation, Snapshot, TableScanDesc, TupleTableSlot};

use super::locate::{Located, locate};
use super::{moved, row_versions};
use crate::host::heap_am::{heap_direct, heap_guarded};
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::change::row_proxy;
use crate::storage::directory;
use crate::storage::file::{metapage, tid};

/// `tuple_fetch_row_version`: hot rows go straight through.
pub unsafe extern "C-unwind" fn tuple_fetch_row_version(
    rel: Relation,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: this frame owns nothing.
    unsafe {
        let rel = Open::of(rel);
        if !tid::is_cold(*tid) {
            return heap_direct!(tuple_fetch_row_version(rel.as_ptr(), tid, snapshot, slot))
                && moved::is_there(rel, snapshot, slot);
        }
        fetch_cold_version(rel, tid, snapshot, slot)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn fetch_cold_version(
    rel: Open,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: as above. Foreign keys ask an old row whether its xmin is this transaction's; triggers get its
    // ctid from the header.
    unsafe {
        let Some(row) = tid::row_of(*tid) else { return false };
        let located = match locate(rel, row, snapshot, slot) {
            Located::Nowhere => moved::unseen(rel, row).map_or(Located::Nowhere, Located::Stored),
            located => located,
        };
        match located {
            Located::Stored(entry) => {
                predicate_locks::predicate_lock_tid(rel, tid, snapshot, pg_sys::InvalidTransactionId);
                if !row_proxy::is_there(rel, entry.storage_id, row, snapshot)
                    || !moved::is_cold_there(rel, &entry, row, snapshot)
                {
                    return false;
                }
                row_versions::fetch(rel, &entry, row, slot);
                true
            }
            Located::Answered => true,
            Located::Nowhere => false,
        }
    }
}

/// `tuple_tid_valid`.
#[pg_guard]
pub unsafe extern "C-unwind" fn tuple_tid_valid(scan: TableScanDesc, tid: ItemPointer) -> bool {
    // SAFETY: the scan is ours.
    unsafe {
        if tid::is_cold(*tid) {
            return tid::row_of(*tid).is_some();
        }
        heap_guarded!(tuple_tid_valid((*scan.cast::<super::scan::Scan>()).heap, tid))
    }
}

/// `tuple_get_latest_tid`: the last version that the scan's snapshot sees, at the place where it is now.
#[pg_guard]
pub unsafe extern "C-unwind" fn tuple_get_latest_tid(scan: TableScanDesc, tid: ItemPointer) {
    // SAFETY: the scan is ours.
    unsafe {
        latest_version(scan, tid);
        while let Some(place) = moved::place_for(Open::of((*scan).rs_rd), *tid, (*scan).rs_snapshot) {
            *tid = place;
            latest_version(scan, tid);
        }
    }
}

unsafe fn latest_version(scan: TableScanDesc, tid: ItemPointer) {
    // SAFETY: the scan is ours.
    unsafe {
        if let Some((row, storage_id)) = tid::row_of(*tid).zip(metapage::storage_id(Open::of((*scan).rs_rd)))
            && let Some(successor) = row_proxy::latest(storage_id, row, (*scan).rs_snapshot)
            && tid::block_of(successor) < tid::COLD_BASE
        {
            *tid = successor;
        }
        if !tid::is_cold(*tid) {
            let inner = (*scan.cast::<super::scan::Scan>()).heap;
            (*inner).rs_snapshot = (*scan).rs_snapshot;
            heap_guarded!(tuple_get_latest_tid(inner, tid));
        }
    }
}

/// `tuple_satisfies_snapshot`.
pub unsafe extern "C-unwind" fn tuple_satisfies_snapshot(
    rel: Relation,
    slot: *mut TupleTableSlot,
    snapshot: Snapshot,
) -> bool {
    // SAFETY: this frame owns nothing.
    unsafe {
        let rel = Open::of(rel);
        if !tid::is_cold((*slot).tts_tid) {
            return heap_direct!(tuple_satisfies_snapshot(rel.as_ptr(), slot, snapshot));
        }
        cold_satisfies_snapshot(rel, slot, snapshot)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn cold_satisfies_snapshot(
    rel: Open,
    slot: *mut TupleTableSlot,
    snapshot: Snapshot,
) -> bool {
    // SAFETY: the slot and the snapshot are the server's.
    unsafe {
        let Some((row, storage_id)) = tid::row_of((*slot).tts_tid).zip(metapage::storage_id(rel)) else {
            return false;
        };
        let by_now = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_SELF;
        let seen = match directory::find(storage_id, row, snapshot) {
            Some(entry) if !entry.reserved_only || by_now => moved::is_cold_there(rel, &entry, row, snapshot),
            _ => moved::is_old_row(storage_id, row),
        };
        seen && row_proxy::is_there(rel, storage_id, row, snapshot)
    }
}
