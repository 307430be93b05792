//! Finished columns of some rows, on their way into the table: as a stripe, or row by row into the heap.
//!
//! Made by `set`, written by `write`. If a subtransaction has written it that may still abort, the stripe is
//! kept after it was written.
//!
//! Invariant: its columns never change, so that a worker may read them.

use std::sync::Arc;

use stripe::{Background, EncodedStripe};
use vector::Vector;

use super::write;
use crate::host::relation::Open;
use crate::storage::encoding;

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
        self.encoding = encoding::start(self.rows, self.bytes, &self.columns, &write::stripe_options(rel));
    }

    /// Bytes that only this stripe holds until it is written.
    pub fn bytes_in_background(&self) -> usize {
        if self.encoding.is_some() { self.bytes } else { 0 }
    }
}
