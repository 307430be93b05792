//! Finished columns of some rows, on their way into the table: as a stripe, or row by row into the heap.
//!
//! Made by `set`, written by `write`. A stripe outlives its being written when a subtransaction wrote it
//! that may still abort. Invariant: its columns never change, so that a worker may read them.

use std::sync::Arc;

use vector::Vector;

use super::encoding::Encoding;
use super::{settings, write};
use crate::host::relation::Open;

/// Encoding fewer bytes of values takes too little time to start a thread for.
const WORTH_A_THREAD: usize = 1 << 20;

/// Finished columns of some rows.
pub(super) struct FinishedStripe {
    pub columns: Arc<Vec<Vector>>,
    pub rows: usize,
    pub bytes: usize,
    /// Row number of the first row, if they have been handed out.
    pub first_row: Option<u64>,
    /// Closed because a limit was reached, so it is a stripe.
    pub full: bool,
    /// The marks of the order that they are in (`sort_marks`).
    pub order: Arc<[u64]>,
    /// The worker that makes the stripe of it.
    pub encoding: Option<Encoding>,
}

impl FinishedStripe {
    /// Has a worker encode it, where that is worth it and possible.
    pub fn start_encoding(&mut self, rel: Open) {
        if self.bytes < WORTH_A_THREAD || !settings::encodes_in_background() {
            return;
        }
        let Ok(rows) = u32::try_from(self.rows) else { return };
        let options = write::stripe_options(rel);
        write::expect_memory(&self.columns);
        self.encoding = Encoding::start(rows, &self.columns, &options);
    }

    /// Bytes that only this stripe holds until it is written.
    pub fn bytes_in_background(&self) -> usize {
        if self.encoding.is_some() { self.bytes } else { 0 }
    }
}
