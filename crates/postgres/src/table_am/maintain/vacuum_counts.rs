//! Writes to `pg_class` and the server's statistics how many rows there are after VACUUM.
//!
//! Called by `vacuum`. Heap's own vacuum knows nothing of rows in stripes. For pages that it has not read it
//! guesses from the previous row count, which is of all rows. So rows of stripes are counted in the
//! directory, without dead ones, and hot rows in their pages (`hot_rows`).
//!
//! A row counts as dead if a later VACUUM has something to do for it. A row of a stripe does not count any
//! more once its index entries are gone, although it stays until the stripe is rewritten.
//!
//! Invariant: a table that never had a row number has heap's figures.

use pgrx::pg_sys::{self, BlockNumber, BufferAccessStrategy, Oid, Relation, TransactionId};

use super::hot_rows;
use crate::compat;
use crate::host::relation::{Open, with_index};
use crate::host::server_statistics;
use crate::storage::change::row_proxy::{self, DeadToAll, Tombstones};
use crate::storage::directory::StripeEntry;
use crate::storage::directory::entries;
use crate::storage::file::metapage;

/// How many heap pages are read to count their rows.
const PAGES: u32 = 8192;

/// Rows in stripes.
#[derive(Default)]
pub struct ColdCount {
    pub live: f64,
    /// Dead rows, without those that died before a given transaction.
    pub dead: f64,
}

/// Counts the rows of some stripes. `tombstones` are the dead ones.
pub fn cold(
    storage_id: u64,
    stripes: &[StripeEntry],
    tombstones: &mut Tombstones,
    before: TransactionId,
) -> ColdCount {
    let done = DeadToAll::of(storage_id, before);
    let mut count = ColdCount::default();
    for entry in stripes {
        let dead = tombstones.among(entry.first_row..entry.end_row());
        count.live += f64::from(entry.row_count) - dead.len() as f64;
        count.dead += dead.iter().filter(|&&row| !done.contains(row)).count() as f64;
    }
    count
}

/// How many rows the committed stripes and our own have, dead ones included.
pub fn cold_row_count(rel: Open) -> f64 {
    // SAFETY: the snapshot is a constant of the server's.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return 0.0 };
        entries::row_count(storage_id, &raw mut pg_sys::SnapshotSelfData)
    }
}

/// What `pg_class` said before, and what is known since.
pub(super) struct Counts {
    before: Figures,
    /// The figures that heap's vacuum wrote: hot rows only.
    heap: Figures,
    indexes: Vec<IndexCounts>,
    /// The entries of indexes, if these were counted when the index was swept.
    entries: Vec<(Oid, f64)>,
}

struct IndexCounts {
    index: Oid,
    before: Figures,
    heap: Figures,
}

impl Counts {
    /// Reads the figures before heap's vacuum.
    pub fn before(rel: Open) -> Self {
        let indexes = rel.indexes().into_iter();
        let known = indexes.map(|index| {
            // SAFETY: a catalog look-up.
            let before = unsafe { Figures::of(index) };
            IndexCounts { index, before, heap: before }
        });
        // SAFETY: a catalog look-up; rel is open.
        let before = unsafe { Figures::of(rel.oid()) };
        Self { before, heap: before, indexes: known.collect(), entries: Vec::new() }
    }

    /// Takes back the figures of heap's vacuum, right after it. Queries see them at once, and rows of stripes
    /// are missing in them. The remaining steps of VACUUM may take long or be cancelled.
    pub unsafe fn take_back(&mut self, rel: Open) {
        // SAFETY: rel is open, its indexes are not dropped while it is locked; the server's own in-place
        // update.
        unsafe {
            pg_sys::CommandCounterIncrement();
            self.heap = Figures::of(rel.oid());
            for counts in &mut self.indexes {
                counts.heap = Figures::of(counts.index);
            }
            if !has_row_numbers(rel) {
                return;
            }
            self.before.write(rel);
            for counts in self.indexes.iter().filter(|counts| counts.heap.rows != counts.before.rows) {
                with_index(counts.index, pg_sys::RowExclusiveLock, |open| counts.before.write(open));
            }
        }
    }

    /// Notes how many entries an index's access method has counted.
    pub fn swept(&mut self, index: Oid, entries: f64, is_estimate: bool) {
        if !is_estimate {
            self.entries.push((index, entries));
        }
    }

    /// Writes the figures of what is there now. `cut`: the file is shorter than heap's vacuum has left it.
    pub unsafe fn correct(&self, rel: Open, cut: bool, strategy: BufferAccessStrategy) {
        // SAFETY: catalog look-ups and the server's own in-place update.
        unsafe {
            let Some(storage_id) = metapage::storage_id(rel) else { return };
            if !has_row_numbers(rel) && !cut {
                return;
            }
            pg_sys::CommandCounterIncrement();
            let hot = hot_rows::count(rel, PAGES, strategy);
            let now = &raw mut pg_sys::SnapshotSelfData;
            let stripes = entries::visible_without_summaries(storage_id, now);
            let mut tombstones = row_proxy::tombstones(rel, storage_id, now, usize::MAX).unwrap_or_default();
            let oldest_xmin = rel.oldest_xmin();
            let cold = cold(storage_id, &stripes, &mut tombstones, oldest_xmin);
            let rows = hot.live + cold.live;
            set_counts(rel, rows);
            for counts in &self.indexes {
                self.correct_index(counts, rows);
            }
            server_statistics::set_row_counts(rel, rows as i64, (hot.dead + cold.dead) as i64);
        }
    }

    /// An index of all rows has as many entries as there are rows. A partial index has the entries that were
    /// counted, or else those that heap's vacuum says. That figure is at most the number of rows that heap's
    /// vacuum knows of. If this may have cut it off, the figure before counts.
    unsafe fn correct_index(&self, counts: &IndexCounts, rows: f64) {
        let (index, before, known) = (counts.index, counts.before.rows, counts.heap.rows);
        // SAFETY: as `correct`; the index is not dropped while its table is locked.
        unsafe {
            let open = Open::of(pg_sys::index_open(index, pg_sys::RowExclusiveLock as i32));
            let entries = if pg_sys::RelationGetIndexPredicate(open.as_ptr()).is_null() {
                rows
            } else if let Some(&(_, counted)) = self.entries.iter().find(|(of, _)| *of == index) {
                counted.min(rows)
            } else if known < self.heap.rows.max(0.0) {
                known
            } else {
                known.max(before).min(rows)
            };
            if Figures::of(index).rows != entries && (known >= 0.0 || entries > 0.0) {
                set_counts(open, entries);
            }
            pg_sys::index_close(open.as_ptr(), pg_sys::NoLock as i32);
        }
    }
}

/// While this value lives, heap's vacuum is told that there were no rows, so that it guesses none in pages
/// that it does not read.
pub(super) struct Hidden {
    rel: Relation,
    rows: f32,
}

impl Hidden {
    /// Hides the rows of a table that has, or had, rows in stripes.
    pub unsafe fn of(rel: Open) -> Self {
        // SAFETY: this is the relation cache's copy.
        unsafe {
            let form = rel.form();
            let rows = (*form).reltuples;
            if rows > 0.0 && has_row_numbers(rel) {
                (*form).reltuples = 0.0;
            }
            Self { rel: rel.as_ptr(), rows }
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
fn has_row_numbers(rel: Open) -> bool {
    metapage::read(rel).is_some_and(|(_, next_row)| next_row > 0)
}

/// What `pg_class` says of a relation's size.
#[derive(Clone, Copy)]
struct Figures {
    pages: BlockNumber,
    /// `reltuples`: negative if nobody has counted.
    rows: f64,
    /// All-visible pages.
    visible: BlockNumber,
}

impl Figures {
    const NONE: Self = Self { pages: 0, rows: 0.0, visible: 0 };

    unsafe fn of(relation: Oid) -> Self {
        // SAFETY: a catalog look-up.
        unsafe {
            let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, relation.into());
            if tuple.is_null() {
                return Self::NONE;
            }
            let form = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>();
            let as_count = |pages: i32| BlockNumber::try_from(pages).unwrap_or(0);
            let (pages, visible) = (as_count((*form).relpages), as_count((*form).relallvisible));
            let figures = Self { pages, rows: f64::from((*form).reltuples), visible };
            pg_sys::ReleaseSysCache(tuple);
            figures
        }
    }

    /// Writes the figures in place, and leaves the relation's horizons alone.
    ///
    /// # Safety
    /// `rel` is locked so that nobody else writes this.
    unsafe fn write(self, rel: Open) {
        let Self { pages, rows, visible } = self;
        // SAFETY: nobody else writes this, as is promised.
        unsafe {
            let is_index = rel.kind() == pg_sys::RELKIND_INDEX;
            let has_index = !is_index && !rel.indexes().is_empty();
            compat::write_statistics(rel.as_ptr(), pages, rows, visible, has_index);
        }
    }
}

/// Writes to pg_class in place how many rows and pages a relation has.
///
/// # Safety
/// `rel` is locked so that nobody else writes this.
pub unsafe fn set_counts(rel: Open, rows: f64) {
    // SAFETY: nobody else writes this, as is promised.
    unsafe {
        let pages = rel.block_count();
        let mut visible: BlockNumber = 0;
        if rel.kind() != pg_sys::RELKIND_INDEX {
            pg_sys::visibilitymap_count(rel.as_ptr(), &raw mut visible, std::ptr::null_mut());
        }
        Figures { pages, rows, visible: visible.min(pages) }.write(rel);
    }
}
