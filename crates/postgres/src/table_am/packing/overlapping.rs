//! Which stripes a batch sorts over each other: those whose ranges of the first `orderby` column overlap.
//!
//! Asked where there is nothing else to join. Of all values the one is taken that most stripes have between their least and their greatest value, and of these stripes the ones with the widest ranges are sorted
//! together. Stripes that come of that do not overlap each other, and at no value do more stripes overlap than before, at that one fewer: so it comes to an end whatever is
//! done in between. As the widest go first, stripes that were sorted together as often meet, and a row is rewritten as often as a stripe of the whole table has to be divided by `fewest` to give one
//! stripe's share, as in log-structured merging. Only whole numbers, days and times, whose bounds are exact and in the order that the server sorts by. Invariant: as of `stripes`.

use pgrx::pg_sys::{Relation, TransactionId};
use stripe::Summary;
use vector::Scalar;

use super::entries;
use super::stripes::{self, Chosen};
use crate::host::error;
use crate::options::SortKey;
use crate::storage::directory::StripeEntry;
use crate::storage::stripe_lock;

/// Stripes of one batch at most.
const MOST: usize = 8;

/// The stripes to sort, by first row number; none where fewer than `fewest` overlap at any value. Two at least; of more no more than have `limit` rows for all unique indexes together, as
/// writers wait while these get their entries.
pub(super) unsafe fn choose(
    rel: Relation,
    storage_id: u64,
    key: &SortKey,
    limit: u32,
    fewest: usize,
    oldest_xmin: TransactionId,
) -> Vec<Chosen> {
    let fewest = fewest.max(2);
    // SAFETY: rel is open with ShareUpdateExclusiveLock.
    unsafe {
        if !super::sorts(rel, key) {
            return Vec::new();
        }
        let mut found: Vec<((i64, i64), Chosen)> = stripes::seen_by_all(rel, storage_id, oldest_xmin)
            .into_iter()
            .filter_map(|stripe| range(rel, &stripe.entry, key).map(|range| (range, stripe)))
            .collect();
        let ranges: Vec<_> = found.iter().map(|(range, _)| *range).collect();
        let Some((at, _)) = deepest(&ranges).filter(|&(_, depth)| depth >= fewest) else { return Vec::new() };
        found.retain(|&((least, greatest), _)| least <= at && at < greatest);
        found.sort_by_key(|&((least, greatest), _)| std::cmp::Reverse(greatest.abs_diff(least)));
        let entries_a_row = entries::unique_indexes(rel) as u64;
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
pub(super) fn are_in_order(rel: Relation, stripes: &[StripeEntry], key: &SortKey) -> bool {
    let ranges: Vec<_> = stripes.iter().filter_map(|entry| range(rel, entry, key)).collect();
    deepest(&ranges).is_none_or(|(_, depth)| depth < 2)
}

/// The least and the greatest value of the key in a stripe, where they are known and differ.
fn range(rel: Relation, entry: &StripeEntry, key: &SortKey) -> Option<(i64, i64)> {
    let column = usize::try_from(key.attnum).ok()?.checked_sub(1)?;
    let statistics = match Summary::open(&entry.summary).and_then(|summary| summary.column(column)) {
        Ok(found) => found?.1,
        Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
    };
    match (statistics.min?, statistics.max?) {
        (min, max) if !min.exact || !max.exact => None,
        (min, max) => match (min.value, max.value) {
            (Scalar::Int(min), Scalar::Int(max)) if min < max => Some((min, max)),
            _ => None,
        },
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
