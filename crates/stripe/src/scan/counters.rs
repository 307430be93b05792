//! What a scan counts, for a host that explains what a query did.

use std::sync::atomic::{AtomicU64, Ordering};

/// What was read and what was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Stripes looked into.
    pub stripes_read: u64,
    /// Stripes left out by their statistics.
    pub stripes_pruned: u64,
    /// Chunks looked into.
    pub chunks_read: u64,
    /// Chunks left out by their statistics, those of pruned stripes not counted.
    pub chunks_pruned: u64,
    /// Stripes not looked into because a sort wanted no more rows.
    pub stripes_skipped: u64,
    /// Chunks not looked into for the same reason, of stripes that were looked into.
    pub chunks_skipped: u64,
    /// Rows of chunks left out by native clauses and by a plan's conditions.
    pub rows_filtered: u64,
    /// Rows of the chunks looked into.
    pub rows_read: u64,
    /// Rows answered from statistics.
    pub rows_known: u64,
    /// Bytes of column chunks read.
    pub bytes_read: u64,
    /// Bytes of values decoded.
    pub bytes_decoded: u64,
}

/// What units on other threads counted.
#[derive(Debug, Default)]
pub struct Tally {
    rows: AtomicU64,
    rows_filtered: AtomicU64,
    bytes_decoded: AtomicU64,
}

impl Tally {
    /// A unit gave these rows and counted this.
    pub(super) fn add(&self, rows: usize, counters: &Counters) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.rows_filtered.fetch_add(counters.rows_filtered, Ordering::Relaxed);
        self.bytes_decoded.fetch_add(counters.bytes_decoded, Ordering::Relaxed);
    }

    /// Rows that units gave since this was asked last.
    pub fn take_rows(&self) -> u64 {
        self.rows.swap(0, Ordering::Relaxed)
    }

    /// Rows left out by conditions.
    pub fn rows_filtered(&self) -> u64 {
        self.rows_filtered.load(Ordering::Relaxed)
    }

    /// Bytes of values decoded.
    pub fn bytes_decoded(&self) -> u64 {
        self.bytes_decoded.load(Ordering::Relaxed)
    }
}
