//! Asking the delete bitmaps.
//!
//! Called by `row_proxy::visibility`, which joins the answers with those of the proxies, and by writers of
//! single rows. Each row of the catalog is judged in place by the caller's own snapshot. `claim` is asked
//! about rows that this backend has marked and not written yet.
//!
//! Invariant: nothing here waits or decodes, because the caller may hold a lock on an index page (protocol
//! point 6).

use std::ops::Range;

use pgrx::pg_sys::{self, CommandId, ItemPointerData, Snapshot, SnapshotType, TransactionId};

use super::{Entry, SPAN, bit, claim, rows_in};
use crate::host::error;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::catalog::side_table::{Compare, Cursor, SideTable};
use crate::storage::directory::age::Age;
use crate::storage::directory::rewrite_horizon::Horizon;

/// Dead rows as a scan keeps them.
pub struct Mask {
    first_row: u64,
    bits: Vec<u8>,
}

impl Mask {
    fn of(entry: Entry) -> Self {
        let mut bits = Vec::new();
        if bits.try_reserve(entry.bits.len()).is_err() {
            error::raise_plain(vector::Error::OutOfMemory { bytes: entry.bits.len() });
        }
        bits.extend_from_slice(entry.bits);
        Self { first_row: entry.first_row, bits }
    }

    /// Whether the mask begins after this row.
    pub fn is_after(&self, row: u64) -> bool {
        self.first_row > row
    }

    /// Whether this mask, and every mask that begins before it, certainly ends before this row.
    pub fn is_far_before(&self, row: u64) -> bool {
        self.first_row + SPAN <= row
    }

    /// Whether the row is dead.
    pub fn contains(&self, row: u64) -> bool {
        row.checked_sub(self.first_row).is_some_and(|at| bit(&self.bits, at))
    }

    /// The dead rows among these, ascending.
    pub fn among(&self, rows: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        rows_in(self.first_row, &self.bits, rows)
    }
}

/// Walks the rows of the catalog that reach into `rows`, in the order of their first row numbers. `step`
/// returns whether to go on.
unsafe fn walk(storage_id: u64, rows: &Range<u64>, mut step: impl FnMut(&Cursor, Entry) -> bool) {
    // SAFETY: see `SideTable::walk`.
    unsafe {
        if SideTable::DeleteBitmap.oids_if_present().is_none() {
            return;
        }
        let from = (Compare::AtLeast, rows.start.saturating_sub(SPAN - 1));
        SideTable::DeleteBitmap.walk(storage_id, Some(from), false, |cursor| {
            let entry = Entry::at(cursor);
            entry.first_row < rows.end && (entry.end_row() <= rows.start || step(cursor, entry))
        });
    }
}

/// Whether a snapshot sees what a row of the catalog says. For snapshots of other kinds than MVCC and dirty
/// ones, the committed rows and our own count.
unsafe fn sees(cursor: &Cursor, snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    unsafe {
        let own =
            matches!((*snapshot).snapshot_type, SnapshotType::SNAPSHOT_MVCC | SnapshotType::SNAPSHOT_DIRTY);
        cursor.satisfies(if own { snapshot } else { &raw mut pg_sys::SnapshotSelfData })
    }
}

/// What `snapshot` sees dead among `rows`, in the order of first row numbers. None if this is more than
/// `limit` rows of the catalog. Snapshots that wait for writers ask row by row (`is_dead`).
pub unsafe fn masks(
    rel: Open,
    storage_id: u64,
    snapshot: Snapshot,
    rows: &Range<u64>,
    limit: usize,
) -> Option<Vec<Mask>> {
    let mut found = Vec::new();
    let mut seen = 0;
    // SAFETY: see `walk`; rel is open and the snapshot live.
    unsafe {
        let serializable = predicate_locks::serializable_reads(rel, snapshot);
        walk(storage_id, rows, |cursor, entry| {
            seen += 1;
            if sees(cursor, snapshot) {
                found.push(Mask::of(entry));
            } else if serializable {
                cursor.report_missed(rel, snapshot);
            }
            seen <= limit
        });
    }
    (seen <= limit).then_some(found)
}

/// Whether a bulk change has killed the row for `snapshot`. A SnapshotDirty learns whose change is still
/// running, and still sees the row.
pub unsafe fn is_dead(rel: Open, storage_id: u64, row: u64, snapshot: Snapshot) -> bool {
    let mut dead = false;
    // SAFETY: see `walk`; rel is open and the snapshot live.
    unsafe {
        let kind = (*snapshot).snapshot_type;
        if let Some(command) = claim::marked_by(storage_id, row) {
            return kind != SnapshotType::SNAPSHOT_MVCC || command < (*snapshot).curcid;
        }
        let serializable = predicate_locks::serializable_reads(rel, snapshot);
        let before = ((*snapshot).xmin, (*snapshot).xmax);
        walk(storage_id, &(row..row + 1), |cursor, entry| {
            if !entry.has(row) {
                return true;
            }
            let seen = sees(cursor, snapshot);
            if kind == SnapshotType::SNAPSHOT_DIRTY {
                let writer = (*snapshot).xmin;
                ((*snapshot).xmin, (*snapshot).xmax) = before;
                if seen && writer != pg_sys::InvalidTransactionId {
                    (*snapshot).xmax = writer;
                    return false;
                }
            }
            dead = seen;
            if !seen && serializable {
                cursor.report_missed(rel, snapshot);
            }
            !dead
        });
    }
    dead
}

/// The last change of a row in bulk, for a transaction that wants to change or lock the row.
pub enum Change {
    /// Nobody has killed it.
    None,
    /// This transaction has killed it, as that command.
    Own(TransactionId, CommandId, ItemPointerData),
    /// A transaction that still runs has killed it.
    Running(TransactionId, ItemPointerData),
    /// A committed transaction has killed it.
    Done(TransactionId, ItemPointerData),
}

/// What bulk changes have done to a row. The caller keeps others from changing the stripe in bulk.
pub unsafe fn last_change(storage_id: u64, row: u64) -> Change {
    let mut found = Change::None;
    // SAFETY: see `walk`; cmin is asked of rows of this transaction only. "Running" before "committed", as
    // everywhere in the server.
    unsafe {
        walk(storage_id, &(row..row + 1), |cursor, entry| {
            if !entry.has(row) || cursor.was_rolled_back() {
                return true;
            }
            let header = (*cursor.tuple()).t_data;
            let writer = (*header).t_choice.t_heap.t_xmin;
            let frozen = cursor.inserter() == pg_sys::InvalidTransactionId;
            found = if !frozen && pg_sys::TransactionIdIsCurrentTransactionId(writer) {
                Change::Own(writer, pg_sys::HeapTupleHeaderGetCmin(header), entry.successor(row))
            } else if !frozen && pg_sys::TransactionIdIsInProgress(writer) {
                Change::Running(writer, entry.successor(row))
            } else {
                Change::Done(writer, entry.successor(row))
            };
            false
        });
    }
    found
}

/// Whether any bulk change concerns these rows.
pub fn touches(storage_id: u64, rows: &Range<u64>) -> bool {
    let mut found = false;
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, rows, |cursor, _| {
            found = !cursor.was_rolled_back();
            !found
        });
    }
    found
}

/// The row numbers that all rows of the catalog reach over, whoever sees them. None: there are more than
/// `limit`.
pub fn spans(storage_id: u64, limit: usize) -> Option<Vec<Range<u64>>> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, &(0..u64::MAX), |_, entry| {
            found.push(entry.first_row..entry.end_row());
            found.len() <= limit
        });
    }
    (found.len() <= limit).then_some(found)
}

/// Calls `with` for each row whose death in bulk is committed or our own, with the transaction that killed it
/// (invalid if frozen).
pub fn for_each_dead(storage_id: u64, rows: &Range<u64>, mut with: impl FnMut(u64, TransactionId)) {
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, rows, |cursor, entry| {
            if cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                let by = cursor.inserter();
                rows_in(entry.first_row, entry.bits, rows.clone()).for_each(|row| with(row, by));
            }
            true
        });
    }
}

/// What is dead to every snapshot: rows of the catalog that were written before `oldest_xmin`, in the order
/// of their first row numbers. `with` gets each writer (invalid if frozen).
pub fn dead_to_all(
    storage_id: u64,
    oldest_xmin: TransactionId,
    mut with: impl FnMut(TransactionId),
) -> Vec<Mask> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, &(0..u64::MAX), |cursor, entry| {
            let by = cursor.inserter();
            if cursor.satisfies(&raw mut pg_sys::SnapshotSelfData)
                && Age::of(by, oldest_xmin) == Age::Everybody
            {
                with(by);
                found.push(Mask::of(entry));
            }
            true
        });
    }
    found
}

/// Every row whose death in bulk is committed or our own, if some snapshot may still see the row. The `Age`
/// says which snapshots see its death.
pub fn dying(storage_id: u64, horizon: &Horizon) -> Vec<(u64, Age)> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, &(0..u64::MAX), |cursor, entry| {
            if cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                let age = horizon.age_of(cursor);
                if age != Age::Everybody {
                    let rows = rows_in(entry.first_row, entry.bits, 0..u64::MAX);
                    found.extend(rows.map(|row| (row, age)));
                }
            }
            true
        });
    }
    found
}

/// Every row whose death in bulk is committed or our own. The `Age` says which snapshots see its death.
pub fn buried(storage_id: u64, oldest_xmin: TransactionId) -> Vec<(u64, Age)> {
    let mut found = Vec::new();
    for_each_dead(storage_id, &(0..u64::MAX), |row, by| found.push((row, Age::of(by, oldest_xmin))));

    found
}

/// The TID that has taken the place of a row that is dead to `snapshot`. None if the row is not dead.
pub unsafe fn latest(storage_id: u64, row: u64, snapshot: Snapshot) -> Option<ItemPointerData> {
    let mut found = None;
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, &(row..row + 1), |cursor, entry| {
            if entry.has(row) && sees(cursor, snapshot) {
                found = Some(entry.successor(row));
            }
            found.is_none()
        });
    }
    found
}
