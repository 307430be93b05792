//! Which stripes a batch sorts over each other: those that overlap in the order of `orderby`.
//!
//! Asked where there is nothing else to join. Of all values the one is taken that most stripes have between
//! their least and their greatest value, and of these stripes the ones with the widest ranges are sorted
//! together. Stripes that come of that do not overlap each other, and at no value do more stripes overlap
//! than before, at that one fewer: so it comes to an end whatever is done in between. As the widest go first,
//! stripes that were sorted together as often meet, and a row is rewritten as often as a stripe of the whole
//! table has to be divided by `fewest` to give one stripe's share, as in log-structured merging. How wide a
//! range is, is how many ends of others it holds. Where statistics are in the order that the server sorts by,
//! they say how far a stripe reaches (`bounds`); else its first and its last row do, if it is known as
//! sorted. Invariant: as of `stripes`.

use pgrx::pg_sys::{self, TransactionId};

use super::bounds::{self, Bounds};
use super::rows::Rows;
use super::stripes::{self, Chosen};
use super::{index_entries, unsorted};
use crate::host::memory;
use crate::host::relation::Open;
use crate::options::SortKey;
use crate::storage::change::stripe_lock;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::sort_marks;
use crate::storage::file::tid;
use crate::storage::pending_rows::Order;

/// Stripes of one batch at most.
const MOST: usize = 8;

/// The stripes to sort, by first row number; none where fewer than `fewest` overlap at any value. Two at
/// least; of more no more than have `limit` rows for all unique indexes together, as writers wait while these
/// get their entries.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock.
pub(super) unsafe fn choose(
    rel: Open,
    storage_id: u64,
    keys: &[SortKey],
    limit: u32,
    fewest: usize,
    oldest_xmin: TransactionId,
) -> Vec<Chosen> {
    let fewest = fewest.max(2);
    // SAFETY: the lock is promised.
    unsafe {
        let stripes = stripes::seen_by_all(rel, storage_id, oldest_xmin);
        let ranges = ranges(rel, &stripes.iter().map(|stripe| &stripe.entry).collect::<Vec<_>>(), keys);
        let mut found: Vec<((i64, i64), Chosen)> =
            ranges.into_iter().zip(stripes).filter_map(|(range, stripe)| Some((range?, stripe))).collect();
        let ranges: Vec<_> = found.iter().map(|(range, _)| *range).collect();
        let Some((at, _)) = deepest(&ranges).filter(|&(_, depth)| depth >= fewest) else { return Vec::new() };
        found.retain(|&((least, greatest), _)| least <= at && at < greatest);
        found.sort_by_key(|&((least, greatest), _)| std::cmp::Reverse(greatest.abs_diff(least)));
        let entries_a_row = index_entries::unique_indexes(rel) as u64;
        let (mut chosen, mut entries) = (Vec::new(), 0);
        for (_, stripe) in found {
            entries += entries_a_row * u64::from(stripe.entry.row_count);
            if chosen.len() == MOST || (chosen.len() >= 2 && entries > limit.into()) {
                break;
            }
            // Not now, if anybody is at work on it.
            let Some(exclusion) = stripe_lock::exclude(rel, &stripe.entry) else { continue };
            exclusion.end(rel);
            chosen.push(stripe);
        }
        if chosen.len() < 2 {
            chosen.clear();
        }
        chosen.sort_by_key(|stripe| stripe.entry.first_row);
        chosen
    }
}

/// Whether stripes do not overlap each other.
pub(super) fn are_in_order(rel: Open, stripes: &[StripeEntry], keys: &[SortKey]) -> bool {
    let ranges = ranges(rel, &stripes.iter().collect::<Vec<_>>(), keys);
    deepest(&ranges.into_iter().flatten().collect::<Vec<_>>()).is_none_or(|(_, depth)| depth < 2)
}

/// How many of some stripes begin before one that begins earlier has ended.
pub(super) fn count(rel: Open, stripes: &[StripeEntry], keys: &[SortKey]) -> usize {
    let ranges = ranges(rel, &stripes.iter().collect::<Vec<_>>(), keys);
    let mut ranges: Vec<(i64, i64)> = ranges.into_iter().flatten().collect();
    ranges.sort_unstable();
    let (mut count, mut reach) = (0, i64::MIN);
    for (first, last) in ranges {
        count += usize::from(first < reach);
        reach = reach.max(last);
    }
    count
}

/// How far each stripe reaches in the order of `keys`, where that is known and more than one place.
fn ranges(rel: Open, stripes: &[&StripeEntry], keys: &[SortKey]) -> Vec<Option<(i64, i64)>> {
    // SAFETY: the values are copies, and the rows of stripes stay.
    unsafe {
        let bounds = Bounds::of(rel, keys);
        if bounds.are_known() {
            return bounds.ranges(rel, stripes);
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
        let ranks = bounds::ranked(&found, |a, b| order.compare(a, b));
        drop(rows);
        pg_sys::MemoryContextSwitchTo(before);
        pg_sys::MemoryContextDelete(context);
        ranks
    }
}

/// A value right above which most ranges overlap, and how many do: it is the least of one of them.
fn deepest(ranges: &[(i64, i64)]) -> Option<(i64, usize)> {
    let mut least: Vec<i64> = ranges.iter().map(|range| range.0).collect();
    let mut greatest: Vec<i64> = ranges.iter().map(|range| range.1).collect();
    least.sort_unstable();
    greatest.sort_unstable();
    let mut best = None;
    for (begun, &at) in (1..).zip(&least) {
        let ended = greatest.partition_point(|&end| end <= at);
        let depth = begun - ended;
        if best.is_none_or(|(_, most)| depth >= most) {
            best = Some((at, depth));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::deepest;

    #[test]
    fn most_ranges_overlap_there() {
        assert_eq!(deepest(&[]), None);
        assert_eq!(deepest(&[(1, 5)]), Some((1, 1)));
        // A common bound is no overlap.
        assert_eq!(deepest(&[(1, 5), (5, 9)]).map(|found| found.1), Some(1));
        assert_eq!(deepest(&[(1, 5), (4, 9), (8, 12)]).map(|found| found.1), Some(2));
        assert_eq!(deepest(&[(1, 9), (2, 8), (3, 7), (8, 9)]), Some((3, 3)));
        assert_eq!(deepest(&[(3, 9), (3, 8), (3, 7), (0, 3)]), Some((3, 3)));
    }

    /// Sorting what overlaps, again and again, ends with stripes that do not.
    #[test]
    fn it_ends() {
        let mut seed = 1_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for fewest in [2, 4] {
            let mut stripes: Vec<Vec<i64>> = (0..40)
                .map(|_| {
                    let (start, width) = (random(500) as i64, 1 + random(2000));
                    (0..50).map(|_| start + random(width) as i64).collect()
                })
                .collect();
            let mut rounds = 0;
            loop {
                let range = |rows: &Vec<i64>| (*rows.iter().min().unwrap(), *rows.iter().max().unwrap());
                let ranges: Vec<_> = stripes.iter().map(range).filter(|(min, max)| min < max).collect();
                let Some((at, depth)) = deepest(&ranges) else { break };
                if depth < fewest {
                    break;
                }
                rounds += 1;
                assert!(rounds < 500, "no end");
                let (mut meant, rest): (Vec<_>, Vec<_>) = stripes.into_iter().partition(|rows| {
                    let (min, max) = range(rows);
                    min <= at && at < max
                });
                assert_eq!(meant.len(), depth);
                meant.sort_by_key(|rows| std::cmp::Reverse(range(rows).1 - range(rows).0));
                let left = meant.split_off(meant.len().min(8));
                let mut rows: Vec<i64> = meant.concat();
                rows.sort_unstable();
                stripes = rest.into_iter().chain(left).chain(rows.chunks(50).map(<[i64]>::to_vec)).collect();
            }
            assert!(fewest > 2 || rounds > 4);
        }
    }
}
