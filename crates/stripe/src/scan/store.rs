//! The border between a scan and the place where its stripes are kept.
//!
//! A host implements [`Store`] for each kind of place: the pages of a table, a file, blobs of another
//! database. The scan asks on one thread, in the order of the stripes.
//!
//! Invariant: the answers of a store do not change while a scan runs.

use std::fmt;
use std::ops::Range;

use encodings::BlockCodecs;
use vector::{Error, Result};

use crate::{OpenStripe, StripeBytes};

/// What a scan has to know of a stripe before it opens it.
#[derive(Debug, Clone)]
pub struct StripeInfo<'a> {
    /// Number of its first row. The numbers of the others follow one by one.
    pub first_row: u64,
    /// Rows of the stripe, including those that are out.
    pub row_count: u32,
    /// Its statistics, as `write_summary` makes them.
    pub summary: &'a [u8],
    /// Where its footer lies among its bytes. The footers of its columns come right before it.
    pub footer: Range<u64>,
}

impl StripeInfo<'_> {
    /// The numbers of its rows.
    pub fn rows(&self) -> Range<u64> {
        self.first_row..self.first_row.saturating_add(self.row_count.into())
    }
}

/// Where stripes are kept, and which of their rows the reader may see.
pub trait Store {
    /// A stripe that is open. Cheap to clone.
    type Stripe: Clone;
    /// Gives bytes of one stripe.
    type Bytes<'a>: StripeBytes
    where
        Self: 'a;

    /// The stripe at this position among those that the reader sees. None past the last one.
    fn stripe(&self, at: usize) -> Option<StripeInfo<'_>>;

    /// Opens the stripe at this position, or finds it open.
    ///
    /// # Errors
    /// `Corrupt` where its footer is bad, `Host` where it cannot be read.
    fn open(&self, at: usize) -> Result<Self::Stripe>;

    /// The reader of an open stripe.
    fn reader(stripe: &Self::Stripe) -> &dyn OpenStripe;

    /// The bytes of the stripe at this position, which is open.
    ///
    /// # Errors
    /// `InvalidInput` past the last stripe.
    fn bytes(&self, at: usize) -> Result<Self::Bytes<'_>>;

    /// Tells `out` which of these rows are *out*: dead for the reader, or to be read elsewhere. All rows are
    /// of one stripe. The order does not matter.
    fn rows_out(&self, rows: Range<u64>, out: &mut RowsOut);

    /// Codecs of the blocks in these stripes.
    fn codecs(&self) -> &'static dyn BlockCodecs;

    /// The number by which the host knows what is scanned, for errors on other threads.
    fn number(&self) -> u32;

    /// Called before each stripe and chunk. Here a host looks whether the query was cancelled.
    fn pause(&self) {}

    /// How many bytes may be named at a time (`read_ahead`). 0 while bytes that are asked for are in memory,
    /// so that reading ahead does not pay.
    fn reach(&self) -> u64 {
        0
    }

    /// These bytes of the stripe at this position will be asked for, after those that were named before. The
    /// result is what `await_ahead` calls the last of them; later bytes have greater numbers.
    fn read_ahead(&self, at: usize, ranges: &[Range<u64>]) -> u64 {
        let _ = (at, ranges);
        0
    }

    /// The bytes up to this number are about to be asked for.
    fn await_ahead(&self, number: u64) {
        let _ = number;
    }

    /// What was named and not awaited will not be asked for.
    fn stop_ahead(&self) {}
}

/// Which rows of a range of row numbers are out.
#[derive(Debug)]
pub struct RowsOut {
    range: Range<u64>,
    /// Positions in the range.
    positions: Vec<u32>,
}

impl RowsOut {
    fn new(range: Range<u64>) -> Self {
        Self { range, positions: Vec::new() }
    }

    /// The row with this number is out.
    pub fn row(&mut self, number: u64) {
        if self.range.contains(&number) {
            self.positions.extend(u32::try_from(number - self.range.start));
        }
    }

    /// All rows with these numbers are out.
    pub fn rows(&mut self, numbers: Range<u64>) {
        let (start, end) = (numbers.start.max(self.range.start), numbers.end.min(self.range.end));
        let at = |number: u64| u32::try_from(number.saturating_sub(self.range.start));
        if let (Ok(start), Ok(end)) = (at(start), at(end)) {
            self.positions.extend(start..end);
        }
    }

    /// Positions in the range, ascending, each once.
    fn into_positions(mut self) -> Vec<u32> {
        if !self.positions.is_sorted_by(|a, b| a < b) {
            self.positions.sort_unstable();
            self.positions.dedup();
        }
        self.positions
    }
}

/// Positions of the rows of a range that are out, ascending.
pub(super) fn positions_out<S: Store>(store: &S, rows: Range<u64>) -> Vec<u32> {
    let mut out = RowsOut::new(rows.clone());
    store.rows_out(rows, &mut out);
    out.into_positions()
}

/// An error, with the stripe where it was met.
#[derive(Debug)]
pub struct Located<E = Error> {
    /// Number of the stripe's first row.
    pub first_row: u64,
    /// What went wrong.
    pub error: E,
}

impl<E> Located<E> {
    /// An error met in the stripe that begins with this row.
    pub const fn new(first_row: u64, error: E) -> Self {
        Self { first_row, error }
    }
}

impl From<Located> for Located<vector::flow::Error> {
    fn from(located: Located) -> Self {
        Self { first_row: located.first_row, error: located.error.into() }
    }
}

impl<E: fmt::Display> fmt::Display for Located<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stripe of row {}: {}", self.first_row, self.error)
    }
}
