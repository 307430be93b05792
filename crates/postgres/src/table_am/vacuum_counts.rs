//! How many rows there are after VACUUM, in `pg_class` and in the server's statistics.
//!
//! Called by `vacuum`. Heap's own vacuum knows nothing of rows in stripes, and guesses those in pages that it
//! has not read from the row count before, which is of all rows. So rows of stripes are counted in the
//! directory, without dead ones, and hot rows in their pages (`hot_rows`). What counts as dead is what a
//! later VACUUM has something to do for: a row of a stripe does not any more once its index entries are gone,
//! though it stays until the stripe is rewritten. Invariant: a table that never had a row number has heap's
//! figures.

use pgrx::pg_sys::{self, BlockNumber, BufferAccessStrategy, Oid, Relation, TransactionId};

use super::hot_rows;
use crate::compat;
use crate::host::relation;
use crate::storage::directory::StripeEntry;
use crate::storage::row_proxy::{self, DeadToAll, Tombstones};
use crate::storage::{directory_scan, metapage};

/// Heap pages that are read to count their rows.
const PAGES: u32 = 8192;

/// Rows in stripes.
#[derive(Default)]
pub(super) struct ColdCount {
    pub live: f64,
    /// Dead, not before a given transaction.
    pub dead: f64,
}

/// Counts the rows of some stripes, given those that are dead.
pub(super) unsafe fn cold(
    storage_id: u64,
    stripes: &[StripeEntry],
    tombstones: &mut Tombstones,
    before: TransactionId,
) -> ColdCount {
    // SAFETY: catalog look-ups.
    let done = unsafe { DeadToAll::of(storage_id, before) };
    let mut count = ColdCount::default();
    for entry in stripes {
        let dead = tombstones.among(entry.first_row..entry.end_row());
        count.live += f64::from(entry.row_count) - dead.len() as f64;
        count.dead += dead.iter().filter(|&&row| !done.contains(row)).count() as f64;
    }
    count
}

/// All rows in stripes that are committed, or our own, dead ones included.
pub(super) unsafe fn cold_row_count(rel: Relation) -> f64 {
    // SAFETY: rel is open.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return 0.0 };
        directory_scan::row_count(storage_id, &raw mut pg_sys::SnapshotSelfData)
    }
}

/// What indexes had before, and what is known since.
pub(super) struct Counts {
    indexes: Vec<(Oid, f64)>,
    /// Entries of indexes that were counted when they were swept.
    entries: Vec<(Oid, f64)>,
}

impl Counts {
    /// Before heap's vacuum.
    pub unsafe fn before(rel: Relation) -> Self {
        // SAFETY: rel is open.
        let indexes = unsafe { relation::indexes(rel) }.into_iter();
        // SAFETY: catalog look-ups.
        let known = indexes.map(|index| (index, unsafe { row_estimate(index) }));
        Self { indexes: known.collect(), entries: Vec::new() }
    }

    /// The indexes' access methods have counted what is left.
    pub fn swept(&mut self, index: Oid, entries: f64, is_estimate: bool) {
        if !is_estimate {
            self.entries.push((index, entries));
        }
    }

    /// Writes what is there now; `cut`: the file is shorter than heap's vacuum has left it.
    pub unsafe fn correct(&self, rel: Relation, cut: bool, strategy: BufferAccessStrategy) {
        // SAFETY: catalog look-ups and the server's own in-place update.
        unsafe {
            let Some(storage_id) = metapage::storage_id(rel) else { return };
            if !has_row_numbers(rel) && !cut {
                return;
            }
            pg_sys::CommandCounterIncrement();
            let heap_rows = row_estimate((*rel).rd_id).max(0.0);
            let hot = hot_rows::count(rel, PAGES, strategy);
            let now = &raw mut pg_sys::SnapshotSelfData;
            let stripes = directory_scan::visible(storage_id, now);
            let mut tombstones = row_proxy::tombstones(rel, storage_id, now, usize::MAX).unwrap_or_default();
            let oldest_xmin = pg_sys::GetOldestNonRemovableTransactionId(rel);
            let cold = cold(storage_id, &stripes, &mut tombstones, oldest_xmin);
            let rows = hot.live + cold.live;
            set_counts(rel, rows);
            for &(index, before) in &self.indexes {
                self.correct_index(index, rows, before, heap_rows);
            }
            compat::set_row_counts(rel, rows as i64, (hot.dead + cold.dead) as i64);
        }
    }

    /// An index of all rows has as many entries. A partial one has what was counted, else what heap's vacuum
    /// says, which is at most the number of rows that it knows of: where that may have cut the figure off, it
    /// is the one before.
    unsafe fn correct_index(&self, index: Oid, rows: f64, before: f64, heap_rows: f64) {
        // SAFETY: as `correct`; the index is not dropped while its table is locked.
        unsafe {
            let open = pg_sys::index_open(index, pg_sys::RowExclusiveLock as i32);
            let known = row_estimate(index);
            let entries = if pg_sys::RelationGetIndexPredicate(open).is_null() {
                rows
            } else if let Some(&(_, counted)) = self.entries.iter().find(|(of, _)| *of == index) {
                counted.min(rows)
            } else if known < heap_rows {
                known
            } else {
                known.max(before).min(rows)
            };
            if known != entries && (known >= 0.0 || entries > 0.0) {
                set_counts(open, entries);
            }
            pg_sys::index_close(open, pg_sys::NoLock as i32);
        }
    }
}

/// While it lives, heap's vacuum is told that there were no rows, so that it guesses none in pages that it does
/// not read.
pub(super) struct Hidden {
    rel: Relation,
    rows: f32,
}

impl Hidden {
    /// Hides the rows of a table that has, or had, rows in stripes.
    pub unsafe fn of(rel: Relation) -> Self {
        // SAFETY: rel is open; this is the relation cache's copy.
        unsafe {
            let form = (*rel).rd_rel;
            let rows = (*form).reltuples;
            if rows > 0.0 && has_row_numbers(rel) {
                (*form).reltuples = 0.0;
            }
            Self { rel, rows }
        }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // SAFETY: the relation is open, also while an ERROR unwinds.
        unsafe { (*(*self.rel).rd_rel).reltuples = self.rows }
    }
}

/// Whether the table has, or had, rows in stripes.
unsafe fn has_row_numbers(rel: Relation) -> bool {
    // SAFETY: rel is open.
    unsafe { metapage::read(rel).is_some_and(|(_, next_row)| next_row > 0) }
}

/// `pg_class.reltuples`.
unsafe fn row_estimate(relation: Oid) -> f64 {
    // SAFETY: a catalog look-up.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, relation.into());
        if tuple.is_null() {
            return 0.0;
        }
        let rows = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>()).reltuples;
        pg_sys::ReleaseSysCache(tuple);
        f64::from(rows)
    }
}

/// Writes to pg_class in place how many rows and pages a relation has, and leaves its horizons alone.
pub(super) unsafe fn set_counts(rel: Relation, rows: f64) {
    let (no_xid, no_multi) = (pg_sys::InvalidTransactionId, pg_sys::MultiXactId::from(0u32));
    let untold = std::ptr::null_mut();
    // SAFETY: rel is open, and locked so that nobody else writes this.
    unsafe {
        let pages = relation::block_count(rel);
        let mut visible: BlockNumber = 0;
        let is_index = (*(*rel).rd_rel).relkind == pg_sys::RELKIND_INDEX as std::ffi::c_char;
        if !is_index {
            pg_sys::visibilitymap_count(rel, &raw mut visible, std::ptr::null_mut());
        }
        let has_index = !is_index && !relation::indexes(rel).is_empty();
        let visible = visible.min(pages);
        pg_sys::vac_update_relstats(
            rel, pages, rows, visible, has_index, no_xid, no_multi, untold, untold, false,
        );
    }
}
