//! Bitmap scans.
//!
//! A bitmap names blocks; those from 2^31 on stand for up to 256 cold rows each. Hot blocks are heap's. The node asks
//! to prefetch the blocks of its bitmap, which virtual ones cannot be: `hooks` turns that off. Cold blocks of which
//! many rows are wanted are read by decoding their chunk, others row by row.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, TBMIterateResult, TableScanDesc, TupleTableSlot};

use super::cold_rows::ColdFetch;
use super::delegate::{heap_direct, heap_guarded};
use super::scan::{self, Scan};
use super::{moved, tid};
use crate::compat;
use crate::storage::row_proxy;

/// From this many rows of a block on, decode the chunk.
const MANY: usize = 16;

/// What a bitmap scan keeps between calls.
#[derive(Default)]
pub struct State {
    /// Position in the scan's stripes and row within the stripe.
    rows: Vec<(usize, u32)>,
    next: usize,
    single: Option<Box<ColdFetch>>,
}

/// `scan_bitmap_next_block`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn next_block(
    scan: TableScanDesc,
    result: *mut TBMIterateResult,
) -> bool {
    // SAFETY: the scan is ours; the result has as many offsets as it says.
    unsafe {
        let ours = scan.cast::<Scan>();
        let block = (*result).blockno;
        (*ours).bitmap_cold = block >= tid::COLD_BASE;
        if !(*ours).bitmap_cold {
            // A parallel bitmap scan gets its snapshot on the outer scan only.
            (*(*ours).heap).rs_snapshot = (*scan).rs_snapshot;
            return heap_guarded!(scan_bitmap_next_block((*ours).heap, result));
        }
        scan::survey(ours);
        let state = Scan::state(ours);
        state.bitmap.rows.clear();
        state.bitmap.next = 0;
        let offsets: Vec<u16> = match usize::try_from((*result).ntuples) {
            Ok(count) => (*result).offsets.as_slice(count).to_vec(),
            // Lossy: every row of the block, to be rechecked above.
            Err(_) => (1..=tid::ROWS_PER_BLOCK as u16).collect(),
        };
        let snapshot = (*scan).rs_snapshot;
        let serializable = compat::serializable_reads((*scan).rs_rd, snapshot);
        for offset in offsets {
            let mut place = tid::tid(block, offset);
            let Some(row) = tid::row_of(place) else { continue };
            let after = state.stripes.partition_point(|entry| entry.first_row <= row);
            if let Some(at) = after.checked_sub(1)
                && state.stripes[at].covers(row)
                && let Ok(position) = u32::try_from(row - state.stripes[at].first_row)
            {
                let there = if serializable {
                    let inserter = pg_sys::InvalidTransactionId;
                    compat::predicate_lock_tid((*scan).rs_rd, &raw mut place, snapshot, inserter);
                    row_proxy::is_there((*scan).rs_rd, state.stripes[at].storage_id, row, snapshot)
                } else {
                    !state.tombstones.contains(row)
                };
                if there {
                    state.bitmap.rows.push((at, position));
                }
            }
        }
        !state.bitmap.rows.is_empty()
    }
}

/// `scan_bitmap_next_tuple`: hot rows go straight through.
pub(super) unsafe extern "C-unwind" fn next_tuple(
    scan: TableScanDesc,
    result: *mut TBMIterateResult,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: the scan is ours; this frame owns nothing.
    unsafe {
        let ours = scan.cast::<Scan>();
        if !(*ours).bitmap_cold {
            while heap_direct!(scan_bitmap_next_tuple((*ours).heap, result, slot)) {
                if moved::is_there((*scan).rs_rd, (*scan).rs_snapshot, slot) {
                    return true;
                }
            }
            return false;
        }
        next_cold_tuple(scan, slot)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn next_cold_tuple(scan: TableScanDesc, slot: *mut TupleTableSlot) -> bool {
    // SAFETY: as above.
    unsafe {
        let ours = scan.cast::<Scan>();
        let state = Scan::state(ours);
        let Some(&(at, position)) = state.bitmap.rows.get(state.bitmap.next) else { return false };
        state.bitmap.next += 1;
        let entry = std::ptr::from_ref(&state.stripes[at]);
        if state.bitmap.rows.len() >= MANY {
            scan::cold_rows(ours).fetch(&*entry, position, slot);
        } else {
            let rel = (*scan).rs_rd;
            let single = state.bitmap.single.get_or_insert_with(|| Box::new(ColdFetch::new(rel)));
            single.fetch(&*entry, (*entry).first_row + u64::from(position), slot);
        }
        scan::count_row((*scan).rs_rd);
        true
    }
}
