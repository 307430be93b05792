//! Single row blocks, for look-ups of single rows.
//!
//! Called by a host that keeps blocks between look-ups. A block is read once for all columns, but of a wide
//! block each column is read when it is asked for. Each column's piece is verified and opened when it is
//! asked for, and a piece that is asked for often is kept open.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use encodings::{BlockCodecs, Chunk};
use vector::{Error, LogicalType, Result};

use crate::blocks;
use crate::opened_chunk::{OpenedChunk, Source};
use crate::reader::{StripeBytes, StripeReader, is_wide, position, read_range};
use crate::writer::rows_of_chunk;

/// A row block that was read.
#[derive(Debug)]
pub struct RowBlock {
    number: u32,
    /// Where it lies in the stripe.
    place: Range<u64>,
    /// All of it, or at least the header.
    bytes: Vec<u8>,
    /// Of a wide block: the columns that were read.
    parts: Vec<OnceLock<Vec<u8>>>,
    rows: u32,
}

impl RowBlock {
    /// Rows.
    pub const fn rows(&self) -> u32 {
        self.rows
    }

    /// The bytes of a column that was read. In a block that is not wide they are these of its bytes.
    pub(crate) fn part(&self, column: usize, range: Range<usize>) -> &[u8] {
        match self.parts.get(column) {
            Some(part) => part.get().map_or(&[], Vec::as_slice),
            None => self.bytes.get(range).unwrap_or_default(),
        }
    }

    /// Memory, in bytes. It grows as columns of a wide block are read.
    pub fn memory(&self) -> usize {
        let parts: usize = self.parts.iter().filter_map(OnceLock::get).map(Vec::capacity).sum();
        size_of::<Self>() + self.bytes.capacity() + self.parts.len() * size_of::<OnceLock<Vec<u8>>>() + parts
    }
}

impl StripeReader {
    /// The row block with this number.
    ///
    /// # Errors
    /// `InvalidInput` where there is no such block.
    pub fn read_block(&self, number: u32, bytes: &dyn StripeBytes) -> Result<RowBlock> {
        let Some(blocks) = &self.footer.blocks else {
            return Err(Error::InvalidInput("a stripe without row blocks".into()));
        };
        let numbers = number..number.saturating_add(1);
        let place = self.index(blocks, bytes)?.range(&numbers)?;
        let rows = rows_of_chunk(self.footer.row_count, blocks.rows, number);
        let mut parts = Vec::new();
        let bytes = if is_wide(&place, &numbers) {
            parts.resize_with(self.column_count(), OnceLock::new);
            read_range(&self.header_of(&place), bytes)?
        } else {
            read_range(&place, bytes)?
        };
        Ok(RowBlock { number, place, bytes, parts, rows: rows.end - rows.start })
    }

    /// A column's values in a block of this stripe, checked against their checksum. `bytes` is asked for what
    /// the column's pieces share, once. Errors of the chunk's methods do not name the place (`located`).
    pub fn open_in_block<'a>(
        &'a self,
        block: &'a RowBlock,
        column: usize,
        bytes: &dyn StripeBytes,
        codecs: &'a dyn BlockCodecs,
    ) -> Result<Chunk<'a>> {
        let shared = self.shared(column, bytes, codecs)?;
        let (logical, piece) = self.verified_piece(block, column, bytes)?;
        Chunk::open(logical, block.rows, block.part(column, piece), shared, codecs)
            .map_err(|error| self.located(block, column, error))
    }

    /// As `open_in_block`, with a chunk that can be kept.
    pub fn keep_in_block(
        &self,
        block: &Arc<RowBlock>,
        column: usize,
        bytes: &dyn StripeBytes,
        codecs: &'static dyn BlockCodecs,
    ) -> Result<OpenedChunk> {
        let shared = Arc::clone(self.shared(column, bytes, codecs)?);
        let (logical, piece) = self.verified_piece(block, column, bytes)?;
        let source = Source::Block { block: Arc::clone(block), column, logical, piece, shared };
        OpenedChunk::open(source, codecs).map_err(|error| self.located(block, column, error))
    }

    /// Type and place of a column's piece in a block, whose bytes match their checksum.
    fn verified_piece(
        &self,
        block: &RowBlock,
        column: usize,
        bytes: &dyn StripeBytes,
    ) -> Result<(LogicalType, Range<usize>)> {
        let find = || {
            let section = blocks::piece(&block.bytes, &block.place, column, self.column_count())?;
            if let Some(part) = block.parts.get(column)
                && part.get().is_none()
            {
                let _ = part.set(read_range(&section.range, bytes)?);
            }
            let within = |place: u64| usize::try_from(place - block.place.start).unwrap_or(usize::MAX);
            let piece = within(section.range.start)..within(section.range.end);
            let sum = blocks::short_checksum(block.part(column, piece.clone()), section.range.start);
            section.expect(sum.into())?;
            let logical = self.logical(column).ok_or_else(|| Error::corrupt("a piece of no column"))?;
            Ok((logical, piece))
        };
        find().map_err(|error| self.located(block, column, error))
    }

    /// Adds the place of a column in a block to an error.
    pub fn located(&self, block: &RowBlock, column: usize, error: Error) -> Error {
        let rows = self.footer.blocks.as_ref().map_or(1, |blocks| blocks.rows);
        error.at(position(column), Some(self.chunk_of(block.number.saturating_mul(rows))))
    }
}
