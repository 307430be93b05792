//! Hot rows that have been packed, as those see them who come by their old TIDs (protocol point 4).
//!
//! A mover deletes the hot tuple and commits a stripe that has the same row; `storage::row_move` says where. Two things follow for
//! transactions whose snapshot does not see the mover. Who changes or locks the row by its old TID does so at its new place (`modify` asks
//! [`place`]): the row is the same, so that is no conflict at any isolation level. And who reads it by its old TID, as the snapshot says, must be told
//! what has become of it since (`is_there`, asked for every hot row): that this transaction itself has changed it, or, at SERIALIZABLE, that another
//! one has. Only rows that every snapshot saw are moved, so their inserters are of no interest, and no chain of versions that somebody follows
//! ends in a moved row, but for those that begin with it. Invariant: the answers for rows that no mover has deleted are heap's.

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, Buffer, HeapTupleData, ItemPointerData, Relation, Snapshot, SnapshotType, TransactionId,
    TupleTableSlot,
};

use super::{cold_chain, tid};
use crate::compat;
use crate::host::buffer;
use crate::storage::directory::StripeEntry;
use crate::storage::{directory, metapage, row_move, row_proxy};

/// The new TID of the row that `mover` has deleted at `old`; None where that was an ordinary deletion.
pub(super) unsafe fn place(
    rel: Relation,
    old: ItemPointerData,
    mover: TransactionId,
) -> Option<ItemPointerData> {
    // SAFETY: rel is open.
    unsafe { row_move::find(metapage::storage_id(rel)?, mover, old) }
}

/// `place`, for a hot TID that `snapshot` does not see because of its mover.
pub(super) unsafe fn place_for(
    rel: Relation,
    old: ItemPointerData,
    snapshot: Snapshot,
) -> Option<ItemPointerData> {
    // SAFETY: rel is open.
    unsafe {
        if tid::is_cold(old) {
            return None;
        }
        let (seen, by) =
            look(rel, old, |tuple, pin| pg_sys::HeapTupleSatisfiesVisibility(tuple, snapshot, pin))?;
        let place = place(rel, old, by?)?;
        let (row, storage_id) = tid::row_of(place).zip(metapage::storage_id(rel))?;
        // Seen here, and gone there: this transaction has changed it at its new place.
        (!seen || !row_proxy::is_there(rel, storage_id, row, snapshot)).then_some(place)
    }
}

/// Waits for the end of the mover that is at work on a hot row; false: nobody is, or somebody else.
pub(super) unsafe fn await_mover(rel: Relation, mut at: ItemPointerData) -> bool {
    // SAFETY: rel is open; nothing is pinned or locked while this waits.
    unsafe {
        let by = look(rel, at, |_, _| ()).and_then(|((), by)| by);
        let Some((by, storage_id)) = by.zip(metapage::storage_id(rel)) else { return false };
        let is_mover = pg_sys::TransactionIdIsInProgress(by)
            && !pg_sys::TransactionIdIsCurrentTransactionId(by)
            && row_move::is_mover(storage_id, by);
        if is_mover {
            pg_sys::XactLockTableWait(by, rel, &raw mut at, pg_sys::XLTW_Oper::XLTW_Lock);
        }
        is_mover
    }
}

/// Asks something about a hot tuple, alive or not, while its page is locked, and who has changed it; None where there is none.
unsafe fn look<T>(
    rel: Relation,
    at: ItemPointerData,
    ask: impl FnOnce(*mut HeapTupleData, Buffer) -> T,
) -> Option<(T, Option<TransactionId>)> {
    // SAFETY: rel is open; the pin is given up before anything else is asked.
    unsafe {
        let mut tuple = HeapTupleData { t_self: at, ..HeapTupleData::default() };
        let mut pin: Buffer = 0;
        let any = &raw mut pg_sys::SnapshotAnyData;
        if !pg_sys::heap_fetch(rel, any, &raw mut tuple, &raw mut pin, false) {
            return None;
        }
        buffer::lock_shared(pin);
        let answer = ask(&raw mut tuple, pin);
        let by = deleter(tuple.t_data);
        buffer::unlock(pin);
        pg_sys::ReleaseBuffer(pin);
        Some((answer, by))
    }
}

/// Who has updated or deleted a tuple, or is about to.
unsafe fn deleter(header: pg_sys::HeapTupleHeader) -> Option<TransactionId> {
    // SAFETY: the tuple is pinned.
    unsafe {
        let none = pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_XMAX_LOCK_ONLY;
        let bits = u32::from((*header).t_infomask);
        (bits & none == 0).then(|| cold_chain::updater(header))
    }
}

/// Whether a hot row that heap's callback has found for a snapshot is there for it. The slot is of the table's own kind.
#[inline]
pub(super) unsafe fn is_there(rel: Relation, snapshot: Snapshot, slot: *mut TupleTableSlot) -> bool {
    // SAFETY: slots of heap tables are heap slots, and this one holds a tuple. Nothing here owns anything.
    unsafe {
        let tuple = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
        let none = (pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_XMAX_LOCK_ONLY) as u16;
        (*(*tuple).t_data).t_infomask & none != 0 || is_there_now(rel, snapshot, tuple)
    }
}

/// `is_there` for a row that somebody has changed whom the snapshot does not see.
#[pg_guard]
unsafe extern "C-unwind" fn is_there_now(
    rel: Relation,
    snapshot: Snapshot,
    tuple: *mut HeapTupleData,
) -> bool {
    // SAFETY: the tuple is pinned by its slot.
    unsafe {
        if snapshot.is_null() || (*snapshot).snapshot_type != SnapshotType::SNAPSHOT_MVCC {
            return true;
        }
        let serializable = compat::serializable_reads(rel, snapshot);
        if !serializable && pg_sys::GetTopTransactionIdIfAny() == pg_sys::InvalidTransactionId {
            return true;
        }
        let Some(by) = deleter((*tuple).t_data) else { return true };
        if pg_sys::TransactionIdIsCurrentTransactionId(by) {
            return true;
        }
        let Some(mut place) = place(rel, (*tuple).t_self, by) else { return true };
        let Some((row, storage_id)) = tid::row_of(place).zip(metapage::storage_id(rel)) else { return true };
        if serializable {
            let inserter = pg_sys::InvalidTransactionId;
            compat::predicate_lock_tid(rel, &raw mut place, snapshot, inserter);
        }
        row_proxy::is_there(rel, storage_id, row, snapshot)
    }
}

/// Whether rows of a stripe that `inserter` has put into the directory are older than every snapshot that does not see the stripe.
pub(super) unsafe fn is_old(storage_id: u64, inserter: TransactionId) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { row_move::is_mover(storage_id, inserter) }
}

/// `is_old` of the stripe that has this row, whoever sees it.
pub(super) unsafe fn is_old_row(storage_id: u64, row: u64) -> bool {
    // SAFETY: as above.
    unsafe { old_stripe(storage_id, row).is_some() }
}

/// The stripe of a row that a mover has moved there and a snapshot does not see: who has locked the row since, for a cursor's FOR UPDATE, knows it by that place.
pub(super) unsafe fn unseen(rel: Relation, row: u64) -> Option<StripeEntry> {
    // SAFETY: rel is open.
    unsafe {
        let entry = old_stripe(metapage::storage_id(rel)?, row)?;
        pg_sys::TransactionIdDidCommit(entry.inserter).then_some(entry)
    }
}

unsafe fn old_stripe(storage_id: u64, row: u64) -> Option<StripeEntry> {
    // SAFETY: as above.
    unsafe {
        directory::find(storage_id, row, &raw mut pg_sys::SnapshotAnyData)
            .filter(|entry| !entry.reserved_only && is_old(storage_id, entry.inserter))
    }
}
