//! Row blocks: the other layout of a stripe. The encoded values of a few rows lie side by side, all columns
//! of them, so that one row is read at one place.
//!
//! The writer makes blocks of encoded columns, the reader finds pieces of columns in them.
//!
//! ```text
//! block   width of its numbers u8: 2 or 4; per column: end of its piece (2 or 4 bytes, counted from the first
//!         piece), checksum of the piece u32; the pieces
//! index   first byte of the first block v, per block its length v; checksum u64
//! ```
//! A piece is what `encodings` calls a chunk. Its checksum is the one that other parts have plus its offset
//! in the stripe, modulo 2^32, so that no block passes in the place of another. All blocks but the last have
//! the same number of rows, and a chunk is a whole number of blocks.
//!
//! Invariant: a range that is returned from here is inside the data of the stripe. A damaged header leads to
//! bytes that do not match their checksum, or to an error.

use std::ops::Range;

use encodings::cursor::Reader;
use vector::{Error, Result, Vector};

use crate::cursor::{Put, ReadMore, checksum, seal, unseal};
use crate::footer::Section;

/// About how many bytes of memory the rows of a block take. Encoded, most blocks then fit a page.
const RAW_BYTES: usize = 48 << 10;
/// The most rows of a block.
const MOST_ROWS: usize = 1024;

/// How many rows a block of these columns has, and how many of them a chunk has: at most `chunk_rows`.
pub fn sizes(columns: &[Vector], chunk_rows: u32) -> (u32, u32) {
    let rows = columns.first().map_or(0, Vector::len);
    let raw: usize = columns.iter().map(Vector::bytes).sum();
    let fitting = (RAW_BYTES * rows.max(1) / raw.max(1)).clamp(1, MOST_ROWS);
    let fitting = u32::try_from(fitting).unwrap_or(1);
    // So many that they make up a chunk, if a number near enough does.
    if let Some(even) = (fitting / 2 + 1..=fitting).rev().find(|&rows| chunk_rows.is_multiple_of(rows)) {
        return (even, chunk_rows);
    }
    let blocks = chunk_rows.div_ceil(fitting);
    let block_rows = (chunk_rows / blocks.max(1)).max(1);
    (block_rows, block_rows * (chunk_rows / block_rows).max(1))
}

/// Appends `count` blocks, and returns the bytes of their index. `pieces` has for each column its pieces, one
/// a block.
pub fn write(pieces: &[Vec<Vec<u8>>], count: u32, out: &mut Vec<u8>) -> Result<Vec<u8>> {
    let mut index = Vec::new();
    let mut sums = Vec::with_capacity(pieces.len());
    index.put_varint(out.len() as u128);
    for block in 0..count as usize {
        let start = out.len();
        let of_block = || pieces.iter().map(|column| column.get(block).map_or(&[][..], Vec::as_slice));
        let total: usize = of_block().map(<[u8]>::len).sum();
        let width = if total <= usize::from(u16::MAX) { 2 } else { 4 };
        let too_long = |_| Error::InvalidInput("row block past 4 GiB".into());
        out.push(width);
        let mut end = 0u32;
        for piece in of_block() {
            end = end
                .checked_add(u32::try_from(piece.len()).map_err(too_long)?)
                .ok_or_else(|| Error::InvalidInput("row block past 4 GiB".into()))?;
            out.extend(end.to_le_bytes().iter().take(width.into()));
            sums.push(out.len());
            out.extend_from_slice(&[0; 4]);
        }
        for (piece, place) in of_block().zip(sums.drain(..)) {
            let sum = short_checksum(piece, out.len() as u64);
            if let Some(room) = out.get_mut(place..place + 4) {
                room.copy_from_slice(&sum.to_le_bytes());
            }
            out.extend_from_slice(piece);
        }
        index.put_varint((out.len() - start) as u128);
    }
    seal(&mut index);
    Ok(index)
}

/// The checksum of a piece that begins at this byte of the stripe.
pub fn short_checksum(piece: &[u8], start: u64) -> u32 {
    let [a, b, c, d, ..] = checksum(piece).wrapping_add(start).to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Where the blocks of a stripe lie.
#[derive(Debug)]
pub struct BlockIndex {
    /// Where each block begins, and where the last one ends.
    bounds: Vec<u64>,
}

impl BlockIndex {
    /// Parses the sealed bytes. `count` blocks lie within the first `limit` bytes of the stripe.
    pub fn read(sealed: &[u8], count: u32, limit: u64) -> Result<Self> {
        let mut cursor = Reader::new(unseal(sealed, "block index")?);
        let mut place = cursor.varint()?;
        let mut bounds = Vec::with_capacity((count as usize).min(cursor.remaining()) + 1);
        bounds.push(place);
        for _ in 0..count {
            let length = cursor.varint()?;
            place = match place.checked_add(length) {
                Some(end) if end <= limit => end,
                _ => return Err(Error::corrupt(format!("a block of {length} bytes at {place} of {limit}"))),
            };
            bounds.push(place);
        }
        cursor.finish("block index")?;
        Ok(Self { bounds })
    }

    /// Memory, in bytes.
    pub const fn memory(&self) -> usize {
        self.bounds.len() * size_of::<u64>()
    }

    /// The bytes of some blocks, all together.
    pub fn range(&self, blocks: &Range<u32>) -> Result<Range<u64>> {
        let bound = |block: u32| self.bounds.get(block as usize).copied();
        match (bound(blocks.start), bound(blocks.end)) {
            (Some(start), Some(end)) if start <= end => Ok(start..end),
            _ => Err(Error::InvalidInput(format!("blocks {blocks:?} of {}", self.bounds.len() - 1))),
        }
    }
}

/// The most bytes of a block's header.
pub const fn header_bytes(columns: usize) -> u64 {
    1 + columns as u64 * 8
}

/// The place of a column's piece in a block that lies at `place` in the stripe. `block` has at least its
/// header.
pub fn piece(block: &[u8], place: &Range<u64>, column: usize, columns: usize) -> Result<Section> {
    let at = place.start;
    let bad = || Error::corrupt(format!("the header of the block at {at}"));
    let width = match block.first() {
        Some(2) => 2,
        Some(4) => 4,
        _ => return Err(bad()),
    };
    let entry = |column: usize| {
        let start = 1 + column * (width + 4);
        let (end, sum) = block.get(start..start + width + 4)?.split_at_checked(width)?;
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
        Some((number(end), number(sum)))
    };
    let first = 1 + columns as u64 * (width as u64 + 4);
    let (end, sum) = entry(column).ok_or_else(bad)?;
    let start = match column.checked_sub(1) {
        Some(before) => entry(before).ok_or_else(bad)?.0,
        None => 0,
    };
    match start <= end && first + end <= place.end - at {
        true => Ok(Section { range: at + first + start..at + first + end, checksum: sum }),
        false => Err(bad()),
    }
}
