//! PostgreSQL 17 alone.

use pgrx::pg_sys::{self, BitmapHeapScanState};

/// The option of a heap scan without which a bitmap scan passes over the rows of an all-visible page.
pub const NEED_TUPLES: u32 = pg_sys::ScanOptions::SO_NEED_TUPLES;

/// The option of a read stream whose callback neither locks nor reads.
pub const SIMPLE_CALLBACK: u32 = 0;

/// Lets a bitmap scan read every block itself, one after another.
pub fn read_each_block(scan: &mut BitmapHeapScanState) {
    scan.prefetch_maximum = 0;
}
