//! The bytes that say where everything in a stripe is: the footer, and one footer per column.
//!
//! ```text
//! stripe         columns' data, one column after the other: shared section, chunks, bloom filters
//!                version 2: row blocks, which have the values; chunks have no bytes of their own
//!                columns' footers, one after the other
//!                version 2: block index
//!                footer
//! footer         magic "CLST", version u8, column count u32, row count u32, chunk rows u32, data length u64,
//!                version 2: rows of a block u32, offset of the block index u64, its length u32;
//!                per column: type tag u8, fixed width u16, data offset u64, footer offset u64, footer length u32;
//!                checksum u64
//! column footer  shared length v, shared checksum u64 (if length > 0), statistics of the whole column,
//!                per chunk: length v, checksum u64, bloom length v, bloom checksum u64 (if length > 0), statistics;
//!                checksum u64
//! ```
//! v = varint; offsets count from the first byte of the stripe. The footer's version also holds for the
//! column footers. All entries of the footer have one width, so that one of 1,600 columns is found without
//! parsing the others.
//!
//! Invariant: a range that is returned from here is inside the stripe.

use std::ops::Range;

use encodings::cursor::Reader;
use vector::{Error, LogicalType, Result};

use crate::cursor::{Put, ReadMore, is_right, seal, unseal};
use crate::statistics::ColumnStatistics;

/// First bytes of a footer.
pub const MAGIC: [u8; 4] = *b"CLST";
/// Version of stripes that store each column apart.
pub const COLUMNS: u8 = 1;
/// Version of stripes with row blocks.
pub const BLOCKS: u8 = 2;
/// Most columns of a stripe.
pub const MAX_COLUMNS: usize = 65_535;

const ENTRY_BYTES: usize = 1 + 2 + 8 + 8 + 4;

/// Type and place of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnEntry {
    /// What its values mean.
    pub logical: LogicalType,
    /// First byte of its data.
    pub data_offset: u64,
    /// Where its footer is.
    pub footer: Range<u64>,
}

/// That rows lie in blocks, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowBlocks {
    /// Rows of every block but the last.
    pub rows: u32,
    /// Where the block index is.
    pub index: Range<u64>,
}

/// A parsed footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Rows in the stripe.
    pub row_count: u32,
    /// Rows of every chunk but the last.
    pub chunk_rows: u32,
    /// Length of all columns' data, row blocks included: where the column footers begin.
    pub data_length: u64,
    /// The row blocks. None if each column is stored apart.
    pub blocks: Option<RowBlocks>,
    /// The columns.
    pub columns: Vec<ColumnEntry>,
}

impl Footer {
    /// Number of chunks of each column.
    pub const fn chunk_count(&self) -> u32 {
        self.row_count.div_ceil(self.chunk_rows)
    }

    /// The sealed bytes.
    pub fn write(&self) -> Result<Vec<u8>> {
        let too_many = |_| Error::InvalidInput(format!("{} columns in one stripe", self.columns.len()));
        let mut out = Vec::with_capacity(64 + self.columns.len() * ENTRY_BYTES);
        out.extend_from_slice(&MAGIC);
        out.push(if self.blocks.is_some() { BLOCKS } else { COLUMNS });
        out.extend_from_slice(&u32::try_from(self.columns.len()).map_err(too_many)?.to_le_bytes());
        out.extend_from_slice(&self.row_count.to_le_bytes());
        out.extend_from_slice(&self.chunk_rows.to_le_bytes());
        out.extend_from_slice(&self.data_length.to_le_bytes());
        if let Some(blocks) = &self.blocks {
            out.extend_from_slice(&blocks.rows.to_le_bytes());
            write_range(&blocks.index, &mut out)?;
        }
        for column in &self.columns {
            let width = if let LogicalType::FixedBytes(width) = column.logical { width } else { 0 };
            out.push(column.logical.tag());
            out.extend_from_slice(&width.to_le_bytes());
            out.extend_from_slice(&column.data_offset.to_le_bytes());
            write_range(&column.footer, &mut out)?;
        }
        seal(&mut out);
        Ok(out)
    }

    /// Parses and checks sealed bytes.
    pub fn read(sealed: &[u8]) -> Result<Self> {
        // Magic and version are checked first. A newer version may be sealed in another way, and the error
        // must not call it corrupt.
        let mut head = Reader::new(sealed);
        if head.array::<4>()? != MAGIC {
            return Err(Error::corrupt("no stripe footer here"));
        }
        let version = head.u8()?;
        let body = unseal(sealed, "stripe footer")?;
        if version != COLUMNS && version != BLOCKS {
            return Err(Error::Unsupported(format!("stripe format version {version}")));
        }
        let mut cursor = Reader::new(body);
        cursor.take(MAGIC.len() + 1)?;
        let count = cursor.u32()? as usize;
        let row_count = cursor.u32()?;
        let chunk_rows = cursor.u32()?;
        let data_length = cursor.u64()?;
        if chunk_rows == 0 {
            return Err(Error::corrupt("chunks of no row"));
        }
        let blocks = match version {
            BLOCKS => Some(Self::read_blocks(&mut cursor, chunk_rows, data_length)?),
            _ => None,
        };
        if count > MAX_COLUMNS || cursor.remaining() != count * ENTRY_BYTES {
            return Err(Error::corrupt(format!("{count} columns in {} bytes", cursor.remaining())));
        }
        let mut columns = Vec::with_capacity(count);
        for column in 0..u32::try_from(count).unwrap_or(u32::MAX) {
            let entry = Self::read_entry(&mut cursor, data_length).map_err(|e| e.at(Some(column), None))?;
            columns.push(entry);
        }
        Ok(Self { row_count, chunk_rows, data_length, blocks, columns })
    }

    fn read_blocks(cursor: &mut Reader<'_>, chunk_rows: u32, data_length: u64) -> Result<RowBlocks> {
        let rows = cursor.u32()?;
        if rows == 0 || !chunk_rows.is_multiple_of(rows) {
            return Err(Error::corrupt(format!("blocks of {rows} rows in chunks of {chunk_rows}")));
        }
        let index = read_range(cursor)?.filter(|index| index.start >= data_length);
        let index = index.ok_or_else(|| Error::corrupt("the block index lies in the data"))?;
        Ok(RowBlocks { rows, index })
    }

    fn read_entry(cursor: &mut Reader<'_>, data_length: u64) -> Result<ColumnEntry> {
        let (tag, width) = (cursor.u8()?, cursor.u16()?);
        let Some(logical) = LogicalType::from_tag(tag, width) else {
            return Err(Error::corrupt(format!("type tag {tag}")));
        };
        if matches!(logical, LogicalType::FixedBytes(0)) {
            return Err(Error::corrupt("fixed-width column of width 0"));
        }
        let data_offset = cursor.u64()?;
        match read_range(cursor)? {
            Some(footer) if data_offset <= data_length && footer.start >= data_length => {
                Ok(ColumnEntry { logical, data_offset, footer })
            }
            footer => Err(Error::corrupt(format!("data at {data_offset}, footer at {footer:?}"))),
        }
    }
}

/// Writes where some bytes begin and how many they are.
fn write_range(range: &Range<u64>, out: &mut Vec<u8>) -> Result<()> {
    let length = u32::try_from(range.end - range.start)
        .map_err(|_| Error::InvalidInput("a footer past 4 GiB".into()))?;
    out.extend_from_slice(&range.start.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Reads what `write_range` wrote. None for a range that no stripe can have.
fn read_range(cursor: &mut Reader<'_>) -> Result<Option<Range<u64>>> {
    let (start, length) = (cursor.u64()?, cursor.u32()?);
    Ok(start.checked_add(length.into()).map(|end| start..end))
}

/// Where some bytes are and what their checksum is. An empty range has no checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Bytes of the stripe.
    pub range: Range<u64>,
    /// Their checksum.
    pub checksum: u64,
}

impl Section {
    /// `Corrupt` unless the checksum that was found is the right one.
    pub fn expect(&self, found: u64) -> Result<()> {
        match is_right(found, self.checksum) {
            true => Ok(()),
            false => Err(Error::corrupt(format!("bytes {:?} do not match their checksum", self.range))),
        }
    }
}

/// One column chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkEntry {
    /// The encoded values.
    pub data: Section,
    /// The bloom filter; empty when there is none.
    pub bloom: Section,
    /// What is known of the values.
    pub statistics: ColumnStatistics,
}

/// A parsed column footer.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnFooter {
    /// The section that all chunks of the column share.
    pub shared: Section,
    /// Statistics of the whole column.
    pub statistics: ColumnStatistics,
    /// The chunks.
    pub chunks: Vec<ChunkEntry>,
}

impl ColumnFooter {
    /// The sealed bytes. Ranges must follow each other: shared, chunks, bloom filters.
    pub fn write(&self, logical: LogicalType) -> Vec<u8> {
        let mut out = Vec::new();
        write_section(&self.shared, &mut out);
        self.statistics.write(logical, &mut out);
        for chunk in &self.chunks {
            write_section(&chunk.data, &mut out);
            write_section(&chunk.bloom, &mut out);
            chunk.statistics.write(logical, &mut out);
        }
        seal(&mut out);
        out
    }

    /// Parses and checks the sealed bytes of one column.
    pub fn read(sealed: &[u8], footer: &Footer, column: &ColumnEntry) -> Result<Self> {
        let mut cursor = Reader::new(unseal(sealed, "column footer")?);
        let mut place = column.data_offset;
        let mut section = |cursor: &mut Reader<'_>| read_section(cursor, &mut place, footer.data_length);
        let shared = section(&mut cursor)?;
        let statistics = ColumnStatistics::read(column.logical, footer.row_count, &mut cursor)?;
        let count = footer.chunk_count() as usize;
        // A chunk takes at least three bytes, so nothing is allocated beyond what the bytes can hold.
        let mut chunks = Vec::with_capacity(count.min(cursor.remaining() / 3));
        for chunk in 0..footer.chunk_count() {
            let first = chunk * footer.chunk_rows;
            let rows = footer.chunk_rows.min(footer.row_count - first);
            let entry = (|| {
                let data = section(&mut cursor)?;
                // Filters come after the chunks, so their place is known once all chunks are read.
                let bloom = read_length(&mut cursor)?;
                let statistics = ColumnStatistics::read(column.logical, rows, &mut cursor)?;
                Ok(ChunkEntry { data, bloom, statistics })
            })();
            chunks.push(entry.map_err(|e: Error| e.at(None, Some(chunk)))?);
        }
        cursor.finish("column footer")?;
        for chunk in &mut chunks {
            let length = chunk.bloom.range.end;
            chunk.bloom.range = advance(&mut place, length, footer.data_length)?;
        }
        Ok(Self { shared, statistics, chunks })
    }
}

fn write_section(section: &Section, out: &mut Vec<u8>) {
    let length = section.range.end - section.range.start;
    out.put_varint(u128::from(length));
    if length > 0 {
        out.extend_from_slice(&section.checksum.to_le_bytes());
    }
}

/// Reads a length and a checksum, as a section that starts at 0.
fn read_length(cursor: &mut Reader<'_>) -> Result<Section> {
    let length = cursor.varint()?;
    let checksum = if length > 0 { cursor.u64()? } else { 0 };
    Ok(Section { range: 0..length, checksum })
}

fn read_section(cursor: &mut Reader<'_>, place: &mut u64, limit: u64) -> Result<Section> {
    let Section { range, checksum } = read_length(cursor)?;
    Ok(Section { range: advance(place, range.end, limit)?, checksum })
}

/// The range of the next `length` bytes after `place`. Moves `place` behind them.
fn advance(place: &mut u64, length: u64, limit: u64) -> Result<Range<u64>> {
    let start = *place;
    match start.checked_add(length) {
        Some(end) if end <= limit => {
            *place = end;
            Ok(start..end)
        }
        _ => Err(Error::corrupt(format!("{length} bytes at {start} of {limit}"))),
    }
}
