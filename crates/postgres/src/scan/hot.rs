//! Rows in heap pages: one more source, read through the access method's own scan.
//!
//! Opened when the scan starts, because one look at the directory tells both which stripes are visible and
//! which blocks are hot. The rows are read when the stripes are used up. Invariant: the row loop calls `next`
//! bare, so it must not own anything across the call.

use pgrx::pg_sys::{
    self, ParallelTableScanDesc, Relation, ScanOptions, Snapshot, TableScanDesc, TupleTableSlot,
};

use crate::host::relation::Open;
use crate::storage::change::row_proxy::Tombstones;
use crate::storage::directory::StripeEntry;
use crate::storage::file::hot_runs::Span;
use crate::table_am::read::scan;

/// How heap reads the rows.
const FLAGS: u32 =
    ScanOptions::SO_TYPE_SEQSCAN | ScanOptions::SO_ALLOW_STRAT | ScanOptions::SO_ALLOW_PAGEMODE;

/// An open scan of the table's hot rows.
pub struct Hot {
    scan: TableScanDesc,
    slot: *mut TupleTableSlot,
}

impl Hot {
    /// Opens the scan and returns the stripes that the snapshot sees and those of their rows that are dead to
    /// it, which it leaves to the caller. Flushes rows of this backend that are still in memory. `shared` is
    /// null for a serial scan.
    ///
    /// # Safety
    /// `rel` stays open and `snapshot` registered until `close`; the current memory lives as long.
    pub unsafe fn open(
        rel: Relation,
        snapshot: Snapshot,
        shared: ParallelTableScanDesc,
    ) -> (Self, Vec<StripeEntry>, Tombstones) {
        // SAFETY: the caller's promise; a scan of ours begins with the server's descriptor.
        unsafe {
            let null = std::ptr::null_mut();
            let scan = scan::begin(Open::of(rel), snapshot, 0, null, shared, FLAGS);
            let (stripes, dead) = scan::take_stripes(scan.cast());
            let slot = pg_sys::table_slot_create(rel, std::ptr::null_mut());
            (Self { scan: scan.cast(), slot }, stripes, dead)
        }
    }

    /// Opens a scan of these blocks of a heap table.
    ///
    /// # Safety
    /// As `open`.
    pub unsafe fn over(rel: Relation, snapshot: Snapshot, blocks: Vec<Span>) -> Self {
        // SAFETY: as `open`; the access method's scan reads any heap pages.
        unsafe {
            let null = std::ptr::null_mut();
            let scan = scan::begin(Open::of(rel), snapshot, 0, null, std::ptr::null_mut(), FLAGS);
            scan::only_blocks(scan, blocks);
            Self { scan: scan.cast(), slot: pg_sys::table_slot_create(rel, std::ptr::null_mut()) }
        }
    }

    /// Steps to the next row; false at the end.
    ///
    /// # Safety
    /// The scan is open. An ERROR jumps past the caller.
    #[inline]
    pub unsafe fn next(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.next_into(self.slot) }
    }

    /// Steps back to the row before; false at the start.
    ///
    /// # Safety
    /// As `next`.
    #[inline]
    pub unsafe fn previous(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.step(self.slot, pg_sys::ScanDirection::BackwardScanDirection) }
    }

    /// As `next`, into a slot of the caller's that was made for this table.
    ///
    /// # Safety
    /// As `next`.
    #[inline]
    pub unsafe fn next_into(&self, slot: *mut TupleTableSlot) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.step(slot, pg_sys::ScanDirection::ForwardScanDirection) }
    }

    #[inline]
    unsafe fn step(&self, slot: *mut TupleTableSlot, direction: pg_sys::ScanDirection::Type) -> bool {
        // SAFETY: the scan and the slot are open, and the scan is one of ours, whatever the table is.
        unsafe { scan::scan_getnextslot(self.scan, direction, slot) }
    }

    /// The slot that holds the row.
    #[inline]
    pub const fn slot(&self) -> *mut TupleTableSlot {
        self.slot
    }

    /// Whether others read parts of it.
    pub fn is_parallel(&self) -> bool {
        // SAFETY: the scan is open.
        unsafe { !(*self.scan).rs_parallel.is_null() }
    }

    /// Goes back to the first row.
    ///
    /// # Safety
    /// The scan is open.
    pub unsafe fn restart(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            pg_sys::ExecClearTuple(self.slot);
            scan::scan_rescan(self.scan, std::ptr::null_mut(), false, false, false, false);
        }
    }

    /// Ends the scan. Not called after an ERROR: the server's abort releases everything.
    ///
    /// # Safety
    /// Called once.
    pub unsafe fn close(self) {
        // SAFETY: the caller's promise.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            scan::scan_end(self.scan);
        }
    }
}
