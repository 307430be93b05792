//! Which stripes to sort over each other: those that overlap in the table's order.
//!
//! Asked where there is nothing to join. Of all values the one is taken that most stripes have between their
//! least and their greatest value, and of these stripes the ones with the widest ranges are sorted together.
//! As the widest go first, stripes that were sorted together as often meet, and a row is rewritten as often
//! as a stripe of the whole table has to be divided by `fewest` to give one stripe's share, as in
//! log-structured merging. How wide a range is, is how many ends of others it holds: `ranked` makes numbers
//! of values, compared as the host does.
//! Invariant: stripes that come of it do not overlap each other, and at no value do more stripes overlap than
//! before, at that one fewer. So it comes to an end whatever is done in between.

use std::cmp::{Ordering, Reverse};

/// How far a stripe reaches: the places of its least and of its greatest value among those of all stripes.
/// They differ.
pub type Reach = (i64, i64);

/// Stripes of one batch at most.
const MOST: usize = 8;

/// The stripes that overlap where most do, the widest first; none where fewer than `fewest` overlap at any
/// value, two at least. Of each stripe how far it reaches, where that is known.
pub fn most_overlapping(reaches: &[Option<Reach>], fewest: usize) -> Vec<usize> {
    let known: Vec<Reach> = reaches.iter().flatten().copied().collect();
    let deep_enough = |&(_, depth): &(i64, usize)| depth >= fewest.max(2);
    let Some((at, _)) = deepest(&known).filter(deep_enough) else { return Vec::new() };
    let has_it = |&(least, greatest): &Reach| least <= at && at < greatest;
    let all = reaches.iter().enumerate();
    let mut found: Vec<(usize, Reach)> =
        all.filter_map(|(index, reach)| Some((index, (*reach).filter(has_it)?))).collect();
    found.sort_by_key(|&(_, (least, greatest))| Reverse(greatest.abs_diff(least)));
    found.into_iter().map(|(index, _)| index).collect()
}

/// Those of some stripes that one batch sorts, in the order given: two at least, or none; of more no more
/// than make `limit` index entries together, as writers wait while these are made. `is_free`: nobody is at
/// work on this stripe.
pub fn one_batch(
    stripes: &[usize],
    entries_of: impl Fn(usize) -> u64,
    limit: u64,
    mut is_free: impl FnMut(usize) -> bool,
) -> Vec<usize> {
    let (mut chosen, mut entries) = (Vec::new(), 0_u64);
    for &stripe in stripes {
        entries = entries.saturating_add(entries_of(stripe));
        if chosen.len() == MOST || (chosen.len() >= 2 && entries > limit) {
            break;
        }
        if is_free(stripe) {
            chosen.push(stripe);
        }
    }
    if chosen.len() < 2 {
        chosen.clear();
    }
    chosen
}

/// Whether no two stripes overlap, as far as is known.
pub fn are_apart(reaches: &[Option<Reach>]) -> bool {
    count(reaches) == 0
}

/// How many stripes begin before one that begins earlier has ended.
pub fn count(reaches: &[Option<Reach>]) -> usize {
    let mut known: Vec<Reach> = reaches.iter().flatten().copied().collect();
    known.sort_unstable();
    let (mut count, mut reach) = (0, i64::MIN);
    for (first, last) in known {
        count += usize::from(first < reach);
        reach = reach.max(last);
    }
    count
}

/// The places of ranges' ends among all of them.
pub fn ranked<T>(
    ranges: &[Option<(T, T)>],
    mut compare: impl FnMut(&T, &T) -> Ordering,
) -> Vec<Option<Reach>> {
    let mut ends: Vec<&T> = ranges.iter().flatten().flat_map(|(first, last)| [first, last]).collect();
    ends.sort_by(|a, b| compare(a, b));
    ends.dedup_by(|a, b| compare(a, b).is_eq());
    let mut rank = |end: &T| {
        let before = ends.partition_point(|other| compare(other, end).is_lt());
        i64::try_from(before).unwrap_or(i64::MAX)
    };
    ranges.iter().map(|range| range.as_ref().map(|(first, last)| (rank(first), rank(last)))).collect()
}

/// A value right above which most ranges overlap, and how many do: it is the least of one of them.
fn deepest(ranges: &[Reach]) -> Option<(i64, usize)> {
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
    use super::{MOST, Reach, are_apart, count, deepest, most_overlapping, one_batch, ranked};

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

    #[test]
    fn the_widest_come_first() {
        let reaches = [Some((2, 8)), None, Some((1, 9)), Some((20, 90)), Some((3, 7)), Some((2, 8))];
        assert_eq!(most_overlapping(&reaches, 4), [2, 0, 5, 4]);
        assert_eq!(most_overlapping(&reaches, 5), []);
        // One stripe overlaps nothing, whatever is asked for.
        assert_eq!(most_overlapping(&[Some((1, 2))], 1), []);
        assert_eq!(most_overlapping(&[Some((1, 3)), Some((2, 4))], 1), [0, 1]);
    }

    #[test]
    fn a_batch_is_of_two_at_least() {
        let stripes: Vec<usize> = (0..20).rev().collect();
        assert_eq!(one_batch(&stripes, |_| 0, 0, |_| true), stripes[..MOST]);
        assert_eq!(one_batch(&stripes, |_| 10, 30, |_| true), [19, 18, 17]);
        assert_eq!(one_batch(&stripes, |_| 10, 1, |_| true), [19, 18]);
        assert_eq!(one_batch(&stripes, |_| 0, 0, |at| at < 4), [3, 2, 1, 0]);
        // A stripe that is not to be had counts, too.
        assert_eq!(one_batch(&stripes, |_| 10, 35, |at| at != 18), [19, 17]);
        assert_eq!(one_batch(&stripes, |_| 0, 0, |at| at == 7), []);
    }

    #[test]
    fn overlaps_are_counted() {
        let reaches = |all: &[Reach]| all.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[None, Some((1, 2)), None]), 0);
        let apart = reaches(&[(5, 9), (1, 5), (12, 15)]);
        assert_eq!((count(&apart), are_apart(&apart)), (0, true));
        let over = reaches(&[(1, 20), (2, 3), (4, 5), (20, 21)]);
        assert_eq!((count(&over), are_apart(&over)), (2, false));
    }

    #[test]
    fn places_are_in_the_order_of_values() {
        let ranges = [Some(("d", "b")), None, Some(("c", "a")), Some(("d", "c"))];
        let down = ranked(&ranges, |a, b| b.cmp(a));
        assert_eq!(down, [Some((0, 2)), None, Some((1, 3)), Some((0, 1))]);
    }

    /// Sorting what overlaps, again and again, ends with stripes that do not.
    #[test]
    fn it_ends() {
        let mut seed = 1_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let range = |rows: &Vec<i64>| {
            let (min, max) = (*rows.iter().min().unwrap(), *rows.iter().max().unwrap());
            (min < max).then_some((min, max))
        };
        let depths = |stripes: &[Vec<i64>]| {
            let known: Vec<Reach> = stripes.iter().filter_map(range).collect();
            let depth = |at: i64| known.iter().filter(|&&(min, max)| min <= at && at < max).count();
            (0..2500).map(depth).collect::<Vec<_>>()
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
                let ranges: Vec<_> = stripes.iter().map(range).collect();
                // By the places of the ends, as hosts do: it does not matter which numbers they are.
                let reaches = ranked(&ranges, i64::cmp);
                let meant = most_overlapping(&reaches, fewest);
                let known: Vec<Reach> = ranges.iter().flatten().copied().collect();
                let deepest = deepest(&known).map_or(0, |found| found.1);
                assert_eq!(meant.len(), if deepest < fewest { 0 } else { deepest });
                if meant.is_empty() {
                    break;
                }
                rounds += 1;
                assert!(rounds < 500, "no end");
                let width = |at: &usize| reaches[*at].map_or(0, |(least, greatest)| greatest - least);
                assert!(meant.is_sorted_by_key(|at| std::cmp::Reverse(width(at))));
                let chosen = one_batch(&meant, |_| 1, 100, |_| true);
                assert_eq!(chosen, meant[..meant.len().min(MOST)]);
                let before = depths(&stripes);
                let mut rows = Vec::new();
                chosen.iter().for_each(|&at| rows.append(&mut stripes[at]));
                stripes.retain(|rows| !rows.is_empty());
                rows.sort_unstable();
                let new: Vec<Vec<i64>> = rows.chunks(50).map(<[i64]>::to_vec).collect();
                assert!(are_apart(&new.iter().map(range).collect::<Vec<_>>()));
                stripes.extend(new);
                let after = depths(&stripes);
                assert!(before.iter().zip(&after).all(|(before, after)| after <= before));
                assert!(
                    before.iter().zip(&after).any(|(before, after)| *before == deepest && after < before)
                );
            }
            assert!(fewest > 2 || rounds > 4);
            assert!(fewest > 2 || are_apart(&stripes.iter().map(range).collect::<Vec<_>>()));
        }
    }
}
