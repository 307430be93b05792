//! Sorting and selecting entries piece by piece, so that both may be interrupted.
//!
//! Called by `order` and by percentiles. Entries are split around a pivot, as quicksort does, until the
//! standard library sorts each piece in a few milliseconds. There are interrupt points between the pieces and
//! while splitting. Pieces past the entries that are wanted are left as they are. Invariant: `order` tells
//! any two entries apart (they carry their position), so that a split never leaves everything on one side.

use std::cmp::Ordering;

use crate::{Result, interrupt};

/// Entries of a piece if a comparison takes a few instructions.
pub const QUICK: usize = 1 << 18;
/// Entries of a piece if a comparison reads values elsewhere or calls the host.
pub const SLOW: usize = 1 << 12;

/// Entries that a pivot is chosen among.
const SAMPLE: usize = 63;

/// Sorts the first `wanted` entries; the other entries come after them in any order.
pub fn sort<T: Copy>(
    entries: &mut [T],
    wanted: usize,
    piece: usize,
    order: &impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    let mut ranges = vec![(0, entries.len())];
    while let Some((start, end)) = ranges.pop().filter(|_| wanted > 0) {
        interrupt::check()?;
        let part = entries.get_mut(start..end).unwrap_or_default();
        if part.len() > piece {
            let pivot = start + split(part, order)?;
            if pivot + 1 < wanted {
                ranges.push((pivot + 1, end));
            }
            ranges.push((start, pivot));
            continue;
        }
        let first = wanted - start;
        if first < part.len() {
            part.select_nth_unstable_by(first, order);
        }
        part.get_mut(..first.min(end - start)).unwrap_or_default().sort_unstable_by(order);
    }
    Ok(())
}

/// Puts the entry of this rank at its place, lower ones before it and higher ones after it.
pub fn select<T: Copy>(
    entries: &mut [T],
    rank: usize,
    piece: usize,
    order: &impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    let (mut start, mut end) = (0, entries.len());
    loop {
        interrupt::check()?;
        let part = entries.get_mut(start..end).unwrap_or_default();
        if part.len() <= piece {
            if rank - start < part.len() {
                part.select_nth_unstable_by(rank - start, order);
            }
            return Ok(());
        }
        let pivot = start + split(part, order)?;
        match rank.cmp(&pivot) {
            Ordering::Less => end = pivot,
            Ordering::Equal => return Ok(()),
            Ordering::Greater => start = pivot + 1,
        }
    }
}

/// Moves lower entries than one of about the middle before it and the others after it; where that one is
/// then.
fn split<T: Copy>(entries: &mut [T], order: &impl Fn(&T, &T) -> Ordering) -> Result<usize> {
    let step = (entries.len() / SAMPLE).max(1);
    let mut sample: Vec<usize> = (0..entries.len()).step_by(step).collect();
    let middle = sample.len() / 2;
    sample.select_nth_unstable_by(middle, |&a, &b| order(&entries[a], &entries[b]));
    let last = entries.len() - 1;
    entries.swap(sample[middle], last);
    let pivot = entries[last];
    let mut lower = 0;
    // Every entry changes places with the first one that is not lower: no branch depends on the order.
    for at in 0..last {
        interrupt::check_at(at)?;
        entries.swap(lower, at);
        lower += usize::from(order(&entries[lower], &pivot).is_lt());
    }
    entries.swap(lower, last);
    Ok(lower)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shapes() -> Vec<Vec<(u64, u32)>> {
        let shape = |value: fn(u64) -> u64| {
            let values = (0..5_000u64).map(value);
            values.zip(0u32..).collect::<Vec<_>>()
        };
        vec![
            shape(|at| at),
            shape(|at| 5_000 - at),
            shape(|_| 7),
            shape(|at| at % 3),
            shape(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            shape(|at| at.min(5_000 - at)),
            Vec::new(),
        ]
    }

    #[test]
    fn what_is_wanted_is_sorted() {
        for shape in shapes() {
            let mut sorted = shape.clone();
            sorted.sort_unstable();
            for wanted in [0, 1, 10, 600, 4_999, 5_000, 9_000] {
                let mut entries = shape.clone();
                sort(&mut entries, wanted, 64, &Ord::cmp).unwrap();
                let wanted = wanted.min(shape.len());
                assert_eq!(entries[..wanted], sorted[..wanted]);
                entries.sort_unstable();
                assert_eq!(entries, sorted);
            }
        }
    }

    #[test]
    fn ranks_find_their_places() {
        for shape in shapes().into_iter().filter(|shape| !shape.is_empty()) {
            let mut sorted = shape.clone();
            sorted.sort_unstable();
            for rank in [0, 1, 77, 2_500, 4_999] {
                let mut entries = shape.clone();
                select(&mut entries, rank, 64, &Ord::cmp).unwrap();
                assert_eq!(entries[rank], sorted[rank]);
                assert!(entries[..rank].iter().all(|entry| *entry < sorted[rank]));
            }
        }
    }

    #[test]
    fn sorting_ends_when_asked_to() {
        let mut entries: Vec<u64> = (0..100_000).rev().collect();
        let _asking = interrupt::ask(|| true);
        assert_eq!(sort(&mut entries, 100_000, 1_000, &Ord::cmp), Err(crate::Error::Cancelled));
        assert_eq!(select(&mut entries, 9, 1_000, &Ord::cmp), Err(crate::Error::Cancelled));
    }
}
