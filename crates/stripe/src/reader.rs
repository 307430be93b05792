//! Reads a stripe: its footer, column footers, shared sections and chunks. Each part is read when it is first
//! needed, and checked against its checksum. All parts except chunks are kept.
//!
//! A stripe has one of two layouts (`Layout`). A chunk of one with row blocks has a piece in each of its
//! blocks. The bytes of blocks are read once for all columns that are asked for while one of them is in use.
//!
//! The host hands in bytes through `StripeBytes` at each call. So a reader holds no page, and may be kept as
//! long as the stripe is visible. It is immutable and may be shared between threads. Errors name column and
//! chunk.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use encodings::{BlockCodecs, SharedColumn};
use vector::{Error, LogicalType, Result, Vector, concat};

use crate::blocks::{self, BlockIndex};
use crate::cursor::checksum;
use crate::footer::{ChunkEntry, ColumnEntry, ColumnFooter, Footer, RowBlocks, Section};
use crate::owned_chunk::{OwnedChunk, Piece};
use crate::statistics::ColumnStatistics;
use crate::writer::{Layout, rows_of_chunk};

/// Where the bytes of a stripe come from: pages, a blob, a slice.
pub trait StripeBytes {
    /// Appends exactly the bytes of `range` (counted from the stripe's first byte) to `out`, or fails.
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()>;
}

impl StripeBytes for &[u8] {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let place = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        match place.and_then(|(start, end)| self.get(start..end)) {
            Some(bytes) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            None => Err(Error::corrupt(format!("bytes {range:?} of a stripe of {}", self.len()))),
        }
    }
}

impl StripeBytes for Vec<u8> {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        self.as_slice().read(range, out)
    }
}

/// What a column holds and how wide it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSchema {
    /// What the values mean.
    pub logical: LogicalType,
}

/// The parts of a column, each from when it was first read.
#[derive(Default)]
struct LazyColumn {
    footer: OnceLock<Box<ColumnFooter>>,
    shared: OnceLock<Arc<SharedColumn>>,
}

/// About how many bytes of memory the statistics of a chunk or a column take, with their bounds.
const STATISTICS: usize = 512;

impl LazyColumn {
    fn memory(&self) -> usize {
        let footer = self.footer.get().map_or(0, |footer| (footer.chunks.len() + 1) * STATISTICS);
        footer + self.shared.get().map_or(0, |shared| shared.memory())
    }
}

/// A stripe opened for reading.
pub struct StripeReader {
    pub(crate) footer: Footer,
    columns: Vec<LazyColumn>,
    /// Of the row blocks, if there are any.
    index: OnceLock<BlockIndex>,
    /// The bytes of blocks that were read last, while somebody has them.
    last: Mutex<(Range<u64>, Weak<Vec<u8>>)>,
}

impl std::fmt::Debug for StripeReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StripeReader").field("footer", &self.footer).finish_non_exhaustive()
    }
}

impl StripeReader {
    /// Opens a stripe, given the bytes of its footer (`footer_offset` and `footer_length` of the directory).
    /// Column footers are read later.
    pub fn open(footer: &[u8]) -> Result<Self> {
        Footer::read(footer).map(Self::of_footer)
    }

    /// Opens a stripe whose footer is parsed.
    pub(crate) fn of_footer(footer: Footer) -> Self {
        let columns = footer.columns.iter().map(|_| LazyColumn::default()).collect();
        Self { footer, columns, index: OnceLock::new(), last: Mutex::default() }
    }

    /// Memory held, in bytes (an estimate for caches). It grows as columns are read.
    pub fn memory(&self) -> usize {
        let columns = self.columns.len() * (size_of::<LazyColumn>() + size_of::<ColumnEntry>());
        let index = self.index.get().map_or(0, BlockIndex::memory);
        columns + index + self.columns.iter().map(LazyColumn::memory).sum::<usize>()
    }

    /// The columns' types.
    pub fn schema(&self) -> impl ExactSizeIterator<Item = ColumnSchema> + '_ {
        self.footer.columns.iter().map(|column| ColumnSchema { logical: column.logical })
    }

    /// Type of one column. `None` if the stripe has fewer columns (a column was added since).
    pub fn logical(&self, column: usize) -> Option<LogicalType> {
        self.footer.columns.get(column).map(|column| column.logical)
    }

    /// Columns in the stripe.
    pub const fn column_count(&self) -> usize {
        self.footer.columns.len()
    }

    /// Rows in the stripe.
    pub const fn row_count(&self) -> u32 {
        self.footer.row_count
    }

    /// Chunks of each column.
    pub const fn chunk_count(&self) -> u32 {
        self.footer.chunk_count()
    }

    /// The stripe's rows that chunk `chunk` holds. Empty past the last chunk.
    pub fn chunk_rows(&self, chunk: u32) -> Range<u32> {
        rows_of_chunk(self.footer.row_count, self.footer.chunk_rows, chunk)
    }

    /// The chunk that holds a row of the stripe.
    pub const fn chunk_of(&self, row: u32) -> u32 {
        row / self.footer.chunk_rows
    }

    /// The rows that are read at once with a row: those of its chunk, or of its row block. The number is that
    /// of the chunk or block, the range is of positions in the stripe.
    pub fn unit_of(&self, row: u32) -> (u32, Range<u32>) {
        let rows = self.footer.blocks.as_ref().map_or(self.footer.chunk_rows, |blocks| blocks.rows);
        let unit = row / rows;
        (unit, rows_of_chunk(self.footer.row_count, rows, unit))
    }

    /// Statistics of a column over the whole stripe.
    pub fn column_statistics(&self, column: usize, bytes: &dyn StripeBytes) -> Result<&ColumnStatistics> {
        Ok(&self.column(column, bytes)?.statistics)
    }

    /// Statistics of one column chunk.
    pub fn statistics(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
    ) -> Result<&ColumnStatistics> {
        Ok(&self.chunk(column, chunk, bytes)?.statistics)
    }

    /// The bytes that have to be read for one column chunk, for prefetching. Columns share those of row
    /// blocks. None of wide blocks are named, as most columns read little of them.
    pub fn chunk_range(&self, column: usize, chunk: u32, bytes: &dyn StripeBytes) -> Result<Range<u64>> {
        match &self.footer.blocks {
            Some(blocks) => {
                let numbers = self.blocks_of(blocks, chunk)?;
                let all = self.index(blocks, bytes)?.range(&numbers)?;
                Ok(if is_wide(&all, &numbers) { all.start..all.start } else { all })
            }
            None => Ok(self.chunk(column, chunk, bytes)?.data.range.clone()),
        }
    }

    /// The bytes of the section that a column's chunks share.
    pub fn shared_range(&self, column: usize, bytes: &dyn StripeBytes) -> Result<Range<u64>> {
        Ok(self.column(column, bytes)?.shared.range.clone())
    }

    /// As `shared_range`, if the section has yet to be read.
    pub(crate) fn unread_shared_range(
        &self,
        column: usize,
        bytes: &dyn StripeBytes,
    ) -> Result<Option<Range<u64>>> {
        let (_, lazy) = self.entry(column)?;
        match lazy.shared.get() {
            Some(_) => Ok(None),
            None => self.shared_range(column, bytes).map(Some),
        }
    }

    /// Where the footer of a column lies. `None` if the stripe does not have the column.
    pub(crate) fn footer_range(&self, column: usize) -> Option<Range<u64>> {
        self.footer.columns.get(column).map(|column| column.footer.clone())
    }

    /// The shared section of a column, read once.
    pub fn shared(
        &self,
        column: usize,
        bytes: &dyn StripeBytes,
        codecs: &dyn BlockCodecs,
    ) -> Result<&Arc<SharedColumn>> {
        let (entry, lazy) = self.entry(column)?;
        if let Some(shared) = lazy.shared.get() {
            return Ok(shared);
        }
        let located = |error: Error| error.at(position(column), None);
        let section = self.column(column, bytes)?.shared.clone();
        let raw = read_section(&section, bytes).map_err(located)?;
        let shared = SharedColumn::open(entry.logical, &raw, codecs).map_err(located)?;
        // Two threads may both have read it. One of the equal results is kept.
        Ok(lazy.shared.get_or_init(|| shared))
    }

    /// One column chunk, checked against its checksum. The reader does not keep it; a caller that needs it
    /// again does.
    pub fn read_chunk(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
        codecs: &dyn BlockCodecs,
    ) -> Result<OwnedChunk> {
        let mut read = self.read_chunk_unverified(column, chunk, bytes, codecs)?;
        read.verify()?;
        Ok(read)
    }

    /// One column chunk, for a caller that lets another thread check it (`OwnedChunk::verify`).
    pub fn read_chunk_unverified(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
        codecs: &dyn BlockCodecs,
    ) -> Result<OwnedChunk> {
        match &self.footer.blocks {
            Some(blocks) => {
                let pieces = self.blocks_of(blocks, chunk);
                let pieces = pieces.and_then(|numbers| self.pieces(column, numbers, bytes));
                self.owned(column, chunk, pieces, bytes, codecs)
            }
            None => {
                let piece = || {
                    let ChunkEntry { data, statistics, .. } = self.chunk(column, chunk, bytes)?;
                    let raw =
                        if data.range.is_empty() { Vec::new() } else { read_range(&data.range, bytes)? };
                    Ok(vec![Piece::whole(statistics.rows, raw, data.clone())])
                };
                self.owned(column, chunk, piece(), bytes, codecs)
            }
        }
    }

    /// How the values of the stripe lie.
    pub const fn layout(&self) -> Layout {
        if self.footer.blocks.is_some() { Layout::Blocks } else { Layout::Columns }
    }

    fn owned(
        &self,
        column: usize,
        chunk: u32,
        pieces: Result<Vec<Piece>>,
        bytes: &dyn StripeBytes,
        codecs: &dyn BlockCodecs,
    ) -> Result<OwnedChunk> {
        let shared = Arc::clone(self.shared(column, bytes, codecs)?);
        let pieces = pieces.map_err(|e| e.at(position(column), Some(chunk)))?;
        Ok(OwnedChunk::new(self.entry(column)?.0.logical, pieces, shared, position(column), chunk))
    }

    /// The blocks that make up a chunk.
    fn blocks_of(&self, blocks: &RowBlocks, chunk: u32) -> Result<Range<u32>> {
        if chunk >= self.chunk_count() {
            let count = self.chunk_count();
            return Err(Error::InvalidInput(format!("chunk {chunk} of a column of {count} chunks")));
        }
        let rows = self.chunk_rows(chunk);
        Ok(rows.start / blocks.rows..rows.end.div_ceil(blocks.rows))
    }

    pub(crate) fn index(&self, blocks: &RowBlocks, bytes: &dyn StripeBytes) -> Result<&BlockIndex> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let count = self.footer.row_count.div_ceil(blocks.rows);
        let index = BlockIndex::read(&read_range(&blocks.index, bytes)?, count, self.footer.data_length)?;
        Ok(self.index.get_or_init(|| index))
    }

    /// A column's pieces in some blocks.
    fn pieces(&self, column: usize, numbers: Range<u32>, bytes: &dyn StripeBytes) -> Result<Vec<Piece>> {
        let Some(blocks) = &self.footer.blocks else { return Ok(Vec::new()) };
        let index = self.index(blocks, bytes)?;
        let all = index.range(&numbers)?;
        let source = match is_wide(&all, &numbers) {
            true => None,
            false => Some(self.bytes_of_blocks(&all, bytes)?),
        };
        let within = |place: u64| usize::try_from(place.saturating_sub(all.start)).unwrap_or(usize::MAX);
        let piece = |number: u32| {
            let place = index.range(&(number..number + 1))?;
            let rows = rows_of_chunk(self.footer.row_count, blocks.rows, number);
            let rows = rows.end - rows.start;
            let Some(source) = &source else {
                let header = read_range(&self.header_of(&place), bytes)?;
                let section = blocks::piece(&header, &place, column, self.columns.len())?;
                let source = Arc::new(read_range(&section.range, bytes)?);
                return Ok(Piece { rows, range: 0..source.len(), source, section, is_short: true });
            };
            let block = source.get(within(place.start)..within(place.end)).unwrap_or(&[]);
            let section = blocks::piece(block, &place, column, self.columns.len())?;
            let range = within(section.range.start)..within(section.range.end);
            Ok(Piece { rows, source: Arc::clone(source), range, section, is_short: true })
        };
        numbers.map(piece).collect()
    }

    /// The bytes that have at least the header of a block that lies there.
    pub(crate) fn header_of(&self, place: &Range<u64>) -> Range<u64> {
        place.start..place.end.min(place.start + blocks::header_bytes(self.columns.len()))
    }

    /// These bytes, which other columns may have asked for just now.
    fn bytes_of_blocks(&self, range: &Range<u64>, bytes: &dyn StripeBytes) -> Result<Arc<Vec<u8>>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 == *range
            && let Some(read) = last.1.upgrade()
        {
            return Ok(read);
        }
        let read = Arc::new(read_range(range, bytes)?);
        *last = (range.clone(), Arc::downgrade(&read));
        Ok(read)
    }

    /// The bloom filter of one column chunk, if it has one.
    pub fn bloom(&self, column: usize, chunk: u32, bytes: &dyn StripeBytes) -> Result<Option<Vec<u8>>> {
        let section = &self.chunk(column, chunk, bytes)?.bloom;
        match section.range.is_empty() {
            true => Ok(None),
            false => read_section(section, bytes).map(Some).map_err(|e| e.at(position(column), Some(chunk))),
        }
    }

    /// Rows `rows` (ascending positions in the stripe) of one column. Reads each chunk it touches once.
    pub fn take(
        &self,
        column: usize,
        rows: &[u32],
        bytes: &dyn StripeBytes,
        codecs: &dyn BlockCodecs,
    ) -> Result<Vector> {
        let (entry, _) = self.entry(column)?;
        let mut parts = Vec::new();
        let mut rest = rows;
        while let Some(&first) = rest.first() {
            let chunk = self.chunk_of(first);
            let within = self.chunk_rows(chunk);
            let count = rest.partition_point(|&row| row < within.end);
            if !within.contains(&first) || count == 0 {
                let total = self.footer.row_count;
                return Err(Error::InvalidInput(format!("row {first} of a stripe of {total} rows")));
            }
            let (here, after) = rest.split_at(count);
            rest = after;
            let positions: Vec<u32> = here.iter().map(|&row| row.saturating_sub(within.start)).collect();
            parts.push(self.read_chunk(column, chunk, bytes, codecs)?.take(&positions, codecs)?);
        }
        match parts.len() {
            1 => parts.pop().ok_or_else(|| Error::InvalidInput("no row".into())),
            _ => concat(entry.logical, parts),
        }
    }

    fn entry(&self, column: usize) -> Result<(&ColumnEntry, &LazyColumn)> {
        self.footer.columns.get(column).zip(self.columns.get(column)).ok_or_else(|| {
            Error::InvalidInput(format!("column {} of a stripe of {}", column + 1, self.columns.len()))
        })
    }

    fn column(&self, column: usize, bytes: &dyn StripeBytes) -> Result<&ColumnFooter> {
        let (entry, lazy) = self.entry(column)?;
        if let Some(footer) = lazy.footer.get() {
            return Ok(footer);
        }
        let parse = || {
            let raw = read_range(&entry.footer, bytes)?;
            ColumnFooter::read(&raw, &self.footer, entry)
        };
        let parsed = parse().map_err(|error: Error| error.at(position(column), None))?;
        Ok(lazy.footer.get_or_init(|| Box::new(parsed)))
    }

    fn chunk(&self, column: usize, chunk: u32, bytes: &dyn StripeBytes) -> Result<&ChunkEntry> {
        let footer = self.column(column, bytes)?;
        footer.chunks.get(chunk as usize).ok_or_else(|| {
            Error::InvalidInput(format!("chunk {chunk} of a column of {} chunks", footer.chunks.len()))
        })
    }
}

/// Blocks with more bytes than this on average are wide: their rows have large values, and a query that looks
/// at other columns must not read them. In blocks of the usual size the pieces of a column lie so near each
/// other that all is read at once.
const WIDE: u64 = 32 << 10;

pub(crate) const fn is_wide(all: &Range<u64>, numbers: &Range<u32>) -> bool {
    all.end - all.start > WIDE * (numbers.end - numbers.start) as u64
}

pub(crate) fn position(column: usize) -> Option<u32> {
    u32::try_from(column).ok()
}

/// Most bytes that are asked for before any of them was read.
const RESERVED: usize = 1 << 26;

pub(crate) fn read_range(range: &Range<u64>, bytes: &dyn StripeBytes) -> Result<Vec<u8>> {
    let length = usize::try_from(range.end - range.start)
        .map_err(|_| Error::corrupt(format!("bytes {range:?} do not fit memory")))?;
    let mut out = Vec::new();
    // A damaged footer may ask for any length. What is not there is an error of `read`.
    out.try_reserve_exact(length.min(RESERVED)).map_err(|_| Error::OutOfMemory { bytes: length })?;
    bytes.read(range.clone(), &mut out)?;
    match out.len() == length {
        true => Ok(out),
        false => Err(Error::Host(format!("{} bytes read where {length} were asked for", out.len()))),
    }
}

fn read_section(section: &Section, bytes: &dyn StripeBytes) -> Result<Vec<u8>> {
    if section.range.is_empty() {
        return Ok(Vec::new());
    }
    let raw = read_range(&section.range, bytes)?;
    section.expect(checksum(&raw))?;
    Ok(raw)
}
