//! Which cold rows are dead, and to whom.
//!
//! Called by all code that reads rows. A row is dead if a tombstone or a delete bitmap (`delete_bitmap`) says
//! so. This file joins the two.
//! - A scan asks for the tombstones that its snapshot sees: of the whole table if they are few, else of the
//!   rows that it is going to read.
//! - A fetch asks about one row, under whatever kind of snapshot it has.
//!
//! A row's live proxy answers for the row (protocol points 6 and 9). So a SnapshotDirty learns which
//! transaction is changing the row, and a serializable reader learns whose change it misses.
//!
//! Invariant: a serializable reader has its predicate lock before it asks here. A writer looks for such locks
//! after it has buried the row. So one of them meets the other.

use std::ops::Range;

use pgrx::pg_sys::{self, ItemPointerData, Relation, Snapshot, SnapshotType, TransactionId};

use super::{Proxy, make, suspects};
use crate::host::error;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::catalog::side_table::{Compare, Cursor, SideTable};
use crate::storage::change::delete_bitmap::{self, Mask};
use crate::storage::directory::StripeEntry;
use crate::storage::directory::age::Age;
use crate::storage::directory::rewrite_horizon::Horizon;

/// The row numbers of one storage id that are dead to a snapshot. Nothing is dead by default.
#[derive(Default)]
pub struct Tombstones {
    /// Rows that are dead by proxies, ascending: all of them, or those in `window`.
    rows: Vec<u64>,
    /// Rows that are dead by bitmaps: all of them, or those in `mask_window`.
    masks: Vec<Mask>,
    /// Rows that are dead for other reasons (`add`), ascending.
    others: Vec<u64>,
    /// Where to look up rows outside the windows.
    source: Option<Source>,
    window: Range<u64>,
    mask_window: Range<u64>,
    /// All dead rows in the range that was asked for last.
    joined: Vec<u64>,
}

/// What tombstones are looked up by. Relation and snapshot live as long as the scan that asks.
struct Source {
    rel: Relation,
    storage_id: u64,
    snapshot: Snapshot,
}

/// Everything.
const ALL_ROWS: Range<u64> = 0..u64::MAX;
/// A scan reads up to this many proxies at its start. If there are more, it looks up those of the rows that
/// it reads.
const FEW: usize = 256;
/// The same for rows of `engine.delete_bitmap`, which are larger.
const FEW_MASKS: usize = 8;
/// At least this many rows have their proxies looked up at once.
const WINDOW: u64 = 4096;
/// At least this many rows have their bitmaps looked up at once.
const MASK_WINDOW: u64 = 1 << 18;

/// The window around some rows whose ends are multiples of `size`.
fn window_around(rows: &Range<u64>, size: u64) -> Range<u64> {
    rows.start / size * size..rows.end.div_ceil(size).saturating_mul(size)
}

impl Tombstones {
    /// The tombstones for a scan of `rel` under an MVCC snapshot, or one that is null or sees everything.
    /// Nothing is looked up twice.
    ///
    /// # Safety
    /// The snapshot is live.
    pub unsafe fn of_scan(rel: Open, storage_id: u64, snapshot: Snapshot) -> Self {
        // SAFETY: the snapshot is live, for as long as this is asked.
        unsafe {
            if sees_all(snapshot) {
                return Self::default();
            }
            let mut found =
                Self { source: Some(Source { rel: rel.as_ptr(), storage_id, snapshot }), ..Self::default() };
            if collect(&mut found.rows, rel, storage_id, snapshot, &ALL_ROWS, FEW) {
                found.window = ALL_ROWS;
            } else {
                found.rows.clear();
            }
            if let Some(masks) = delete_bitmap::masks(rel, storage_id, snapshot, &ALL_ROWS, FEW_MASKS) {
                found.masks = masks;
                found.mask_window = ALL_ROWS;
            }
            found
        }
    }

    /// Adds further dead rows, which are given in order.
    pub fn add(&mut self, others: Vec<u64>) {
        self.others = others;
    }

    /// Whether this row is dead.
    pub fn contains(&mut self, row: u64) -> bool {
        if self.source.is_none() && self.rows.is_empty() && self.masks.is_empty() && self.others.is_empty() {
            return false;
        }
        self.look_up(&(row..row + 1));
        self.rows.binary_search(&row).is_ok()
            || self.masks.iter().any(|mask| mask.contains(row))
            || self.others.binary_search(&row).is_ok()
    }

    /// The dead rows among these, ascending.
    pub fn among(&mut self, rows: Range<u64>) -> &[u64] {
        self.look_up(&rows);
        let single = within(&self.rows, &rows);
        self.joined.clear();
        within(&self.others, &rows).iter().for_each(|&row| push(&mut self.joined, row));
        for mask in &self.masks {
            mask.among(rows.clone()).for_each(|row| push(&mut self.joined, row));
        }
        if self.joined.is_empty() {
            return single;
        }
        single.iter().for_each(|&row| push(&mut self.joined, row));
        self.joined.sort_unstable();
        self.joined.dedup();
        &self.joined
    }

    /// Makes the windows hold these rows.
    fn look_up(&mut self, rows: &Range<u64>) {
        let Some(Source { rel, storage_id, snapshot }) = self.source else { return };
        let lacks = |window: &Range<u64>| rows.start < window.start || window.end < rows.end;
        // SAFETY: `of_scan`'s caller keeps both alive.
        unsafe {
            if lacks(&self.window) {
                self.window = window_around(rows, WINDOW);
                self.rows.clear();
                collect(&mut self.rows, Open::of(rel), storage_id, snapshot, &self.window, usize::MAX);
            }
            if lacks(&self.mask_window) {
                self.mask_window = window_around(rows, MASK_WINDOW);
                let found =
                    delete_bitmap::masks(Open::of(rel), storage_id, snapshot, &self.mask_window, usize::MAX);
                self.masks = found.unwrap_or_default();
            }
        }
    }
}

/// The numbers of a sorted list that lie among these.
fn within<'a>(list: &'a [u64], rows: &Range<u64>) -> &'a [u64] {
    let from = list.partition_point(|&row| row < rows.start);
    let to = list.partition_point(|&row| row < rows.end);
    list.get(from..to).unwrap_or_default()
}

/// Reads the tombstones of these rows. False: there are more than `limit` proxies to look at.
unsafe fn collect(
    found: &mut Vec<u64>,
    rel: Open,
    storage_id: u64,
    snapshot: Snapshot,
    rows: &Range<u64>,
    limit: usize,
) -> bool {
    let mut seen = 0;
    // SAFETY: see `SideTable::walk`; rel is open and the snapshot live.
    unsafe {
        if SideTable::RowProxy.oids_if_present().is_none() {
            return true;
        }
        let serializable = predicate_locks::serializable_reads(rel, snapshot);
        let from = (rows.start > 0).then_some((Compare::AtLeast, rows.start));
        SideTable::RowProxy.walk(storage_id, from, false, |cursor| {
            let proxy = Proxy::at(cursor);
            if proxy.row >= rows.end {
                return false;
            }
            if proxy.dead {
                if cursor.satisfies(snapshot) {
                    push(found, proxy.row);
                }
            } else if serializable {
                live_satisfies(rel, cursor, snapshot, true);
            }
            seen += 1;
            seen <= limit
        });
    }
    seen <= limit
}

fn push(rows: &mut Vec<u64>, row: u64) {
    if rows.last() == Some(&row) {
        return;
    }
    if rows.try_reserve(1).is_err() {
        error::raise_plain(vector::Error::OutOfMemory { bytes: rows.len() * 16 });
    }
    rows.push(row);
}

/// All rows of `storage_id`, the present file of `rel`, that are dead to `snapshot`. None if there are more
/// than `limit` proxies or rows of `engine.delete_bitmap` to look at. Snapshots that wait for writers ask row
/// by row (`is_there`).
///
/// # Safety
/// The snapshot is live.
pub unsafe fn tombstones(rel: Open, storage_id: u64, snapshot: Snapshot, limit: usize) -> Option<Tombstones> {
    let mut found = Tombstones::default();
    // SAFETY: the snapshot is live.
    unsafe {
        if !sees_all(snapshot) {
            if !collect(&mut found.rows, rel, storage_id, snapshot, &ALL_ROWS, limit) {
                return None;
            }
            let most = if limit == usize::MAX { limit } else { limit.min(FEW_MASKS) };
            found.masks = delete_bitmap::masks(rel, storage_id, snapshot, &ALL_ROWS, most)?;
        }
        Some(found)
    }
}

/// Whether a row of a stripe that `snapshot` sees is alive for it. A SnapshotDirty that already names a
/// loader is left as it is.
pub unsafe fn is_there(rel: Open, storage_id: u64, row: u64, snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    let (kind, xmin, xmax) = unsafe { ((*snapshot).snapshot_type, (*snapshot).xmin, (*snapshot).xmax) };
    let loading = kind == SnapshotType::SNAPSHOT_DIRTY && xmin != pg_sys::InvalidTransactionId;
    // SAFETY: as above. What a dirty snapshot says after the walk is what the live proxy said.
    unsafe {
        if sees_all(snapshot) || loading || SideTable::RowProxy.oids_if_present().is_none() {
            return true;
        }
        if suspects::is_certainly_alive(storage_id, row) {
            return true;
        }
        if delete_bitmap::is_dead(rel, storage_id, row, snapshot) {
            return false;
        }
        if kind == SnapshotType::SNAPSHOT_DIRTY && (*snapshot).xmax != xmax {
            // The snapshot says now whom to wait for. The row's proxy, which a trigger may have locked, must
            // not overwrite this.
            return true;
        }
        let serializable = predicate_locks::serializable_reads(rel, snapshot);
        // A live proxy answers for its row, wherever it was found.
        let known = make::known_place(storage_id, row).and_then(|place| {
            SideTable::RowProxy.at(place, |cursor| {
                let proxy = Proxy::at(cursor);
                let is_it = !proxy.dead && (proxy.storage_id, proxy.row) == (storage_id, row);
                is_it.then(|| live_satisfies(rel, cursor, snapshot, serializable))
            })
        });
        if let Some(seen) = known {
            return seen;
        }
        let mut live = None;
        let mut dead = false;
        SideTable::RowProxy.walk(storage_id, Some((Compare::Equal, row)), false, |cursor| {
            if Proxy::at(cursor).dead {
                dead |= cursor.satisfies(snapshot);
                if kind == SnapshotType::SNAPSHOT_DIRTY {
                    (*snapshot).xmin = xmin;
                    (*snapshot).xmax = xmax;
                }
            } else {
                live = Some(live_satisfies(rel, cursor, snapshot, serializable));
            }
            live.is_none()
        });
        live.unwrap_or(!dead)
    }
}

unsafe fn live_satisfies(rel: Open, cursor: &Cursor, snapshot: Snapshot, serializable: bool) -> bool {
    // SAFETY: a serializable reader learns, as of a heap tuple, whose change of the row it misses, on the
    // user's table.
    unsafe {
        cursor.judge(|tuple, buf| {
            let seen = pg_sys::HeapTupleSatisfiesVisibility(tuple, snapshot, buf);
            if serializable {
                pg_sys::HeapCheckForSerializableConflictOut(seen, rel.as_ptr(), tuple, buf, snapshot);
            }
            seen
        })
    }
}

unsafe fn sees_all(snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is null or live. Without one every row counts, as in a scan under SnapshotAny.
    unsafe { snapshot.is_null() || (*snapshot).snapshot_type == SnapshotType::SNAPSHOT_ANY }
}

/// Every row whose death is committed or our own, in order. The `Age` says which snapshots see its death;
/// with `Everybody`, no snapshot sees the row any more.
pub fn buried(storage_id: u64, oldest_xmin: TransactionId) -> Vec<(u64, Age)> {
    // SAFETY: see `SideTable::walk`.
    unsafe {
        let mut found = delete_bitmap::buried(storage_id, oldest_xmin);
        if SideTable::RowProxy.oids_if_present().is_some() {
            SideTable::RowProxy.walk(storage_id, None, false, |cursor| {
                let proxy = Proxy::at(cursor);
                if proxy.dead && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                    found.push((proxy.row, Age::of(cursor.inserter(), oldest_xmin)));
                }
                true
            });
        }
        found.sort_by_key(|(row, _)| *row);
        found.dedup_by_key(|(row, _)| *row);
        found
    }
}

/// Every row whose death is committed or our own, in order, if some snapshot may still see the row. The `Age`
/// says which snapshots see its death.
pub fn dying(storage_id: u64, horizon: &Horizon) -> Vec<(u64, Age)> {
    // SAFETY: see `SideTable::walk`.
    unsafe {
        let mut found = delete_bitmap::dying(storage_id, horizon);
        if SideTable::RowProxy.oids_if_present().is_some() {
            SideTable::RowProxy.walk(storage_id, None, false, |cursor| {
                let proxy = Proxy::at(cursor);
                if proxy.dead && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                    let age = horizon.age_of(cursor);
                    if age != Age::Everybody {
                        found.push((proxy.row, age));
                    }
                }
                true
            });
        }
        found.sort_by_key(|(row, _)| *row);
        found.dedup_by_key(|(row, _)| *row);
        found
    }
}

/// Calls `with` for each of these rows that is dead by a tombstone which is committed or our own. False:
/// there are more than `limit` proxies to look at.
pub fn for_each_dead(storage_id: u64, rows: &Range<u64>, limit: usize, mut with: impl FnMut(u64)) -> bool {
    let mut seen = 0;
    // SAFETY: see `SideTable::walk`.
    unsafe {
        SideTable::RowProxy.walk(storage_id, Some((Compare::AtLeast, rows.start)), false, |cursor| {
            let proxy = Proxy::at(cursor);
            if proxy.row >= rows.end {
                return false;
            }
            if proxy.dead && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                with(proxy.row);
            }
            seen += 1;
            seen <= limit
        });
    }
    seen <= limit
}

/// How many rows of each of these stripes of `rel` are dead by a death that is committed or our own.
/// Tombstones of stripes that were replaced are not counted.
pub fn count<'a>(rel: Open, stripes: impl Iterator<Item = &'a StripeEntry>) -> Vec<usize> {
    let mut found: Option<Tombstones> = None;
    // SAFETY: the snapshot is a constant of the server's.
    unsafe {
        let now = &raw mut pg_sys::SnapshotSelfData;
        let of = |entry: &StripeEntry| {
            let all = || tombstones(rel, entry.storage_id, now, usize::MAX).unwrap_or_default();
            found.get_or_insert_with(all).among(entry.first_row..entry.end_row()).len()
        };
        stripes.map(of).collect()
    }
}

/// The TID that has taken the place of a row that is dead to `snapshot`. None if the row is not dead.
pub unsafe fn latest(storage_id: u64, row: u64, snapshot: Snapshot) -> Option<ItemPointerData> {
    // SAFETY: see `SideTable::walk`.
    unsafe {
        let mut found = delete_bitmap::latest(storage_id, row, snapshot);
        SideTable::RowProxy.walk(storage_id, Some((Compare::Equal, row)), false, |cursor| {
            let proxy = Proxy::at(cursor);
            if found.is_none() && proxy.dead && cursor.satisfies(snapshot) {
                found = Some(proxy.successor);
            }
            found.is_none()
        });
        found
    }
}
