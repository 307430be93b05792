//! Rows that have been moved, for transactions that come by their old TIDs (protocol point 4 of
//! `docs/internals/concurrency.md`).
//!
//! A mover deletes a hot tuple, or takes a stripe out of the directory, and commits a stripe that has the
//! same rows. `storage::change::row_move` says where they are. This matters to transactions whose snapshot
//! does not see the mover:
//! - A transaction that changes or locks a row by its old TID does so at its new place (`modify` asks
//!   [`place`]). The row is the same, so this is no conflict at any isolation level.
//! - A transaction that reads a row by its old TID, as its snapshot says, must learn what has become of the
//!   row since. The transaction itself may have changed it or, at SERIALIZABLE, another one may have. It asks
//!   `is_there` for every hot row, and `is_cold_there` and `dead_elsewhere` for rows of stripes.
//!
//! A row may have been moved on from its new place.
//!
//! Movers move only rows that every snapshot saw. So nobody asks for the inserters of moved rows. A chain of
//! versions that somebody follows ends in a moved row only if it begins with it.
//!
//! Invariant: for rows that nobody has moved the answers are heap's.

use std::ops::Range;

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, Buffer, HeapTupleData, ItemPointerData, Snapshot, SnapshotType, TransactionId, TupleTableSlot,
};

use crate::host::buffer;
use crate::host::heap_tuple::deleter;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::change::row_proxy::Tombstones;
use crate::storage::change::{row_move, row_proxy};
use crate::storage::directory::StripeEntry;
use crate::storage::directory::{self, entries};
use crate::storage::file::{metapage, tid};

/// The new TID of the row that transaction `mover` has deleted at `old`. None if that was an ordinary
/// deletion.
pub fn place(rel: Open, old: ItemPointerData, mover: TransactionId) -> Option<ItemPointerData> {
    row_move::find(metapage::storage_id(rel)?, mover, old)
}

/// The next place of a row whose stripe was replaced, or is about to be.
pub fn next_place(storage_id: u64, row: u64) -> Option<ItemPointerData> {
    let place = tid::cold_tid(row);
    let mut movers = entries::replacers(storage_id, row).into_iter();
    movers.find_map(|mover| row_move::find(storage_id, mover, place))
}

/// The new place of a hot tuple that was packed a moment ago: its mover had not ended when the active
/// snapshot was taken. Older moves are of no interest: a reader of an index under that snapshot has met the
/// new entry.
pub unsafe fn recent_place(storage_id: u64, tuple: *mut HeapTupleData) -> Option<ItemPointerData> {
    // SAFETY: the tuple is pinned by its slot.
    unsafe {
        let by = deleter((*tuple).t_data)?;
        let is_recent =
            !pg_sys::ActiveSnapshotSet() || pg_sys::XidInMVCCSnapshot(by, pg_sys::GetActiveSnapshot());
        if !is_recent || pg_sys::TransactionIdIsInProgress(by) || !pg_sys::TransactionIdDidCommit(by) {
            return None;
        }
        row_move::find(storage_id, by, (*tuple).t_self)
    }
}

/// The transaction that has moved a row of a stripe that is not there any more. None if the row was dead and
/// so was not moved.
pub fn mover_of(storage_id: u64, row: u64) -> Option<TransactionId> {
    let place = tid::cold_tid(row);
    let mut movers = entries::replacers(storage_id, row).into_iter();
    movers.find(|&mover| row_move::find(storage_id, mover, place).is_some())
}

/// The new place of a row that `snapshot` does not see at its old TID, because a mover has moved it.
pub(super) unsafe fn place_for(
    rel: Open,
    old: ItemPointerData,
    snapshot: Snapshot,
) -> Option<ItemPointerData> {
    // SAFETY: the snapshot is live; `look` pins the tuple while it is judged.
    unsafe {
        let storage_id = metapage::storage_id(rel)?;
        let (seen, place) = if let Some(row) = tid::row_of(old) {
            let place = next_place(storage_id, row)?;
            (directory::find(storage_id, row, snapshot).is_some_and(|entry| !entry.reserved_only), place)
        } else {
            let (seen, by) =
                look(rel, old, |tuple, pin| pg_sys::HeapTupleSatisfiesVisibility(tuple, snapshot, pin))?;
            (seen, row_move::find(storage_id, by?, old)?)
        };
        // If the snapshot sees the row here and it is gone there, this transaction has changed it at its new
        // place.
        (!seen || !lives_on(rel, storage_id, place, snapshot, false)).then_some(place)
    }
}

/// Whether a row is alive for a snapshot at a place that the snapshot does not know, and at the places after
/// it.
///
/// # Safety
/// The snapshot is live.
unsafe fn lives_on(
    rel: Open,
    storage_id: u64,
    mut place: ItemPointerData,
    snapshot: Snapshot,
    serializable: bool,
) -> bool {
    // SAFETY: the snapshot is live. A serializable reader's lock comes before it looks where the row is: the
    // next mover finds the lock, or the reader the mover.
    unsafe {
        while let Some(row) = tid::row_of(place) {
            if serializable {
                let inserter = pg_sys::InvalidTransactionId;
                predicate_locks::predicate_lock_tid(rel, &raw mut place, snapshot, inserter);
            }
            if !row_proxy::is_there(rel, storage_id, row, snapshot) {
                return false;
            }
            let Some(next) = next_place(storage_id, row) else { return true };
            place = next;
        }
        true
    }
}

/// Whether a snapshot has to ask what has become of moved rows. Only this transaction itself can have changed
/// rows that the snapshot sees, unless it is serializable.
unsafe fn may_matter(rel: Open, snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is null or live.
    unsafe {
        !snapshot.is_null()
            && (*snapshot).snapshot_type == SnapshotType::SNAPSHOT_MVCC
            && (pg_sys::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId
                || predicate_locks::serializable_reads(rel, snapshot))
    }
}

/// Whether a row is still alive at the place where it is now. The snapshot sees its stripe and does not see
/// it dead there. A serializable reader has its predicate lock.
///
/// # Safety
/// The snapshot is live.
pub unsafe fn is_cold_there(rel: Open, entry: &StripeEntry, row: u64, snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    unsafe {
        let serializable = predicate_locks::serializable_reads(rel, snapshot);
        let replaced = entry.replaced_by != pg_sys::InvalidTransactionId;
        if !(serializable || replaced) || !may_matter(rel, snapshot) {
            return true;
        }
        // The stripe may have been replaced since it was looked up. So a serializable reader asks again.
        let place = next_place(entry.storage_id, row);
        place.is_none_or(|place| lives_on(rel, entry.storage_id, place, snapshot, serializable))
    }
}

/// The rows of stripes that a scan's snapshot sees and that died at other places, ascending. A serializable
/// reader has its predicate lock on the table.
///
/// # Safety
/// The snapshot is null or live.
pub(super) unsafe fn dead_elsewhere(rel: Open, stripes: &[StripeEntry], snapshot: Snapshot) -> Vec<u64> {
    let mut dead = Vec::new();
    // SAFETY: the snapshot is null or live.
    unsafe {
        for entry in stripes.iter().filter(|entry| entry.replaced_by != pg_sys::InvalidTransactionId) {
            if !may_matter(rel, snapshot) {
                break;
            }
            // The old and the present numbers of the rows that are followed.
            let mut moved = Vec::new();
            let rows = entry.first_row..entry.end_row();
            each_move(entry.storage_id, rows, |old, new| moved.push((old, new)));
            while !moved.is_empty() {
                pgrx::check_for_interrupts!();
                moved.sort_unstable_by_key(|&(_, new)| new);
                let mut tombstones = Tombstones::of_scan(rel, entry.storage_id, snapshot);
                moved.retain(|&(old, new)| {
                    let is_dead = tombstones.contains(new);
                    if is_dead {
                        dead.push(old);
                    }
                    !is_dead
                });
                moved = moved_on(entry.storage_id, &moved);
            }
        }
    }
    dead.sort_unstable();
    dead
}

/// Calls `with` for each row of a stripe that was moved, with its old and its new number.
fn each_move(storage_id: u64, rows: Range<u64>, mut with: impl FnMut(u64, u64)) {
    for mover in entries::replacers(storage_id, rows.start) {
        row_move::each_cold(storage_id, mover, rows.clone(), &mut with);
    }
}

/// The next places of rows that are at the given ones, in the same order. Rows that were not moved again are
/// left out.
fn moved_on(storage_id: u64, rows: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut next = Vec::new();
    let mut rest = rows;
    // SAFETY: catalog look-ups.
    unsafe {
        while let Some(&(_, first)) = rest.first() {
            let any = &raw mut pg_sys::SnapshotAnyData;
            let Some(entry) = directory::find(storage_id, first, any) else {
                rest = &rest[1..];
                continue;
            };
            let (here, later) = rest.split_at(rest.partition_point(|(_, row)| *row < entry.end_row()).max(1));
            rest = later;
            let span = entry.first_row..entry.end_row();
            each_move(storage_id, span, |from, to| {
                if let Ok(at) = here.binary_search_by_key(&from, |&(_, row)| row)
                    && let Some(&(old, _)) = here.get(at)
                {
                    next.push((old, to));
                }
            });
        }
    }
    next
}

/// Waits for the end of the mover that is at work on a hot row. False: no mover is.
pub unsafe fn await_mover(rel: Open, mut at: ItemPointerData) -> bool {
    // SAFETY: nothing is pinned or locked while this waits.
    unsafe {
        let by = look(rel, at, |_, _| ()).and_then(|((), by)| by);
        let Some((by, storage_id)) = by.zip(metapage::storage_id(rel)) else { return false };
        let is_mover = pg_sys::TransactionIdIsInProgress(by)
            && !pg_sys::TransactionIdIsCurrentTransactionId(by)
            && row_move::is_mover(storage_id, by);
        if is_mover {
            pg_sys::XactLockTableWait(by, rel.as_ptr(), &raw mut at, pg_sys::XLTW_Oper::XLTW_Lock);
        }
        is_mover
    }
}

/// Asks something about a hot tuple, alive or not, while its page is locked. Returns the answer and which
/// transaction has changed the tuple, or None if there is no tuple.
unsafe fn look<T>(
    rel: Open,
    at: ItemPointerData,
    ask: impl FnOnce(*mut HeapTupleData, Buffer) -> T,
) -> Option<(T, Option<TransactionId>)> {
    // SAFETY: the pin is given up before anything else is asked.
    unsafe {
        let mut tuple = HeapTupleData { t_self: at, ..HeapTupleData::default() };
        let mut pin: Buffer = 0;
        let any = &raw mut pg_sys::SnapshotAnyData;
        if !pg_sys::heap_fetch(rel.as_ptr(), any, &raw mut tuple, &raw mut pin, false) {
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

/// Whether a hot row that heap's callback has found for a snapshot is still there for it. The slot is of the
/// table's own kind.
#[inline]
pub unsafe fn is_there(rel: Open, snapshot: Snapshot, slot: *mut TupleTableSlot) -> bool {
    // SAFETY: slots of heap tables are heap slots, and this one holds a tuple. Nothing here owns anything.
    unsafe {
        let tuple = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
        let none = (pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_XMAX_LOCK_ONLY) as u16;
        (*(*tuple).t_data).t_infomask & none != 0 || is_there_now(rel, snapshot, tuple)
    }
}

/// `is_there` for a row that was changed by a transaction which the snapshot does not see.
#[cold]
#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn is_there_now(rel: Open, snapshot: Snapshot, tuple: *mut HeapTupleData) -> bool {
    // SAFETY: the tuple is pinned by its slot.
    unsafe {
        if !may_matter(rel, snapshot) {
            return true;
        }
        let Some(by) = deleter((*tuple).t_data) else { return true };
        if pg_sys::TransactionIdIsCurrentTransactionId(by) {
            return true;
        }
        let Some(storage_id) = metapage::storage_id(rel) else { return true };
        let place = row_move::find(storage_id, by, (*tuple).t_self);
        let serializable = predicate_locks::serializable_reads(rel, snapshot);
        place.is_none_or(|place| lives_on(rel, storage_id, place, snapshot, serializable))
    }
}

/// Whether every snapshot saw the rows of a stripe before the stripe was made: `inserter`, which has put it
/// into the directory, is a mover.
pub fn is_old(storage_id: u64, inserter: TransactionId) -> bool {
    row_move::is_mover(storage_id, inserter)
}

/// `is_old` for the stripe that has this row, even if no snapshot sees the stripe.
pub(super) fn is_old_row(storage_id: u64, row: u64) -> bool {
    old_stripe(storage_id, row).is_some()
}

/// The stripe of a row that a committed mover has put there, and that a snapshot does not see. A cursor's FOR
/// UPDATE that has locked the row since knows it by that place.
pub(super) fn unseen(rel: Open, row: u64) -> Option<StripeEntry> {
    // SAFETY: a question about a plain id.
    unsafe {
        let entry = old_stripe(metapage::storage_id(rel)?, row)?;
        pg_sys::TransactionIdDidCommit(entry.inserter).then_some(entry)
    }
}

fn old_stripe(storage_id: u64, row: u64) -> Option<StripeEntry> {
    // SAFETY: the snapshot is a constant of the server's.
    unsafe {
        directory::find(storage_id, row, &raw mut pg_sys::SnapshotAnyData)
            .filter(|entry| !entry.reserved_only && is_old(storage_id, entry.inserter))
    }
}
