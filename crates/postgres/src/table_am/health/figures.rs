//! The figures of a table's health.
//!
//! Invariant: all figures are counted in what is stored, none in `pg_class`. So they are known before the
//! first ANALYZE, and count no row that is not there.

use pgrx::pg_sys;

use crate::host::relation::Open;
use crate::options::{self, TableOptions};
use crate::storage::change::row_proxy;
use crate::storage::directory::entries;
use crate::storage::directory::{self, StripeEntry};
use crate::storage::file::metapage;
use crate::storage::space::dead_blocks;
use crate::table_am::maintain::hot_rows::{self, HotRows};
use crate::table_am::packing;

/// A stripe is small if it has less than one in this many of the rows that it may have.
const SMALL: u32 = 4;
/// Heap pages that are read to count their rows.
const PAGES: u32 = 2048;

/// What is told of a table.
pub(super) struct Figures {
    pub options: TableOptions,
    /// Rows in heap pages, estimated where there are many pages.
    pub hot: HotRows,
    pub cold_rows: u64,
    /// Cold rows that are deleted or updated, and are still in their stripes.
    pub dead_rows: u64,
    /// Stripes that have such rows.
    pub dirty_stripes: usize,
    pub stripes: usize,
    pub small_stripes: usize,
    /// 0 if the table has no order.
    pub overlapping_stripes: usize,
    /// Stripes whose rows are not known to be in order. 0 if the table has no order.
    pub unsorted_stripes: usize,
    pub file_blocks: u32,
    pub stripe_blocks: u32,
    pub dead_blocks: u32,
    /// The dead blocks that a VACUUM could free now.
    pub free_blocks: u32,
    /// Some of the small stripes.
    pub examples: Vec<StripeEntry>,
}

impl Figures {
    pub fn of(rel: Open) -> Self {
        /// How many small stripes are looked into, to see whether they could be joined.
        const EXAMPLES: usize = 16;
        // SAFETY: a statement runs, so there is an active snapshot.
        unsafe {
            let options = options::table_options(rel);
            let snapshot = pg_sys::GetActiveSnapshot();
            let storage_id = metapage::storage_id(rel);
            let stripes = storage_id.map_or_else(Vec::new, |id| directory::visible(id, snapshot));
            let small = |entry: &&StripeEntry| entry.row_count < options.stripe_row_limit / SMALL;
            let dead_blocks = dead_blocks::dead_blocks(rel, stripes.iter().map(|entry| entry.run));
            let oldest_xmin = rel.oldest_xmin();
            let replaced = storage_id.map_or_else(Vec::new, |id| entries::not_dead(id, oldest_xmin));
            let seen: u32 = replaced
                .iter()
                .filter(|(_, is_live)| !is_live)
                .fold(0, |sum, (entry, _)| sum.saturating_add(entry.run.block_count));
            let dead = row_proxy::count(rel, stripes.iter());
            Self {
                hot: hot_rows::count(rel, PAGES, std::ptr::null_mut()),
                cold_rows: stripes.iter().map(|entry| u64::from(entry.row_count)).sum(),
                dead_rows: dead.iter().map(|&rows| rows as u64).sum(),
                dirty_stripes: dead.iter().filter(|&&rows| rows > 0).count(),
                stripes: stripes.len(),
                small_stripes: stripes.iter().filter(small).count(),
                overlapping_stripes: packing::overlapping(rel, &stripes, &options.orderby),
                unsorted_stripes: packing::unsorted(rel, &stripes, &options.orderby).len(),
                file_blocks: rel.block_count(),
                stripe_blocks: stripes.iter().map(|entry| entry.run.block_count).sum(),
                dead_blocks,
                free_blocks: dead_blocks.saturating_sub(seen),
                examples: stripes.iter().filter(small).take(EXAMPLES).cloned().collect(),
                options,
            }
        }
    }
}
