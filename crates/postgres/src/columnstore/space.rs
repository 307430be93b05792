//! Pages of replaced copies are used again.
//!
//! No copy is given back when it is replaced. `sweep` looks for blocks of the file that no page of ours
//! names: replaced copies, and what a session that died has left. It lists them as *free runs* with the
//! transaction id that is next. A run is taken once all snapshots are newer, as a scan that began before may
//! still read it. Before it is overwritten, that is told to standbys.
//!
//! Invariants: a run on the list is named by no region. The list may forget any run, as the next sweep finds
//! it again: so a crash between two records, or a list that is full, costs room for a while and nothing else.

use pgrx::pg_sys::{self, BlockNumber};

use super::layout::{FREE_RUNS, FreeRun};
use super::regions;
use crate::host::relation::Open;
use crate::host::wal;

/// Whether every snapshot that can see the table is newer than a run's.
fn is_removable(heap: Open, run: &FreeRun) -> bool {
    let since = pg_sys::FullTransactionId { value: run.since };
    // SAFETY: the table is open. The server asks for horizons of tables, not of their indexes.
    unsafe { pg_sys::GlobalVisCheckRemovableFullXid(heap.as_ptr(), since) }
}

/// Lists the blocks of the index's file that nothing names.
///
/// # Safety
/// No other session makes copies in this index.
pub unsafe fn sweep(index: Open) {
    // SAFETY: the caller's promise.
    unsafe {
        let named = regions::named_runs(index);
        // After the regions were looked at: whoever looks at one now finds none of the other runs.
        let now = pg_sys::ReadNextFullTransactionId().value;
        let listed =
            regions::free_page(index).map(|page| regions::free_runs(index, page)).unwrap_or_default();
        let free = largest(unnamed(named, index.block_count(), &listed, now));
        if free != listed {
            let page = regions::ensure_free_page(index);
            regions::set_free_runs(index, page, &free);
        }
    }
}

/// What lies between the runs that are named, given as first block and number of blocks. Parts that are
/// listed keep their transaction id.
fn unnamed(mut named: Vec<(u32, u32)>, end: BlockNumber, listed: &[FreeRun], now: u64) -> Vec<FreeRun> {
    named.push((end, 0));
    named.sort_unstable();
    let mut free = Vec::new();
    let mut at = 0;
    for (first, count) in named {
        // Of a stretch that nothing names: what was not listed, and what was, in turns.
        let from = listed.partition_point(|run| run.end() <= at);
        for run in listed.iter().skip(from).take_while(|run| run.first_block < first) {
            at = add(&mut free, at, run.first_block, now);
            at = add(&mut free, at, run.end().min(first), run.since);
        }
        at = add(&mut free, at, first, now);
        at = at.max(first.saturating_add(count));
    }
    free
}

/// Adds the blocks from one up to another, if there are any. Returns where the next begin.
fn add(free: &mut Vec<FreeRun>, from: BlockNumber, to: BlockNumber, since: u64) -> BlockNumber {
    if from < to {
        free.push(FreeRun { first_block: from, block_count: to - from, since });
    }
    from.max(to)
}

/// As many runs as the list has room for, by their places.
fn largest(mut runs: Vec<FreeRun>) -> Vec<FreeRun> {
    if runs.len() > FREE_RUNS {
        runs.sort_unstable_by_key(|run| std::cmp::Reverse(run.block_count));
        runs.truncate(FREE_RUNS);
        runs.sort_unstable_by_key(|run| run.first_block);
    }
    runs
}

/// Takes so many blocks off the list. Returns the first. None: no run that nobody reads is long enough.
///
/// # Safety
/// As `sweep`.
pub unsafe fn take(index: Open, heap: Open, blocks: u32) -> Option<BlockNumber> {
    // Snapshots of this session do not hold back the horizon of its temporary tables.
    if index.is_temporary() {
        return None;
    }
    let page = regions::free_page(index)?;
    let listed = regions::free_runs(index, page);
    let usable: Vec<bool> = listed.iter().map(|run| is_removable(heap, run)).collect();
    let (first_block, since, left) = cut(&listed, &usable, blocks)?;
    // SAFETY: the caller's promise.
    unsafe { regions::set_free_runs(index, page, &largest(left)) };
    if index.needs_wal() {
        wal::log_full_conflict_horizon(index, since);
    }
    Some(first_block)
}

/// The shortest stretch of neighbours on the list that are usable and have so many blocks: its first block,
/// the newest of their transaction ids, and the list without what is taken.
fn cut(listed: &[FreeRun], usable: &[bool], blocks: u32) -> Option<(BlockNumber, u64, Vec<FreeRun>)> {
    let mut best: Option<(u32, std::ops::Range<usize>)> = None;
    let mut at = 0;
    while at < listed.len() {
        let (start, mut length, mut end) = (at, 0, None);
        while let (Some(run), Some(true)) = (listed.get(at), usable.get(at)) {
            if end.is_some_and(|end| end != run.first_block) {
                break;
            }
            length += run.block_count;
            end = Some(run.end());
            at += 1;
        }
        if length >= blocks && best.as_ref().is_none_or(|(shortest, _)| length < *shortest) {
            best = Some((length, start..at));
        }
        at = at.max(start + 1);
    }
    let (length, range) = best?;
    let taken = listed.get(range.clone())?;
    let first_block = taken.first()?.first_block;
    let since = taken.iter().map(|run| run.since).max()?;
    let mut left: Vec<FreeRun> = listed.get(..range.start)?.to_vec();
    if length > blocks {
        left.push(FreeRun { first_block: first_block + blocks, block_count: length - blocks, since });
    }
    left.extend_from_slice(listed.get(range.end..)?);
    Some((first_block, since, left))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn run(first_block: u32, block_count: u32, since: u64) -> FreeRun {
        FreeRun { first_block, block_count, since }
    }

    #[test]
    fn what_nothing_names_is_free() {
        // Blocks 0 to 2 and 10 to 14 of 20 are named.
        let named = vec![(10, 5), (0, 1), (1, 1), (2, 1)];
        assert_eq!(unnamed(named.clone(), 20, &[], 9), [run(3, 7, 9), run(15, 5, 9)]);
        // Listed parts keep their id, whatever is named by now is left out.
        let listed = [run(4, 2, 5), run(6, 6, 6), run(14, 2, 7)];
        assert_eq!(
            unnamed(named, 20, &listed, 9),
            [run(3, 1, 9), run(4, 2, 5), run(6, 4, 6), run(15, 1, 7), run(16, 4, 9)]
        );
        assert_eq!(unnamed(vec![(0, 20)], 20, &listed, 9), []);
    }

    #[test]
    fn the_shortest_stretch_that_fits_is_cut() {
        let listed = [run(3, 4, 5), run(7, 4, 6), run(20, 3, 7), run(30, 9, 8)];
        let all = [true; 4];
        assert_eq!(cut(&listed, &all, 3), Some((20, 7, vec![listed[0], listed[1], listed[3]])));
        assert_eq!(cut(&listed, &all, 6), Some((3, 6, vec![run(9, 2, 6), listed[2], listed[3]])));
        assert_eq!(cut(&listed, &all, 9), Some((30, 8, vec![listed[0], listed[1], listed[2]])));
        assert_eq!(cut(&listed, &all, 10), None);
        assert_eq!(cut(&listed, &[true, false, true, false], 4).unwrap().0, 3);
        assert_eq!(cut(&listed, &[true, false, true, false], 5), None);
        assert_eq!(cut(&[], &[], 1), None);
    }

    #[test]
    fn a_full_list_keeps_the_largest() {
        let runs: Vec<FreeRun> = (0..FREE_RUNS as u32 + 2).map(|n| run(n * 100, 1 + n % 50, 1)).collect();
        let kept = largest(runs.clone());
        assert_eq!(kept.len(), FREE_RUNS);
        assert!(kept.is_sorted_by_key(|run| run.first_block));
        assert_eq!(runs.iter().filter(|run| !kept.contains(run)).map(|run| run.block_count).max(), Some(1));
    }
}
