//! Sharing a scan among parallel workers.
//!
//! The server calls `estimate` and `initialize` in the leader before it starts workers, `attach` in each
//! worker, `shutdown` in all of them. Workers take parts of stripes from one counter; all have the same list
//! of stripes, because they have the same snapshot. Hot rows are shared by the access method's own state,
//! which follows ours in memory. Counters for EXPLAIN come back through the same memory. Invariant: the
//! memory is used only between `initialize` or `attach` and `shutdown`.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, ParallelTableScanDesc, Relation};

use super::Node;
use super::state::RowScan;
use crate::scan::table::TableScan;
use stripe::scan::{PARTS, Turns};

/// Figures that workers report.
const FIGURES: usize = 10;

/// What participants share. Shared memory is aligned to 32 bytes at most, so nothing here may ask for more.
#[repr(C)]
pub struct Shared {
    next: AtomicU64,
    figures: [AtomicU64; FIGURES],
}

impl Turns for Shared {
    fn take(&self) -> (u64, u64) {
        let unit = self.next.fetch_add(1, Ordering::Relaxed);
        (unit / PARTS, unit % PARTS)
    }
}

impl Shared {
    /// The access method's state for hot rows.
    pub const fn table(&self) -> ParallelTableScanDesc {
        // SAFETY: `estimate` asked for room for both.
        unsafe { std::ptr::from_ref(self).add(1).cast_mut().cast() }
    }
}

const fn figures(table: &mut TableScan) -> [&mut u64; FIGURES] {
    let counters = &mut table.counters;
    [
        &mut counters.stripes_read,
        &mut counters.stripes_pruned,
        &mut counters.chunks_read,
        &mut counters.chunks_pruned,
        &mut counters.rows_filtered,
        &mut table.hot_rows,
        &mut table.hot_filtered,
        &mut counters.rows_known,
        &mut counters.bytes_read,
        &mut counters.bytes_decoded,
    ]
}

unsafe fn scan_of<'a>(custom: *mut pg_sys::CustomScanState) -> &'a mut RowScan {
    // SAFETY: the node has begun, and callbacks of one node never overlap.
    unsafe { &mut *(*custom.cast::<Node>()).state }
}

/// The callbacks of a table's access method.
unsafe fn routine_of<'a>(rel: Relation) -> &'a pg_sys::TableAmRoutine {
    // SAFETY: the relation is open, and its routine is a constant.
    unsafe { &*(*rel).rd_tableam }
}

/// Bytes of shared memory.
#[pg_guard]
pub unsafe extern "C-unwind" fn estimate(
    custom: *mut pg_sys::CustomScanState,
    _pcxt: *mut pg_sys::ParallelContext,
) -> pg_sys::Size {
    // SAFETY: the relation is open; the callback is our own.
    unsafe {
        let table = match routine_of(scan_of(custom).table.rel).parallelscan_estimate {
            Some(estimate) => estimate(scan_of(custom).table.rel),
            None => 0,
        };
        size_of::<Shared>() + table
    }
}

/// In the leader, before workers start.
#[pg_guard]
pub unsafe extern "C-unwind" fn initialize(
    custom: *mut pg_sys::CustomScanState,
    _pcxt: *mut pg_sys::ParallelContext,
    place: *mut c_void,
) {
    // SAFETY: `place` has the room that `estimate` asked for, and nobody else knows it yet.
    unsafe {
        let scan = scan_of(custom);
        let shared = place.cast::<Shared>();
        shared.write(Shared { next: AtomicU64::new(0), figures: [const { AtomicU64::new(0) }; FIGURES] });
        initialize_table(scan.table.rel, (*shared).table());
        scan.shared = shared;
    }
}

unsafe fn initialize_table(rel: Relation, table: ParallelTableScanDesc) {
    // SAFETY: the access method asked for as much room as follows our part.
    unsafe {
        if let Some(initialize) = routine_of(rel).parallelscan_initialize {
            initialize(rel, table);
        }
    }
}

/// In the leader, before workers start over.
#[pg_guard]
pub unsafe extern "C-unwind" fn reinitialize(
    custom: *mut pg_sys::CustomScanState,
    _pcxt: *mut pg_sys::ParallelContext,
    place: *mut c_void,
) {
    // SAFETY: `place` was initialised before; no worker runs now.
    unsafe {
        let scan = scan_of(custom);
        let shared = &*place.cast::<Shared>();
        collect(shared, &mut scan.table);
        shared.next.store(0, Ordering::Relaxed);
        if let Some(reinitialize) = routine_of(scan.table.rel).parallelscan_reinitialize {
            reinitialize(scan.table.rel, shared.table());
        }
        scan.shared = shared;
    }
}

/// In a worker, before its first row.
#[pg_guard]
pub unsafe extern "C-unwind" fn attach(
    custom: *mut pg_sys::CustomScanState,
    _toc: *mut pg_sys::shm_toc,
    place: *mut c_void,
) {
    // SAFETY: the leader initialised `place` and keeps it until workers have ended.
    unsafe { scan_of(custom).shared = place.cast::<Shared>() };
}

/// After the last row: workers report, the leader gathers.
#[pg_guard]
pub unsafe extern "C-unwind" fn shutdown(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the shared state is null or still there: the server frees it after this.
    unsafe {
        let scan = scan_of(custom);
        let Some(shared) = scan.shared.as_ref() else { return };
        if pg_sys::ParallelWorkerNumber >= 0 {
            for (from, to) in figures(&mut scan.table).into_iter().zip(&shared.figures) {
                to.fetch_add(std::mem::take(from), Ordering::Relaxed);
            }
        } else {
            collect(shared, &mut scan.table);
        }
        scan.shared = std::ptr::null();
    }
}

fn collect(shared: &Shared, table: &mut TableScan) {
    for (to, from) in figures(table).into_iter().zip(&shared.figures) {
        *to += from.swap(0, Ordering::Relaxed);
    }
}
