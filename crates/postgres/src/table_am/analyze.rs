//! ANALYZE's sample.
//!
//! The server samples blocks of the file and multiplies what it sees by the blocks it did not. A stripe page
//! therefore yields its share of its stripe's rows: page p of B gets rows R*p/B to R*(p+1)/B. Where the sampled pages
//! hold far more rows than the statistics need, every k-th row is returned and the others are only counted, hot and
//! cold alike, so the sample stays uniform and chunks full of rows cost no more than they are worth.
//! The stripes that count are the committed ones and our own, and so are their rows' deaths.

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, BlockNumber, BufferAccessStrategy, Relation, TableScanDesc, TransactionId, TupleTableSlot,
};

use super::cold_rows::SLOT_WANTS_SYSTEM_COLUMNS;
use super::delegate::heap_guarded;
use super::scan::{self, Scan};
use crate::host::relation;
use crate::storage::directory::StripeEntry;
use crate::storage::row_proxy::{self, Tombstones};
use crate::storage::{directory_scan, metapage};

/// Rows that ANALYZE takes per unit of statistics target (the server's own constant).
const ROWS_PER_TARGET: f64 = 300.0;
/// How many times the needed rows are offered at least.
const SURPLUS: f64 = 3.0;

/// What an ANALYZE scan keeps between calls.
#[derive(Default)]
pub struct State {
    started: bool,
    /// Live stripes ordered by first block.
    stripes: Vec<StripeEntry>,
    /// Rows of them that are dead.
    tombstones: Tombstones,
    /// Rows of the present page that are left: stripe, next row, end.
    page: Option<(usize, u32, u32)>,
    /// One row in `every` is returned.
    every: u64,
    seen: u64,
}

impl State {
    /// Whether the row just counted is one to return.
    fn chosen(&mut self) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(self.every.max(1))
    }
}

unsafe fn start(rel: Relation, state: &mut State) {
    // SAFETY: rel is open for the scan's life.
    unsafe {
        state.started = true;
        if let Some(storage_id) = metapage::storage_id(rel) {
            let now = &raw mut pg_sys::SnapshotSelfData;
            state.stripes = directory_scan::visible(storage_id, now);
            state.tombstones = row_proxy::tombstones(rel, storage_id, now, usize::MAX).unwrap_or_default();
        }
        state.stripes.retain(|entry| entry.run.block_count > 0 && entry.row_count > 0);
        state.stripes.sort_by_key(|entry| entry.run.first_block);
        let blocks = f64::from(relation::block_count(rel).max(1));
        let wanted = rows_wanted(rel);
        let rows: f64 = state.stripes.iter().map(|entry| f64::from(entry.row_count)).sum();
        let offered = rows * (wanted / blocks).min(1.0);
        state.every = (offered / (wanted * SURPLUS)).floor().clamp(1.0, 1e9) as u64;
    }
}

/// Rows that the statistics of this table's columns ask for.
unsafe fn rows_wanted(rel: Relation) -> f64 {
    // SAFETY: rel is open and so is its row type.
    unsafe {
        let desc = (*rel).rd_att;
        let count = usize::try_from((*desc).natts).unwrap_or(0);
        let columns = (*desc).attrs.as_slice(count).iter().filter(|a| !a.attisdropped);
        let target = columns
            .map(|a| if a.attstattarget < 0 { pg_sys::default_statistics_target } else { a.attstattarget })
            .max()
            .unwrap_or(pg_sys::default_statistics_target);
        f64::from(target.max(1)) * ROWS_PER_TARGET
    }
}

/// `scan_analyze_next_block`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn next_block(
    scan: TableScanDesc,
    block: BlockNumber,
    strategy: BufferAccessStrategy,
) -> bool {
    // SAFETY: the scan is ours.
    unsafe {
        let ours = scan.cast::<Scan>();
        let state = &mut Scan::state(ours).analyze;
        if !state.started {
            start((*scan).rs_rd, state);
        }
        let after = state.stripes.partition_point(|entry| entry.run.first_block <= block);
        state.page = None;
        if let Some(at) = after.checked_sub(1) {
            let entry = &state.stripes[at];
            let (page, pages) = (u64::from(block - entry.run.first_block), u64::from(entry.run.block_count));
            if page < pages {
                let rows = u64::from(entry.row_count);
                let from = (rows * page / pages) as u32;
                let to = (rows * (page + 1) / pages) as u32;
                state.page = Some((at, from, to));
                return to > from;
            }
        }
        heap_guarded!(scan_analyze_next_block((*ours).heap, block, strategy))
    }
}

/// `scan_analyze_next_tuple`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn next_tuple(
    scan: TableScanDesc,
    oldest_xmin: TransactionId,
    live: *mut f64,
    dead: *mut f64,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: as above; live and dead point at the caller's counters.
    unsafe {
        let ours = scan.cast::<Scan>();
        let state = Scan::state(ours);
        let Some((at, mut next, end)) = state.analyze.page else {
            while heap_guarded!(scan_analyze_next_tuple((*ours).heap, oldest_xmin, live, dead, slot)) {
                if state.analyze.chosen() {
                    return true;
                }
            }
            return false;
        };
        while next < end {
            let row = next;
            next += 1;
            let entry = &state.analyze.stripes[at];
            if state.analyze.tombstones.contains(entry.first_row + u64::from(row)) {
                *dead += 1.0;
                continue;
            }
            *live += 1.0;
            if state.analyze.chosen() {
                state.analyze.page = Some((at, next, end));
                let entry = std::ptr::from_ref(&state.analyze.stripes[at]);
                // As a heap tuple, which says its place: the sample is sorted by it, and correlation is measured in that order.
                (*slot).tts_flags |= SLOT_WANTS_SYSTEM_COLUMNS;
                scan::cold_rows(ours).fetch(&*entry, row, slot);
                return true;
            }
        }
        pg_sys::ExecClearTuple(slot);
        false
    }
}
