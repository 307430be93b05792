//! Which stripes a batch sorts over each other: those that overlap in the order of `orderby`.
//!
//! `stripe::packing::overlapping` chooses them by how far each stripe reaches. Where statistics are in the
//! order that the server sorts by, they say that (`bounds`); else the first and the last row of a stripe do,
//! if it is known as sorted. Invariant: as of `stripes`.

use pgrx::pg_sys;
use stripe::packing::overlapping::{self as choosing, Reach, most_overlapping, one_batch, ranked};

use super::bounds;
use super::rows::Rows;
use super::stripes::Chosen;
use super::{index_entries, unsorted};
use crate::host::memory;
use crate::host::relation::Open;
use crate::options::SortKey;
use crate::storage::change::stripe_lock;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::sort_marks;
use crate::storage::file::tid;
use crate::storage::pending_rows::Order;

/// The places of the stripes to sort, or none if fewer than `fewest` overlap at any value. At least
/// two are chosen. A third or later one is chosen only as long as all unique indexes together get at most
/// `limit` entries, as writers wait while these are made.
pub(super) unsafe fn choose(
    rel: Open,
    stripes: &[Chosen],
    keys: &[SortKey],
    limit: u32,
    fewest: usize,
) -> Vec<usize> {
    // SAFETY: rel is open with ShareUpdateExclusiveLock.
    unsafe {
        let ranges = ranges(rel, &stripes.iter().map(|stripe| &stripe.entry).collect::<Vec<_>>(), keys);
        let meant = most_overlapping(&ranges, fewest);
        if meant.is_empty() {
            return Vec::new();
        }
        let entries_a_row = index_entries::unique_indexes(rel) as u64;
        let entries_of = |at: usize| entries_a_row * u64::from(stripes[at].entry.row_count);
        // Not now, if anybody is at work on it.
        let is_free = |at: usize| {
            stripe_lock::exclude(rel, &stripes[at].entry).map(|exclusion| exclusion.end(rel)).is_some()
        };
        one_batch(&meant, entries_of, limit.into(), is_free)
    }
}

/// Whether stripes do not overlap each other.
pub(super) fn are_in_order(rel: Open, stripes: &[StripeEntry], keys: &[SortKey]) -> bool {
    let ranges = ranges(rel, &stripes.iter().collect::<Vec<_>>(), keys);
    choosing::are_apart(&ranges)
}

/// How many of these stripes begin before a stripe that begins earlier has ended.
pub(super) fn count(rel: Open, stripes: &[StripeEntry], keys: &[SortKey]) -> usize {
    let ranges = ranges(rel, &stripes.iter().collect::<Vec<_>>(), keys);
    choosing::count(&ranges)
}

/// How far each stripe reaches in the order of `keys`, if that is known and more than one place.
fn ranges(rel: Open, stripes: &[&StripeEntry], keys: &[SortKey]) -> Vec<Option<Reach>> {
    // SAFETY: the values are copies, and the rows of stripes stay.
    unsafe {
        let bounds = bounds::of(rel, keys);
        if bounds.is_known() {
            return bounds::ranges(&bounds, rel, stripes);
        }
        let (Some(mark), Some(mut order)) = (sort_marks::of(rel, keys).pop(), Order::new(rel, keys)) else {
            return vec![None; stripes.len()];
        };
        let context = memory::small_context(pg_sys::CurrentMemoryContext, c"colonnade ends of stripes");
        let before = pg_sys::MemoryContextSwitchTo(context);
        let slot = unsorted::slot_for_keys(rel, keys);
        let mut rows = Rows::new(rel, stripes.iter().copied());
        let mut values_of = |row: u64| {
            pgrx::check_for_interrupts!();
            rows.fetch(tid::cold_tid(row), slot);
            order.values(slot)
        };
        let mut reach = |entry: &StripeEntry| {
            let last = entry.end_row().checked_sub(1).filter(|last| *last > entry.first_row)?;
            sort_marks::has(rel, entry, mark).then(|| (values_of(entry.first_row), values_of(last)))
        };
        let mut found: Vec<_> = stripes.iter().map(|entry| reach(entry)).collect();
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        for range in &mut found {
            *range = range.take().filter(|(first, last)| order.compare(first, last).is_lt());
        }
        let ranks = ranked(&found, |a, b| order.compare(a, b));
        drop(rows);
        pg_sys::MemoryContextSwitchTo(before);
        pg_sys::MemoryContextDelete(context);
        ranks
    }
}
