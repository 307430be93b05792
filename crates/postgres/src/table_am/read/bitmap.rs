//! Bitmap scans.
//!
//! A bitmap names blocks. Those from 2^31 on are virtual and stand for up to 256 cold rows each. Other blocks
//! are hot and go to heap. The wanted rows of a cold block that are in one chunk are loaded together.
//!
//! The server's node prefetches the blocks of its bitmap, which is not possible for virtual ones. `hooks`
//! turns that off.

use std::ops::Range;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, BlockNumber, TableScanDesc, TupleTableSlot};

use super::cold_fetch::ColdFetch;
use super::finder::{Finder, Found};
use super::moved;
use super::scan::{self, Scan};
use crate::compat::{BitmapBlocks, BitmapState};
use crate::host::heap_am::heap;
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::file::tid;

/// What a bitmap scan keeps between calls.
pub struct State {
    finder: Finder,
    /// The stripes that rows of the block are in.
    stripes: Vec<StripeEntry>,
    /// For each wanted row of the block, the stripe's position in `stripes` and the row within the stripe.
    rows: Vec<(usize, u32)>,
    next: usize,
    /// Which of `rows` are loaded.
    loaded: Range<usize>,
    /// The fetcher for blocks whose rows are taken as they are, and the one for blocks whose condition is
    /// rechecked.
    fetch: [Option<Box<ColdFetch>>; 2],
}

impl Default for State {
    fn default() -> Self {
        Self {
            finder: Finder::of_ascending_rows(),
            stripes: Vec::new(),
            rows: Vec::new(),
            next: 0,
            loaded: 0..0,
            fetch: [None, None],
        }
    }
}

impl State {
    /// Leaves the block that the scan stands in. What was found so far is kept for the next ones.
    pub(super) fn leave_block(&mut self) {
        self.stripes.clear();
        self.rows.clear();
        self.next = 0;
        self.loaded = 0..0;
    }
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
            let state = &mut Scan::state(scan.cast::<Scan>()).bitmap;
            state.leave_block();
            let snapshot = (*scan).rs_snapshot;
            let rel = Open::of((*scan).rs_rd);
            let mut take = |offset: u16| {
                let mut place = tid::tid(block, offset);
                let Some(row) = tid::row_of(place) else { return };
                let found = state.finder.find(rel, &raw mut place, row, snapshot, std::ptr::null_mut());
                let Found::There(entry) = found else { return };
                if state.stripes.last().is_none_or(|last| last.first_row != entry.first_row) {
                    state.stripes.push(entry.clone());
                }
                // A stripe's rows are numbered with 32 bits.
                state.rows.push((state.stripes.len() - 1, (row - entry.first_row) as u32));
            };
            match rows {
                Some(rows) => rows.iter().copied().for_each(&mut take),
                None => (1..=tid::ROWS_PER_BLOCK as u16).for_each(&mut take),
            }
            !state.rows.is_empty()
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
        let bitmap = &mut Scan::state(ours).bitmap;
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
            let Some(entry) = bitmap.stripes.get(stripe) else { return false };
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
