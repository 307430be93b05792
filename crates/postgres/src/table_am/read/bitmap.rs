//! Bitmap scans.
//!
//! A bitmap names blocks. Those from 2^31 on are virtual and stand for up to 256 cold rows each. Other blocks
//! are hot and go to heap. The wanted rows of a cold block that are in one chunk are loaded together.
//!
//! The server's node prefetches the blocks of its bitmap, which is not possible for virtual ones. `hooks`
//! turns that off.

use std::ops::Range;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, BlockNumber, ItemPointerData, TableScanDesc, TupleTableSlot};

use super::cold_fetch::ColdFetch;
use super::moved;
use super::scan::{self, Scan};
use crate::compat::{BitmapBlocks, BitmapState};
use crate::host::heap_am::heap;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::change::row_proxy;
use crate::storage::directory::StripeEntry;
use crate::storage::file::tid;

/// What a bitmap scan keeps between calls.
#[derive(Default)]
pub struct State {
    /// For each wanted row of the block, the stripe's position in the scan and the row within the stripe.
    rows: Vec<(usize, u32)>,
    next: usize,
    /// Which of `rows` are loaded.
    loaded: Range<usize>,
    /// The fetcher for blocks whose rows are taken as they are, and the one for blocks whose condition is
    /// rechecked.
    fetch: [Option<Box<ColdFetch>>; 2],
}

/// The callbacks of a bitmap scan.
pub struct Blocks;

impl BitmapBlocks for Blocks {
    fn is_cold(block: BlockNumber) -> bool {
        block >= tid::COLD_BASE
    }

    unsafe fn state<'a>(scan: TableScanDesc) -> &'a mut BitmapState {
        // SAFETY: the scan is ours.
        unsafe { &mut (*scan.cast::<Scan>()).bitmap }
    }

    fn heap_routine() -> &'static pg_sys::TableAmRoutine {
        heap()
    }

    unsafe fn heap(scan: TableScanDesc) -> TableScanDesc {
        // SAFETY: the scan is ours.
        unsafe { (*scan.cast::<Scan>()).heap }
    }

    unsafe fn begin(scan: TableScanDesc, block: BlockNumber, rows: Option<&[u16]>) -> bool {
        // SAFETY: the scan is ours.
        unsafe {
            let ours = scan.cast::<Scan>();
            scan::survey(ours);
            let state = Scan::state(ours);
            state.bitmap.rows.clear();
            state.bitmap.next = 0;
            state.bitmap.loaded = 0..0;
            let snapshot = (*scan).rs_snapshot;
            let rel = Open::of((*scan).rs_rd);
            let serializable = predicate_locks::serializable_reads(rel, snapshot);
            let mut take = |offset: u16| {
                let mut place = tid::tid(block, offset);
                let Some(row) = tid::row_of(place) else { return };
                let Some((at, position)) = stripe_of(&state.stripes, row) else { return };
                let there = if serializable {
                    is_there(rel, &state.stripes[at], row, &raw mut place, snapshot)
                } else {
                    !state.tombstones.contains(row)
                };
                if there {
                    state.bitmap.rows.push((at, position));
                }
            };
            match rows {
                Some(rows) => rows.iter().copied().for_each(&mut take),
                None => (1..=tid::ROWS_PER_BLOCK as u16).for_each(&mut take),
            }
            !state.bitmap.rows.is_empty()
        }
    }

    unsafe fn next(scan: TableScanDesc, recheck: bool, slot: *mut TupleTableSlot) -> bool {
        // SAFETY: the scan is ours.
        unsafe { next_cold_tuple(scan, recheck, slot) }
    }

    unsafe fn is_there(rel: pg_sys::Relation, scan: TableScanDesc, slot: *mut TupleTableSlot) -> bool {
        // SAFETY: the scan is ours, and its relation open.
        unsafe { moved::is_there(Open::of(rel), (*scan).rs_snapshot, slot) }
    }
}

/// Which of these stripes has the row, and where in it.
fn stripe_of(stripes: &[StripeEntry], row: u64) -> Option<(usize, u32)> {
    let at = stripes.partition_point(|entry| entry.first_row <= row).checked_sub(1)?;
    let entry = stripes.get(at).filter(|entry| entry.covers(row))?;
    Some((at, u32::try_from(row - entry.first_row).ok()?))
}

/// Whether a serializable reader sees a row of a stripe, on which it leaves its lock.
unsafe fn is_there(
    rel: Open,
    entry: &StripeEntry,
    row: u64,
    place: *mut ItemPointerData,
    snapshot: pg_sys::Snapshot,
) -> bool {
    // SAFETY: the snapshot is the scan's, the place the caller's.
    unsafe {
        predicate_locks::predicate_lock_tid(rel, place, snapshot, pg_sys::InvalidTransactionId);
        row_proxy::is_there(rel, entry.storage_id, row, snapshot)
            && moved::is_cold_there(rel, entry, row, snapshot)
    }
}

/// Not inlined, for the reason that `scan::scan_getnextslot_slow` gives.
#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn next_cold_tuple(
    scan: TableScanDesc,
    recheck: bool,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: the scan is ours.
    unsafe {
        let ours = scan.cast::<Scan>();
        let state = Scan::state(ours);
        let bitmap = &mut state.bitmap;
        let Some(&(stripe, _)) = bitmap.rows.get(bitmap.next) else { return false };
        let rel = (*scan).rs_rd;
        let fetch = bitmap.fetch[usize::from(recheck)].get_or_insert_with(|| {
            Box::new(if recheck {
                ColdFetch::new(Open::of(rel))
            } else {
                ColdFetch::without_recheck(Open::of(rel))
            })
        });
        if !bitmap.loaded.contains(&bitmap.next) {
            let Some(entry) = state.stripes.get(stripe) else { return false };
            let rest = bitmap.rows.get(bitmap.next..).unwrap_or_default();
            let rest: Vec<u32> =
                rest.iter().take_while(|(at, _)| *at == stripe).map(|&(_, row)| row).collect();
            let together = fetch.load(entry, &rest, slot);
            bitmap.loaded = bitmap.next..bitmap.next + together;
        }
        fetch.show(bitmap.next - bitmap.loaded.start, slot);
        bitmap.next += 1;
        scan::count_row(Open::of(rel));
        true
    }
}
