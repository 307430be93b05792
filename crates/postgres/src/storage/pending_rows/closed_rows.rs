//! Finished columns of some rows, on their way into the table: as a stripe, or row by row into the heap.
//!
//! Made by `set`, written by `write`. If a subtransaction has written it that may still abort, the stripe is
//! kept after it was written.
//!
//! Invariant: its columns never change, so that a worker may read them.

use crate::host::worker;
use std::sync::Arc;
use stripe::{Background, EncodedStripe, encode_in_background};

use vector::Vector;

use super::{settings, write};
use crate::host::relation::Open;

/// Encoding fewer bytes of values takes so little time that a thread is not worth while.
const WORTH_A_THREAD: usize = 1 << 20;

/// Finished columns of some rows.
pub(super) struct ClosedRows {
    pub columns: Arc<Vec<Vector>>,
    pub rows: usize,
    pub bytes: usize,
    /// Row number of the first row, if row numbers have been handed out.
    pub first_row: Option<u64>,
    /// The rows were closed because a limit was reached, so they become a stripe.
    pub full: bool,
    /// The marks of the order that the rows are in (`sort_marks`).
    pub marks: Arc<[u64]>,
    /// The worker that encodes the rows as a stripe.
    pub encoding: Option<Background<EncodedStripe>>,
}

impl ClosedRows {
    /// Has a worker encode the rows, if that is worth while and possible.
    pub fn start_encoding(&mut self, rel: Open) {
        if self.bytes < WORTH_A_THREAD || !settings::encodes_in_background() {
            return;
        }
        let Ok(rows) = u32::try_from(self.rows) else { return };
        let options = write::stripe_options(rel);
        write::expect_memory(&self.columns);
        let start = |work| worker::spawn("colonnade load", work);
        self.encoding = encode_in_background(rows, &self.columns, &options, start);
    }

    /// Bytes that only this stripe holds until it is written.
    pub fn bytes_in_background(&self) -> usize {
        if self.encoding.is_some() { self.bytes } else { 0 }
    }
}
