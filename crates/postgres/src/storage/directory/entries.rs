//! Looking things up in `engine.stripe`.
//!
//! Called by scans (`visible`, `survey`), TID fetches (`find`) and VACUUM. The catalog is read with
//! SnapshotAny, and each row is judged here, in place, by the caller's snapshot. So reads take no predicate
//! locks on the catalog (protocol point 9). A SnapshotDirty comes back with xmin or xmax set to a transaction
//! that is still at work on the stripe (point 6).
//!
//! Invariant: nothing here waits or decodes, because the caller may hold a lock on an index page.

use std::cell::Cell;
use std::collections::HashSet;

use pgrx::pg_sys::{self, BlockNumber, CommandId, ItemPointerData, Snapshot, TM_Result, TransactionId};

use super::StripeEntry;
use super::age::Age;
use super::cursor::walk;
use super::places;
use super::rewrite_horizon::Horizon;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::catalog::side_table::{Cursor, SideTable};
use crate::storage::directory;
use crate::storage::file::metapage;
use crate::storage::file::pages::BlockRun;
use crate::storage::file::tid;

/// Calls `with` for each stripe that `snapshot` sees, in order of first row numbers. Reservations are left
/// out.
unsafe fn each(
    storage_id: u64,
    snapshot: Snapshot,
    with_summary: bool,
    mut with: impl FnMut(&Cursor, StripeEntry),
) {
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, None, |cursor| {
            if cursor.satisfies(snapshot) {
                let entry = cursor.entry(with_summary);
                if !entry.reserved_only {
                    with(cursor, entry);
                }
            }
            true
        });
    }
}

/// Stripes that `snapshot` sees, ordered by first row number.
pub unsafe fn visible(storage_id: u64, snapshot: Snapshot) -> Vec<StripeEntry> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe { each(storage_id, snapshot, true, |_, entry| found.push(entry)) }
    found
}

/// As `visible`, but without summaries, which can be long and lie elsewhere.
pub unsafe fn visible_without_summaries(storage_id: u64, snapshot: Snapshot) -> Vec<StripeEntry> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe { each(storage_id, snapshot, false, |_, entry| found.push(entry)) }
    found
}

/// The stripes that this transaction sees as of now, each with the age of its rows. For a stripe that was put
/// elsewhere it is the age of the oldest version.
pub fn visible_by_age(storage_id: u64, horizon: &Horizon) -> Vec<(StripeEntry, Age)> {
    let mut found = Vec::new();
    let mut old = HashSet::new();
    // SAFETY: see `walk`. The inserter of a visible row has committed or is this transaction.
    unsafe {
        walk(storage_id, None, |cursor| {
            if cursor.was_rolled_back() {
                return true;
            }
            let is_visible = cursor.satisfies(&raw mut pg_sys::SnapshotSelfData);
            let entry = cursor.entry(is_visible);
            if !entry.reserved_only {
                let age = horizon.age_of(cursor);
                if age == Age::Everybody {
                    old.insert(entry.first_row);
                }
                if is_visible {
                    found.push((entry, age));
                }
            }
            true
        });
    }
    for (entry, age) in &mut found {
        if old.contains(&entry.first_row) {
            *age = Age::Everybody;
        }
    }
    found.sort_by_key(|(entry, _)| entry.first_row);
    found
}

/// Every version of every row, dead ones included, without summaries. Only rows of rolled-back writers are
/// left out. Pages that no version names belong to nobody, or to a writer that has not yet put its stripe
/// into the directory.
pub fn all_versions(storage_id: u64) -> Vec<StripeEntry> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, None, |cursor| {
            if !cursor.was_rolled_back() {
                found.push(cursor.entry(false));
            }
            true
        });
    }
    found
}

/// The stripe that holds row number `row` and that `snapshot` sees, without its summary. A reservation is
/// returned only if the snapshot sees it and sees no stripe: its rows are in a loader's memory, or were never
/// written. The xmin and xmax of a SnapshotDirty are set as for a heap tuple if something is returned, and
/// are clear if nothing is.
///
/// Under a snapshot that judges by now, reservations are looked at *first*, unless the stripe is known
/// already. A loader that commits between the two walks takes its reservation away when its stripes are in
/// place, so the second walk finds them. In the other order a unique check could find neither, and let a
/// duplicate in.
pub unsafe fn find(storage_id: u64, row: u64, snapshot: Snapshot) -> Option<StripeEntry> {
    // SAFETY: see `walk`. Stripes do not overlap but with other versions of themselves, so the first ones
    // from the row on down have it, or none has. A row of a rolled-back writer is void even to SnapshotAny:
    // its pages may be gone.
    unsafe {
        let replaced = Cell::new(false);
        let is_any = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_ANY;
        let look = |reserved_only| find_by_walk(storage_id, row, snapshot, reserved_only, &replaced);
        let is_mvcc = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC;
        if is_mvcc && let Some(entry) = places::settled(storage_id, row, snapshot) {
            return Some(entry);
        }
        let known = places::find(storage_id, row, |cursor, entry| {
            let is_replaced = is_any && entry.replaced_by != pg_sys::InvalidTransactionId;
            (!is_replaced && !cursor.was_rolled_back() && cursor.satisfies(snapshot)).then_some(entry)
        });
        if known.is_some() {
            return known;
        }
        if is_mvcc {
            let stored = look(false);
            // A replaced stripe has no reservation. Index entries of such stripes are met until the next
            // VACUUM.
            return if stored.is_some() || replaced.get() { stored } else { look(true) };
        }
        let reserved = look(true);
        let (xmin, xmax) = ((*snapshot).xmin, (*snapshot).xmax);
        let mut stored = look(false);
        if stored.is_none() && replaced.get() {
            // The stripe was put elsewhere after the walk had looked at the index and before it looked at the
            // row. By now the index has an entry of the new version.
            stored = look(false);
        }
        if stored.is_some() {
            return stored;
        }
        match reserved {
            Some(_) if (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY => {
                (*snapshot).xmin = xmin;
                (*snapshot).xmax = xmax;
            }
            Some(_) => {}
            None => clear_dirty(snapshot),
        }
        reserved
    }
}

/// One of the two walks of `find`. Notes in `replaced` whether it has met a version that was replaced.
unsafe fn find_by_walk(
    storage_id: u64,
    row: u64,
    snapshot: Snapshot,
    reserved_only: bool,
    replaced: &Cell<bool>,
) -> Option<StripeEntry> {
    let mut found = None;
    // SAFETY: as `find`.
    unsafe {
        let is_any = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_ANY;
        walk(storage_id, Some(row), |cursor| {
            let entry = cursor.entry(false);
            if entry.reserved_only != reserved_only || cursor.was_rolled_back() {
                return true;
            }
            if !entry.covers(row) {
                return reserved_only;
            }
            let is_replaced = !reserved_only && entry.replaced_by != pg_sys::InvalidTransactionId;
            if !cursor.satisfies(snapshot) {
                replaced.set(replaced.get() || is_replaced);
            } else if is_any && is_replaced {
                // Its pages may be freed at any time: only where there is no later version.
                found = Some(entry);
                return true;
            } else {
                if !reserved_only {
                    places::remember(&entry, cursor.place());
                }
                found = Some(entry);
                return false;
            }
            true
        });
    }
    found
}

/// Why the rows of a stripe cannot be changed.
pub enum Unchangeable {
    /// The stripe is there, but this command does not see it.
    Invisible,
    /// There is no such stripe. If there was one, it is given.
    Gone(Option<Box<StripeEntry>>),
}

/// The stripe that holds row number `row`, if command `cid` of this transaction may change its rows, without
/// its summary. Also whether another transaction, which has committed, has inserted it. Reservations are
/// ignored.
pub fn find_for_change(
    storage_id: u64,
    row: u64,
    cid: CommandId,
) -> Result<(StripeEntry, bool), Unchangeable> {
    match look_for_change(storage_id, row, cid) {
        Err(Unchangeable::Gone(Some(_))) => look_for_change(storage_id, row, cid),
        found => found,
    }
}

fn look_for_change(storage_id: u64, row: u64, cid: CommandId) -> Result<(StripeEntry, bool), Unchangeable> {
    let mut found = Err(Unchangeable::Gone(None));
    // SAFETY: see `walk`.
    unsafe {
        let judge =
            |cursor: &Cursor| cursor.judge(|tuple, buf| pg_sys::HeapTupleSatisfiesUpdate(tuple, cid, buf));
        let is_own = |cursor: &Cursor| pg_sys::TransactionIdIsCurrentTransactionId(cursor.inserter());
        let known = places::find(storage_id, row, |cursor, entry| {
            let there = matches!(judge(cursor), TM_Result::TM_Ok | TM_Result::TM_BeingModified);
            there.then(|| (entry, !is_own(cursor)))
        });
        if let Some(known) = known {
            return Ok(known);
        }
        walk(storage_id, Some(row), |cursor| {
            let entry = cursor.entry(false);
            if entry.reserved_only || !entry.covers(row) || cursor.was_rolled_back() {
                return true;
            }
            match judge(cursor) {
                TM_Result::TM_Ok | TM_Result::TM_BeingModified => {
                    found = Ok((entry, !is_own(cursor)));
                    return false;
                }
                TM_Result::TM_Invisible => found = Err(Unchangeable::Invisible),
                // If the stripe was put elsewhere, the walk meets another version.
                _ => found = Err(Unchangeable::Gone(Some(Box::new(entry)))),
            }
            true
        });
    }
    found
}

/// Resets what a SnapshotDirty reports.
pub unsafe fn clear_dirty(snapshot: Snapshot) {
    // SAFETY: snapshot is live; only snapshots of this type are written to.
    unsafe {
        if (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY {
            (*snapshot).xmin = pg_sys::InvalidTransactionId;
            (*snapshot).xmax = pg_sys::InvalidTransactionId;
            (*snapshot).speculativeToken = 0;
        }
    }
}

/// Whether this transaction has reserved `row` (and not rolled that back).
pub fn is_ours(storage_id: u64, row: u64) -> bool {
    let mut ours = false;
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, Some(row), |cursor| {
            ours = cursor.entry(false).covers(row)
                && pg_sys::TransactionIdIsCurrentTransactionId(cursor.inserter())
                && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData);
            !ours
        });
    }
    ours
}

/// The transactions that have taken a version of the stripe with `row` out of the directory, to replace the
/// stripe or to put it elsewhere. Some may still run or may have been rolled back.
pub fn replacers(storage_id: u64, row: u64) -> Vec<TransactionId> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, Some(row), |cursor| {
            let entry = cursor.entry(false);
            if entry.reserved_only || cursor.was_rolled_back() {
                return true;
            }
            if entry.covers(row) && entry.replaced_by != pg_sys::InvalidTransactionId {
                found.push(entry.replaced_by);
            }
            entry.covers(row)
        });
    }
    found
}

/// Stripes that this transaction sees as of now, with the TIDs of their rows of the directory. They are
/// ordered by first row number.
pub fn present(storage_id: u64) -> Vec<(StripeEntry, ItemPointerData)> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        let now = &raw mut pg_sys::SnapshotSelfData;
        each(storage_id, now, true, |cursor, entry| found.push((entry, cursor.place())));
    }
    found
}

/// The TID of a stripe's row of the directory that this transaction sees as of now.
pub(super) fn stored_at(entry: &StripeEntry) -> Vec<ItemPointerData> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(entry.storage_id, Some(entry.first_row), |cursor| {
            let other = cursor.entry(false);
            if !other.reserved_only
                && other.first_row == entry.first_row
                && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData)
            {
                found.push(cursor.place());
            }
            other.first_row >= entry.first_row
        });
    }
    found
}

/// OID of the directory.
pub fn catalog() -> pg_sys::Oid {
    directory::oids().table
}

/// How many pages have stripes that nobody sees any more, and whose rows a VACUUM of the catalog would take
/// away.
pub fn dead_pages(storage_id: u64, oldest_xmin: TransactionId) -> u32 {
    let mut pages: u32 = 0;
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, None, |cursor| {
            let state = cursor.judge(|tuple, buf| pg_sys::HeapTupleSatisfiesVacuum(tuple, oldest_xmin, buf));
            if state == pg_sys::HTSV_Result::HEAPTUPLE_DEAD && !cursor.was_rolled_back() {
                pages = pages.saturating_add(cursor.entry(false).run.block_count);
            }
            true
        });
    }
    pages
}

/// What a scan of a whole table needs to know, from one walk over the directory.
pub struct Survey {
    /// Stripes that the snapshot sees, ordered by first row number.
    pub visible: Vec<StripeEntry>,
    /// The blocks of every version of every row.
    pub runs: Vec<BlockRun>,
}

/// The storage id of a table, if a row number of its file was ever handed out. Before that the directory has
/// no row of it. The counter is raised before the directory gets a row, so a snapshot that is older than this
/// look sees none.
fn in_use(rel: Open) -> Option<u64> {
    metapage::read(rel).filter(|&(_, next_row)| next_row > 0).map(|(storage_id, _)| storage_id)
}

/// Surveys the directory for a scan of `rel`. Also tells a serializable transaction about versions that it
/// does not see. A caller that prunes by summaries asks for them.
pub unsafe fn survey(rel: Open, snapshot: Snapshot, with_summaries: bool) -> Survey {
    let mut survey = Survey { visible: Vec::new(), runs: Vec::new() };
    // SAFETY: see `walk`; the conflict check happens on the user's table with the loader's xid.
    unsafe {
        let Some(storage_id) = in_use(rel) else { return survey };
        let serializable = predicate_locks::serializable_reads(rel, snapshot);
        walk(storage_id, None, |cursor| {
            let seen = cursor.satisfies(snapshot);
            if !seen {
                if cursor.was_rolled_back() {
                    return true;
                }
                if serializable {
                    cursor.report_missed(rel, snapshot);
                }
            }
            let entry = cursor.entry(seen && with_summaries);
            survey.runs.push(entry.run);
            if seen && !entry.reserved_only {
                survey.visible.push(entry);
            }
            true
        });
    }
    survey.visible.sort_by_key(|entry| entry.first_row);
    survey
}

/// Tells a serializable transaction about every version that owns `row` and that its snapshot does not see.
pub unsafe fn report_missed(rel: Open, storage_id: u64, row: u64, snapshot: Snapshot) {
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, Some(row), |cursor| {
            if cursor.entry(false).covers(row) && !cursor.satisfies(snapshot) {
                cursor.report_missed(rel, snapshot);
            }
            true
        });
    }
}

/// Stripes that some snapshot may still see, and whether each is live now, ordered by first row number.
/// `oldest_xmin` is the oldest transaction that is still running. For a stripe that was put elsewhere it is
/// the last version.
pub fn not_dead(storage_id: u64, oldest_xmin: TransactionId) -> Vec<(StripeEntry, bool)> {
    use pg_sys::HTSV_Result as V;
    let mut found = Vec::new();
    // SAFETY: see `walk`; the tuple's buffer is pinned by the slot and locked while the tuple is judged.
    unsafe {
        walk(storage_id, None, |cursor| {
            let entry = cursor.entry(false);
            if entry.reserved_only {
                return true;
            }
            let state = cursor.judge(|tuple, buf| pg_sys::HeapTupleSatisfiesVacuum(tuple, oldest_xmin, buf));
            match state {
                V::HEAPTUPLE_LIVE => found.push((entry, true)),
                V::HEAPTUPLE_INSERT_IN_PROGRESS if cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) => {
                    found.push((entry, true));
                }
                V::HEAPTUPLE_DELETE_IN_PROGRESS | V::HEAPTUPLE_RECENTLY_DEAD => found.push((entry, false)),
                _ => {}
            }
            true
        });
    }
    // If another version follows, the transaction that deleted this one has inserted that one.
    let inserters: Vec<_> = found.iter().map(|(entry, _)| (entry.first_row, entry.inserter)).collect();
    found.retain(|(entry, live)| *live || !inserters.contains(&(entry.first_row, entry.replaced_by)));
    found.sort_by_key(|(entry, _)| entry.first_row);
    found
}

/// TIDs of the reservations that this transaction has made and not rolled back.
pub(super) fn own_reservations(storage_id: u64) -> Vec<ItemPointerData> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, None, |cursor| {
            if cursor.entry(false).reserved_only
                && pg_sys::TransactionIdIsCurrentTransactionId(cursor.inserter())
                && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData)
            {
                found.push(cursor.place());
            }
            true
        });
    }
    found
}

/// As `all_versions`, each version with its block of the catalog, but read from the whole heap of the
/// catalog. For what VACUUM is about to free, index entries are not to be relied on (protocol point 7).
pub fn all_by_heap(storage_id: u64) -> Vec<(StripeEntry, BlockNumber)> {
    let mut found = Vec::new();
    // SAFETY: see `SideTable::each_by_heap`.
    unsafe {
        SideTable::Stripe.each_by_heap(|cursor| {
            if cursor.matches(storage_id, &[]) && !cursor.was_rolled_back() {
                found.push((cursor.entry(false), tid::block_of(cursor.place())));
            }
        });
    }
    found
}

/// How many rows the stripes have that `snapshot` sees.
pub unsafe fn row_count(storage_id: u64, snapshot: Snapshot) -> f64 {
    let mut rows = 0.0;
    // SAFETY: see `walk`.
    unsafe { each(storage_id, snapshot, false, |_, entry| rows += f64::from(entry.row_count)) }
    rows
}
