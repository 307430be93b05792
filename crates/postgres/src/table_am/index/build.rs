//! CREATE INDEX and REINDEX.
//!
//! Heap's own builder indexes hot rows, one hot span at a time, on a heap-typed twin of the relation (see
//! `shim`). Cold rows follow, stripe by stripe. Only the columns that the index reads are decoded.
//!
//! Stripes that are dead but may still be seen by old snapshots are indexed, too. So are such rows of live
//! stripes, as heap does with recently dead rows.
//! - In a parallel build, both kinds of work come from the shared state of the scan.
//! - A concurrent build reads all spans and stripes under one snapshot. With one snapshot for each, it could
//!   meet a row twice that an UPDATE moves from span to span.
//! - A BRIN index gets hot rows only. It summarises ranges of blocks, and its map would be filled up to block
//!   2^31, where the blocks of cold rows begin.

use std::ffi::c_void;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, BlockNumber, IndexBuildCallback, IndexInfo, Relation, Snapshot, TableScanDesc};

use super::rows::{self, IndexRows};
use super::shim;
use crate::host::heap_am::heap_guarded;
use crate::host::relation::Open;
use crate::host::wal;
use crate::host::{error, full_errors};
use crate::storage::change::row_proxy;
use crate::storage::directory::age::Age;
use crate::storage::directory::entries;
use crate::storage::directory::{self, StripeEntry};
use crate::storage::file::hot_runs::{self, Span};
use crate::storage::file::{metapage, tid};
use crate::table_am::maintain::progress;
use crate::table_am::read::cold_rows::ColdRows;
use crate::table_am::read::{own_writes, parallel};

/// `index_build_range_scan`.
#[allow(clippy::too_many_arguments, reason = "the server's signature")]
pub unsafe extern "C-unwind" fn index_build_range_scan(
    rel: Relation,
    index: Relation,
    info: *mut IndexInfo,
    _allow_sync: bool,
    any_visible: bool,
    progress: bool,
    start: BlockNumber,
    count: BlockNumber,
    callback: IndexBuildCallback,
    callback_state: *mut c_void,
    scan: TableScanDesc,
) -> f64 {
    // SAFETY: as the server calls it, with a lock on the table that keeps writers out (or a concurrent build,
    // under a snapshot of its own).
    unsafe {
        let rel = Open::of(rel);
        let index = Open::of(index);
        full_errors::guarded(|| {
            own_writes::flush(rel);
            directory::prepare();
            // The snapshot must be taken before the spans are found: see `hot_runs`.
            let concurrent = (*info).ii_Concurrent.then(|| match scan.as_ref() {
                Some(scan) => scan.rs_snapshot,
                None => pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot()),
            });
            let parallel = if scan.is_null() { None } else { parallel::shared((*scan).rs_parallel) };
            let mut told = Told { is_on: progress, done: 0, parallel };
            let insert = Insert { callback, state: callback_state };
            let build = Build { rel, index, info, any_visible, concurrent, insert };
            let whole = start == 0 && count == pg_sys::InvalidBlockNumber;
            let mut rows = match parallel {
                Some(shared) => build.shared_spans(shared, &mut told),
                None => build.spans((!whole).then_some((start, count)), &mut told),
            };
            // From 17 on workers may build a BRIN index together.
            if (*info).ii_Am == pg_sys::BRIN_AM_OID || parallel.is_none() && !whole {
                release(concurrent, scan);
                return rows;
            }
            let stripes = stripes_to_index(rel, concurrent);
            if let Some((entry, _)) = stripes.first() {
                let dead = dead_rows(rel, entry.storage_id, concurrent);
                rows += build.cold(&stripes, &dead, &mut told);
            }
            warn_standbys(rel, concurrent);
            release(concurrent, scan);
            rows
        })
    }
}

/// How the index access method takes an entry, and what it wants to be called with.
#[derive(Clone, Copy)]
struct Insert {
    callback: IndexBuildCallback,
    state: *mut c_void,
}

/// What is built, and from what.
struct Build<'a> {
    rel: Open<'a>,
    index: Open<'a>,
    info: *mut IndexInfo,
    any_visible: bool,
    /// The one snapshot of a concurrent build.
    concurrent: Option<Snapshot>,
    insert: Insert,
}

impl Build<'_> {
    /// Has heap's builder read the hot spans that a parallel build gives to this process.
    fn shared_spans(&self, shared: &parallel::Shared, told: &mut Told) -> f64 {
        let mut rows = 0.0;
        // SAFETY: as `index_build_range_scan`.
        unsafe {
            told.begin(self.rel, self.concurrent, shared.hot_blocks());
            while let Some(span) = shared.take_hot() {
                rows += self.hot(span, told);
            }
        }
        rows
    }

    /// Has heap's builder read all hot spans, or those of so many blocks from `part` on.
    fn spans(&self, part: Option<(BlockNumber, BlockNumber)>, told: &mut Told) -> f64 {
        let mut rows = 0.0;
        let entries = metapage::storage_id(self.rel).map_or_else(Vec::new, entries::all_versions);
        let runs = entries.into_iter().map(|entry| entry.run);
        let spans = hot_runs::hot_spans(runs, self.rel.block_count());
        let spans = match part {
            None => spans,
            Some((start, count)) => {
                hot_runs::clip(&spans, start, start.saturating_add(count).saturating_sub(1))
            }
        };
        // SAFETY: as `index_build_range_scan`.
        unsafe {
            let blocks = spans.iter().map(|span| u64::from(span.blocks())).sum();
            told.begin(self.rel, self.concurrent, blocks);
            for span in spans.into_iter().flat_map(hot_runs::pieces) {
                rows += self.hot(span, told);
            }
        }
        rows
    }

    /// Has heap's builder read one hot span.
    fn hot(&self, span: Span, told: &mut Told) -> f64 {
        let heap_rel = shim::of(self.rel);
        // SAFETY: the twin is open as long as the table is.
        let rows = unsafe {
            match self.concurrent {
                Some(snapshot) => self.hot_under(heap_rel, snapshot, span),
                None => heap_guarded!(index_build_range_scan(
                    heap_rel,
                    self.index.as_ptr(),
                    self.info,
                    false,
                    self.any_visible,
                    // Heap would report progress of this span alone.
                    false,
                    span.start,
                    span.blocks(),
                    self.insert.callback,
                    self.insert.state,
                    std::ptr::null_mut(),
                )),
            }
        };
        told.add(span.blocks());
        rows
    }

    /// Heap's builder for one hot span under `snapshot`.
    unsafe fn hot_under(&self, heap_rel: Relation, snapshot: Snapshot, span: Span) -> f64 {
        // SAFETY: heap_rel is open and heap's. The builder reads under the snapshot of a scan that it is
        // given and ends the scan; it leaves the scan's limits alone when told that the scan may be
        // synchronised, which this one is not.
        unsafe {
            let scan = pg_guard_ffi_boundary(|| {
                let scan =
                    pg_sys::table_beginscan_strat(heap_rel, snapshot, 0, std::ptr::null_mut(), true, false);
                pg_sys::heap_setscanlimits(scan, span.start, span.blocks());
                scan
            });
            heap_guarded!(index_build_range_scan(
                heap_rel,
                self.index.as_ptr(),
                self.info,
                true,
                false,
                false,
                0,
                pg_sys::InvalidBlockNumber,
                self.insert.callback,
                self.insert.state,
                scan,
            ))
        }
    }

    /// Has the index access method insert the rows of stripes. `dead`: see `dead_rows`.
    fn cold(&self, stripes: &[(StripeEntry, bool)], dead: &[(u64, bool)], told: &mut Told) -> f64 {
        // SAFETY: the callback is the index access method's; its ERROR is made to unwind.
        unsafe {
            let Some(callback) = self.insert.callback else {
                error::internal("index build without a callback")
            };
            let mut entries = IndexRows::new(self.rel, self.info);
            let mut cold = ColdRows::new(self.rel, std::ptr::null_mut());
            cold.restrict(rows::columns_used(self.rel, self.info));
            let list: Vec<StripeEntry> = stripes.iter().map(|(entry, _)| entry.clone()).collect();
            let mut rows = 0.0;
            let mut next = 0;
            loop {
                let at = match told.parallel {
                    Some(shared) => shared.take_cold(&list),
                    None => (next < list.len()).then_some(next),
                };
                let Some(at) = at else { break };
                next = at + 1;
                let (entry, alive) = &stripes[at];
                for position in 0..entry.row_count {
                    if position % 1024 == 0 {
                        pgrx::check_for_interrupts!();
                    }
                    let row = entry.first_row + u64::from(position);
                    let Some(alive) = state_of(row, dead, *alive) else { continue };
                    cold.fetch(entry, position, entries.slot);
                    rows += f64::from(u8::from(alive));
                    if !entries.form() {
                        continue;
                    }
                    let mut tid = tid::cold_tid(row);
                    let (values, nulls) = (entries.values.as_mut_ptr(), entries.nulls.as_mut_ptr());
                    pg_guard_ffi_boundary(|| {
                        callback(self.index.as_ptr(), &raw mut tid, values, nulls, alive, self.insert.state);
                    });
                }
                told.add(entry.run.block_count);
            }
            entries.finish();
            rows
        }
    }
}

/// The progress of a build, which it reports.
struct Told<'a> {
    /// Whether this process reports it.
    is_on: bool,
    done: u64,
    parallel: Option<&'a parallel::Shared>,
}

impl Told<'_> {
    /// Reports how much there is to read: `hot` blocks of hot spans, and the stripes.
    unsafe fn begin(&self, rel: Open, concurrent: Option<Snapshot>, hot: u64) {
        if self.is_on {
            // SAFETY: the snapshot is the build's own.
            let stripes = unsafe { stripes_to_index(rel, concurrent) };
            let cold: u64 = stripes.iter().map(|(entry, _)| u64::from(entry.run.block_count)).sum();
            progress::index_build(Some(hot + cold), 0);
        }
    }

    /// Reports that this many more blocks were read.
    fn add(&mut self, blocks: u32) {
        self.done = match self.parallel {
            Some(shared) => shared.add_done(blocks.into()),
            None => self.done + u64::from(blocks),
        };
        if self.is_on {
            progress::index_build(None, self.done);
        }
    }
}

/// Ends the scan of a parallel build, or releases the snapshot of a serial one.
unsafe fn release(snapshot: Option<Snapshot>, scan: TableScanDesc) {
    // SAFETY: both are this build's own; a scan's snapshot goes with it.
    unsafe {
        if !scan.is_null() {
            crate::table_am::read::scan::scan_end(scan);
        } else if let Some(snapshot) = snapshot {
            pg_sys::UnregisterSnapshot(snapshot);
        }
    }
}

/// The stripes whose rows belong in the index, ordered by first row number, and whether each is live.
unsafe fn stripes_to_index(rel: Open, concurrent: Option<Snapshot>) -> Vec<(StripeEntry, bool)> {
    // SAFETY: the snapshot is the build's own.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return Vec::new() };
        let Some(snapshot) = concurrent else {
            let horizon = rel.oldest_xmin();
            return entries::not_dead(storage_id, horizon);
        };
        directory::visible(storage_id, snapshot).into_iter().map(|entry| (entry, true)).collect()
    }
}

/// Ends queries of standbys that see rows where they were before packing moved them, if the index has only
/// their new places. (For rows that somebody has changed, heap's builder leaves out such versions, too, and
/// warns nobody.)
unsafe fn warn_standbys(rel: Open, concurrent: Option<Snapshot>) {
    // SAFETY: a worker's leader does this.
    unsafe {
        if pg_sys::ParallelWorkerNumber >= 0 || !rel.needs_wal() {
            return;
        }
        let Some(storage_id) = metapage::storage_id(rel) else { return };
        let horizon = rel.oldest_xmin();
        let is_left_out = |entry: &StripeEntry| match concurrent {
            Some(snapshot) => !pg_sys::XidInMVCCSnapshot(entry.inserter, snapshot),
            None => Age::of(entry.inserter, horizon) == Age::Everybody,
        };
        let left_out = entries::all_versions(storage_id).into_iter().filter(|entry| {
            entry.moved && entry.inserter != pg_sys::InvalidTransactionId && is_left_out(entry)
        });
        let movers = left_out.map(|entry| entry.inserter);
        let newest =
            movers.reduce(|one, other| if pg_sys::TransactionIdPrecedes(one, other) { other } else { one });
        if let Some(newest) = newest {
            wal::log_conflict_horizon(rel, newest);
        }
    }
}

/// The dead rows, ascending, and whether some snapshot may still see each. Such rows belong in the index,
/// too.
unsafe fn dead_rows(rel: Open, storage_id: u64, concurrent: Option<Snapshot>) -> Vec<(u64, bool)> {
    // SAFETY: the snapshot is the build's own.
    unsafe {
        if let Some(snapshot) = concurrent {
            let found = row_proxy::tombstones(rel, storage_id, snapshot, usize::MAX);
            let mut found = found.unwrap_or_default();
            return found.among(0..u64::MAX).iter().map(|&row| (row, false)).collect();
        }
        let horizon = rel.oldest_xmin();
        let found = row_proxy::buried(storage_id, horizon).into_iter();
        found.map(|(row, age)| (row, age != Age::Everybody)).collect()
    }
}

/// Whether a row is alive, given those that are dead and whether its stripe is; None where it does not belong
/// into the index.
fn state_of(row: u64, dead: &[(u64, bool)], is_alive: bool) -> Option<bool> {
    match dead.binary_search_by_key(&row, |(row, _)| *row) {
        Ok(at) => dead.get(at).is_some_and(|(_, indexed)| *indexed).then_some(false),
        Err(_) => Some(is_alive),
    }
}
