//! A round of packing one table, in the background or by CALL: how long it took, and its line in the log.
//!
//! Called by `worker` and `procedure`. As with autovacuum, a round has a line if it has done something and
//! took `colonnade.log_packing_min_duration` or longer. The line says what the round has done and committed.
//! A round that ends in an ERROR of its caller's has no line, as the ERROR has one.

use std::time::Instant;

use pgrx::pg_sys::{self, WalUsage};

use super::settings;
use super::statistics::{self, Done, Sum};
use crate::host::server_statistics::Usage;

/// A round that has begun.
pub(super) struct Round {
    began: Instant,
    usage: Usage,
    wal: WalUsage,
}

impl Round {
    pub unsafe fn begin() -> Self {
        statistics::begin_round();
        // SAFETY: counters of this process.
        unsafe { Self { began: Instant::now(), usage: Usage::now(), wal: pg_sys::pgWalUsage } }
    }

    /// The round has ended: returns whether it has done anything. `how` and the table's name are for the log.
    pub unsafe fn end(self, how: &str, name: &str) -> bool {
        let done = statistics::end_round();
        if done.iter().all(|&sum| sum == 0) {
            return false;
        }
        let least = settings::log_min_duration();
        if least.is_some_and(|least| self.began.elapsed() >= least) {
            // SAFETY: counters of this process.
            let wal = unsafe { pg_sys::pgWalUsage };
            pgrx::log!(
                "{how} of table {name}: {}\nWAL usage: {} records, {} full page images, {} bytes\nsystem usage: {}",
                describe(&done),
                wal.wal_records - self.wal.wal_records,
                wal.wal_fpi - self.wal.wal_fpi,
                wal.wal_bytes - self.wal.wal_bytes,
                // SAFETY: counters of this process.
                unsafe { self.usage.show() }
            );
        }
        true
    }
}

/// What was done, a line for each kind.
fn describe(done: &Done) -> String {
    let of = |sum: Sum| done.get(sum as usize).copied().unwrap_or(0);
    format!(
        "{} rows packed\npacked: {} bytes of heap rows into {} stripes of {} bytes\n\
         rewritten: {} rows, {} stripes of {} bytes into {} of {} bytes\n\
         other: {} stripes without rows taken out, {} moved, {} bytes cut off the file, {} vacuums",
        of(Sum::RowsPacked),
        of(Sum::PackedBytesBefore),
        of(Sum::StripesWritten),
        of(Sum::PackedBytesAfter),
        of(Sum::RowsRewritten),
        of(Sum::StripesReplaced),
        of(Sum::RewrittenBytesBefore),
        of(Sum::StripesRewritten),
        of(Sum::RewrittenBytesAfter),
        of(Sum::StripesTakenOut),
        of(Sum::StripesMoved),
        of(Sum::BytesCutOff),
        of(Sum::Vacuums),
    )
}
