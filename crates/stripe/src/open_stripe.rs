//! What a scan asks of a stripe that is open, whatever the format of its bytes: a stripe of ours
//! (`StripeReader`), or rows of another format that lie by column.
//!
//! Called by `scan` and `prune`. A format implements [`OpenStripe`] for what is known of its rows, and
//! [`ColumnChunk`] for the encoded values of one column of a chunk.

use std::ops::Range;

use encodings::BlockCodecs;
use vector::{LogicalType, Predicate, Result, Scalar, Selection, Vector};

use crate::bloom;
use crate::{ColumnStatistics, OwnedChunk, StripeBytes, StripeReader};

/// A stripe that is open: its columns, what is known of them, and their chunks.
pub trait OpenStripe {
    /// Type of one column. None if the stripe does not have it.
    fn logical(&self, column: usize) -> Option<LogicalType>;

    /// Chunks of each column.
    fn chunk_count(&self) -> u32;

    /// The stripe's rows that a chunk holds. Empty past the last chunk.
    fn chunk_rows(&self, chunk: u32) -> Range<u32>;

    /// Statistics of a column over the whole stripe. None: nothing is known.
    ///
    /// # Errors
    /// `Corrupt` where stored bytes are bad.
    fn column_statistics(&self, column: usize, bytes: &dyn StripeBytes) -> Result<Option<&ColumnStatistics>>;

    /// Statistics of a column in one chunk, or in more rows of the stripe that include it. None: nothing is
    /// known.
    ///
    /// # Errors
    /// As `column_statistics`.
    fn statistics(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
    ) -> Result<Option<&ColumnStatistics>>;

    /// Whether `statistics` are about no other rows than those of the chunk.
    fn counts_chunks(&self) -> bool {
        true
    }

    /// Whether `may_have` can rule out the stripe as a whole.
    fn has_stripe_filters(&self) -> bool {
        false
    }

    /// Whether a chunk, or the whole stripe without one, may have one of these values of which `is_inside` is
    /// true, as far as something else than bounds tells.
    ///
    /// # Errors
    /// As `column_statistics`.
    fn may_have(
        &self,
        column: usize,
        chunk: Option<u32>,
        values: &[Scalar],
        is_inside: &dyn Fn(&Scalar) -> bool,
        bytes: &dyn StripeBytes,
    ) -> Result<bool> {
        let _ = (column, chunk, values, is_inside, bytes);
        Ok(true)
    }

    /// Whether a chunk may have decimals in the side lane.
    ///
    /// # Errors
    /// As `column_statistics`.
    fn has_side_values(&self, column: usize, chunk: u32, bytes: &dyn StripeBytes) -> Result<bool>;

    /// Reads a column's chunk, which has yet to be verified.
    ///
    /// # Errors
    /// `Corrupt` where stored bytes are bad, `Host` where they cannot be read.
    fn read_chunk(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
        codecs: &'static dyn BlockCodecs,
    ) -> Result<Box<dyn ColumnChunk>>;

    /// Whether chunks are decoded quickly only one after the other. Then one thread gets all of them.
    fn is_in_turn(&self) -> bool {
        false
    }

    /// A stripe of ours. Only of these are bytes named ahead.
    fn as_stripe(&self) -> Option<&StripeReader> {
        None
    }
}

impl OpenStripe for StripeReader {
    fn logical(&self, column: usize) -> Option<LogicalType> {
        Self::logical(self, column)
    }

    fn chunk_count(&self) -> u32 {
        Self::chunk_count(self)
    }

    fn chunk_rows(&self, chunk: u32) -> Range<u32> {
        Self::chunk_rows(self, chunk)
    }

    fn column_statistics(&self, column: usize, bytes: &dyn StripeBytes) -> Result<Option<&ColumnStatistics>> {
        Self::column_statistics(self, column, bytes).map(Some)
    }

    fn statistics(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
    ) -> Result<Option<&ColumnStatistics>> {
        Self::statistics(self, column, chunk, bytes).map(Some)
    }

    fn may_have(
        &self,
        column: usize,
        chunk: Option<u32>,
        values: &[Scalar],
        is_inside: &dyn Fn(&Scalar) -> bool,
        bytes: &dyn StripeBytes,
    ) -> Result<bool> {
        let Some(chunk) = chunk else { return Ok(true) };
        let (Some(logical), Some(filter)) = (self.logical(column), self.bloom(column, chunk, bytes)?) else {
            return Ok(true);
        };
        let may_have = |value: &Scalar| {
            is_inside(value)
                && bloom::hash_scalar(logical, value).is_none_or(|hash| bloom::may_contain(&filter, hash))
        };
        Ok(values.iter().any(may_have))
    }

    fn has_side_values(&self, column: usize, chunk: u32, bytes: &dyn StripeBytes) -> Result<bool> {
        Ok(Self::statistics(self, column, chunk, bytes)?.side_rows > 0)
    }

    fn read_chunk(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
        codecs: &'static dyn BlockCodecs,
    ) -> Result<Box<dyn ColumnChunk>> {
        Ok(Box::new(self.read_chunk_unverified(column, chunk, bytes, codecs)?))
    }

    fn as_stripe(&self) -> Option<&StripeReader> {
        Some(self)
    }
}

/// The encoded values of one column in one chunk. It has what it needs to decode them, so any thread can.
pub trait ColumnChunk: Send {
    /// Number of rows.
    fn rows(&self) -> u32;

    /// Stored length in bytes.
    fn stored_bytes(&self) -> u64;

    /// Compares the bytes with their checksums, if they have some, unless that was done. No other method
    /// works before.
    ///
    /// # Errors
    /// `Corrupt` where they differ.
    fn verify(&mut self) -> Result<()> {
        Ok(())
    }

    /// The first value of a chunk of integers, if each integer is known to be one more than the one before.
    ///
    /// # Errors
    /// As `decode`.
    fn consecutive(&self, codecs: &dyn BlockCodecs) -> Result<Option<i64>> {
        let _ = codecs;
        Ok(None)
    }

    /// Keeps the selected rows that satisfy a predicate on this column, on encoded data. False: it is not
    /// possible, and nothing was changed.
    ///
    /// # Errors
    /// As `decode`, and `Unsupported` for a predicate that is not for this type.
    fn filter(
        &self,
        predicate: &Predicate,
        selection: &mut Selection,
        codecs: &dyn BlockCodecs,
    ) -> Result<bool> {
        let _ = (predicate, selection, codecs);
        Ok(false)
    }

    /// All rows.
    ///
    /// # Errors
    /// `Corrupt` where stored bytes are bad.
    fn decode(&self, codecs: &dyn BlockCodecs) -> Result<Vector>;

    /// The rows at these ascending positions in the chunk.
    ///
    /// # Errors
    /// As `decode`.
    fn take(&self, rows: &[u32], codecs: &dyn BlockCodecs) -> Result<Vector>;

    /// A chunk of a stripe of ours.
    fn as_owned(&self) -> Option<&OwnedChunk> {
        None
    }
}

impl ColumnChunk for OwnedChunk {
    fn rows(&self) -> u32 {
        Self::rows(self)
    }

    fn stored_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn verify(&mut self) -> Result<()> {
        Self::verify(self)
    }

    fn consecutive(&self, codecs: &dyn BlockCodecs) -> Result<Option<i64>> {
        Self::consecutive(self, codecs)
    }

    fn filter(
        &self,
        predicate: &Predicate,
        selection: &mut Selection,
        codecs: &dyn BlockCodecs,
    ) -> Result<bool> {
        Self::filter(self, predicate, selection, codecs)
    }

    fn decode(&self, codecs: &dyn BlockCodecs) -> Result<Vector> {
        Self::decode(self, codecs)
    }

    fn take(&self, rows: &[u32], codecs: &dyn BlockCodecs) -> Result<Vector> {
        Self::take(self, rows, codecs)
    }

    fn as_owned(&self) -> Option<&OwnedChunk> {
        Some(self)
    }
}
