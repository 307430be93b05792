//! TABLESAMPLE.
//!
//! A sample has two kinds of units. First come the blocks of the file, with their own numbers. Then come
//! groups of 256 row numbers that share a virtual block, numbered on from the last block. A method that
//! samples blocks chooses among both, and one that samples rows visits them all.
//!
//! Stripe pages count as empty blocks, which changes no row's chance. The rows of a group are offered to the
//! method under its virtual block number, so REPEATABLE repeats.

use pgrx::pg_guard;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, BlockNumber, SampleScanState, TableScanDesc, TupleTableSlot};

use super::moved;
use super::scan::{self, Scan};
use crate::compat;
use crate::host::heap_am::heap_guarded;
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::file::tid;

/// What a sample scan keeps between calls.
#[derive(Default)]
pub struct State {
    started: bool,
    /// Blocks of the file when the scan began.
    blocks: BlockNumber,
    /// Virtual blocks that hold rows of visible stripes, ascending.
    groups: Vec<u32>,
    /// For methods that visit everything: the unit to look at next.
    next_unit: u64,
    /// The virtual block being read; None while on a hot block.
    group: Option<u32>,
    /// All units have been offered.
    finished: bool,
}

/// Counts what there is to choose from.
fn start(sample: &mut State, stripes: &[StripeEntry], rel: Open) {
    sample.started = true;
    sample.blocks = rel.block_count();
    let mut groups: Vec<u32> = Vec::new();
    for entry in stripes {
        if entry.row_count == 0 {
            continue;
        }
        let first = tid::block_of(tid::cold_tid(entry.first_row));
        let last = tid::block_of(tid::cold_tid(entry.end_row() - 1));
        let first = groups.last().map_or(first, |&end| first.max(end + 1));
        groups.extend(first..=last);
    }
    sample.groups = groups;
}

/// The next of so many units that the node's method chooses; all of them where it does not choose.
unsafe fn next_unit(sample: &mut State, total: u64, node: *mut SampleScanState) -> Option<u64> {
    if total == 0 {
        return None;
    }
    // SAFETY: the node's method is set up.
    match unsafe { (*(*node).tsmroutine).NextSampleBlock } {
        Some(choose) => {
            let units = u32::try_from(total).unwrap_or(u32::MAX - 1);
            // SAFETY: as above; its ERROR is made to unwind.
            let block = unsafe { pg_guard_ffi_boundary(|| choose(node, units)) };
            (block != pg_sys::InvalidBlockNumber).then_some(u64::from(block))
        }
        None => {
            let unit = sample.next_unit;
            sample.next_unit += 1;
            (unit < total).then_some(unit)
        }
    }
}

/// `scan_sample_next_block`.
#[pg_guard]
pub unsafe extern "C-unwind" fn next_block(scan: TableScanDesc, node: *mut SampleScanState) -> bool {
    // SAFETY: the scan is ours and the node's method is set up.
    unsafe {
        let ours = scan.cast::<Scan>();
        scan::survey(ours);
        let state = Scan::state(ours);
        if !state.sample.started {
            start(&mut state.sample, &state.stripes, Open::of((*scan).rs_rd));
        }
        if state.sample.finished {
            return false;
        }
        let total = u64::from(state.sample.blocks) + state.sample.groups.len() as u64;
        loop {
            pgrx::check_for_interrupts!();
            let unit = next_unit(&mut state.sample, total, node);
            let Some(unit) = unit else {
                state.sample.finished = true;
                return false;
            };
            if unit < u64::from(state.sample.blocks) {
                let block = unit as u32;
                let after = state.spans.partition_point(|span| span.start <= block);
                let hot = after.checked_sub(1).is_some_and(|at| block < state.spans[at].end);
                if !hot {
                    continue;
                }
                state.sample.group = None;
                compat::enter_block((*ours).heap, block);
                return true;
            }
            let at = (unit - u64::from(state.sample.blocks)) as usize;
            state.sample.group = state.sample.groups.get(at).copied();
            if state.sample.group.is_some() {
                return true;
            }
        }
    }
}

/// `scan_sample_next_tuple`.
#[pg_guard]
pub unsafe extern "C-unwind" fn next_tuple(
    scan: TableScanDesc,
    node: *mut SampleScanState,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: the scan is ours and the node's method is set up.
    unsafe {
        let ours = scan.cast::<Scan>();
        let state = Scan::state(ours);
        let Some(group) = state.sample.group else {
            while heap_guarded!(scan_sample_next_tuple((*ours).heap, node, slot)) {
                if moved::is_there(Open::of((*scan).rs_rd), (*scan).rs_snapshot, slot) {
                    return true;
                }
            }
            return false;
        };
        let Some(choose) = (*(*node).tsmroutine).NextSampleTuple else { return false };
        loop {
            pgrx::check_for_interrupts!();
            let offset = pg_guard_ffi_boundary(|| choose(node, group, tid::ROWS_PER_BLOCK as u16));
            if offset == 0 {
                pg_sys::ExecClearTuple(slot);
                return false;
            }
            let Some(row) = tid::row_of(tid::tid(group, offset)) else { continue };
            let after = state.stripes.partition_point(|entry| entry.first_row <= row);
            if let Some(at) = after.checked_sub(1)
                && state.stripes[at].covers(row)
                && let Ok(position) = u32::try_from(row - state.stripes[at].first_row)
                && !state.tombstones.contains(row)
            {
                let entry = std::ptr::from_ref(&state.stripes[at]);
                scan::cold_rows(ours).fetch(&*entry, position, slot);
                scan::count_row(Open::of((*scan).rs_rd));
                return true;
            }
        }
    }
}
