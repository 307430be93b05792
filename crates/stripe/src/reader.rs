//! Reads a stripe: its footer, column footers, shared sections and chunks. Each part is read when it is first
//! needed, and checked against its checksum. All parts except chunks are kept.
//!
//! The host hands in bytes through `StripeBytes` at each call. So a reader holds no page, and may be kept as
//! long as the stripe is visible. It is immutable and may be shared between threads. Errors name column and
//! chunk.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use encodings::{BlockCodecs, Chunk, Path, SharedColumn};
use vector::{Error, LogicalType, PhysicalType, Predicate, Result, Selection, Vector, concat};

use crate::cursor::checksum;
use crate::footer::{ChunkEntry, ColumnEntry, ColumnFooter, Footer, Section};
use crate::statistics::ColumnStatistics;
use crate::writer::rows_of_chunk;

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
    footer: Footer,
    columns: Vec<LazyColumn>,
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
        let footer = Footer::read(footer)?;
        let columns = footer.columns.iter().map(|_| LazyColumn::default()).collect();
        Ok(Self { footer, columns })
    }

    /// Memory held, in bytes (an estimate for caches). It grows as columns are read.
    pub fn memory(&self) -> usize {
        let columns = self.columns.len() * (size_of::<LazyColumn>() + size_of::<ColumnEntry>());
        columns + self.columns.iter().map(LazyColumn::memory).sum::<usize>()
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

    /// The bytes of one column chunk within the stripe, for prefetching and accounts.
    pub fn chunk_range(&self, column: usize, chunk: u32, bytes: &dyn StripeBytes) -> Result<Range<u64>> {
        Ok(self.chunk(column, chunk, bytes)?.data.range.clone())
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
        let shared = Arc::clone(self.shared(column, bytes, codecs)?);
        let (entry, _) = self.entry(column)?;
        let chunk_entry = self.chunk(column, chunk, bytes)?;
        let section = &chunk_entry.data;
        let raw = match section.range.is_empty() {
            true => Vec::new(),
            false => read_range(&section.range, bytes).map_err(|e| e.at(position(column), Some(chunk)))?,
        };
        Ok(OwnedChunk {
            logical: entry.logical,
            rows: chunk_entry.statistics.rows,
            bytes: raw,
            unverified: Some(section.clone()).filter(|section| !section.range.is_empty()),
            shared,
            column: position(column),
            chunk,
        })
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

/// The bytes of one column chunk with what is needed to read them.
#[derive(Clone)]
pub struct OwnedChunk {
    logical: LogicalType,
    rows: u32,
    bytes: Vec<u8>,
    /// Where the bytes come from and which checksum they must have. None once this was checked.
    unverified: Option<Section>,
    shared: Arc<SharedColumn>,
    column: Option<u32>,
    chunk: u32,
}

impl OwnedChunk {
    /// Number of rows.
    pub const fn rows(&self) -> u32 {
        self.rows
    }

    /// Stored length in bytes.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True when it takes no byte.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Compares the bytes with their checksum, unless that was done. No other method works before.
    pub fn verify(&mut self) -> Result<()> {
        match &self.unverified {
            Some(section) => verify(section, &self.bytes).map_err(|e| self.located(e))?,
            None => return Ok(()),
        }
        self.unverified = None;
        Ok(())
    }

    /// The encoded chunk. Errors of its methods do not name the place. Errors of the methods below do.
    pub fn open<'a>(&'a self, codecs: &'a dyn BlockCodecs) -> Result<Chunk<'a>> {
        if self.unverified.is_some() {
            return Err(self.located(Error::InvalidInput("a chunk that was not verified".into())));
        }
        Chunk::open(self.logical, self.rows, &self.bytes, &self.shared, codecs).map_err(|e| self.located(e))
    }

    /// The paths of shredded documents (`Chunk::path`), by number. Empty for any other column.
    pub fn paths(&self, codecs: &dyn BlockCodecs) -> Result<Vec<Path>> {
        self.shared.paths(codecs).map_err(|e| self.located(e))
    }

    /// All rows.
    pub fn decode(&self, codecs: &dyn BlockCodecs) -> Result<Vector> {
        let vector = self.open(codecs)?.decode().map_err(|e| self.located(e))?;
        self.checked(vector, self.rows as usize)
    }

    /// The rows at these ascending positions in the chunk.
    pub fn take(&self, rows: &[u32], codecs: &dyn BlockCodecs) -> Result<Vector> {
        if rows.last().is_some_and(|&last| last >= self.rows) || !rows.is_sorted() {
            let (count, total) = (rows.len(), self.rows);
            return Err(Error::InvalidInput(format!("{count} rows that do not ascend below {total}")));
        }
        let vector = self.open(codecs)?.take(rows).map_err(|e| self.located(e))?;
        self.checked(vector, rows.len())
    }

    /// The first value of a chunk of integers, if each integer is one more than the one before
    /// (`Chunk::consecutive`). Chunks of other types are not opened, because that may mean to decompress
    /// them.
    pub fn consecutive(&self, codecs: &dyn BlockCodecs) -> Result<Option<i64>> {
        match self.logical.physical() {
            PhysicalType::Int16 | PhysicalType::Int32 | PhysicalType::Int64 => {
                Ok(self.open(codecs)?.consecutive())
            }
            _ => Ok(None),
        }
    }

    /// Keeps the selected rows that satisfy a predicate on this column, on encoded data. False: it is not
    /// possible, and nothing was changed.
    pub fn filter(
        &self,
        predicate: &Predicate,
        selection: &mut Selection,
        codecs: &dyn BlockCodecs,
    ) -> Result<bool> {
        self.open(codecs)?.filter(predicate, selection).map_err(|e| self.located(e))
    }

    fn checked(&self, vector: Vector, rows: usize) -> Result<Vector> {
        match vector.len() == rows {
            true => Ok(vector),
            false => {
                Err(self.located(Error::corrupt(format!("{} values where {rows} belong", vector.len()))))
            }
        }
    }

    /// Adds the place to an error of the opened chunk.
    pub fn located(&self, error: Error) -> Error {
        error.at(self.column, Some(self.chunk))
    }
}

impl std::fmt::Debug for OwnedChunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedChunk")
            .field("logical", &self.logical)
            .field("rows", &self.rows)
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

fn position(column: usize) -> Option<u32> {
    u32::try_from(column).ok()
}

fn read_range(range: &Range<u64>, bytes: &dyn StripeBytes) -> Result<Vec<u8>> {
    let length = usize::try_from(range.end - range.start)
        .map_err(|_| Error::corrupt(format!("bytes {range:?} do not fit memory")))?;
    let mut out = Vec::new();
    out.try_reserve_exact(length).map_err(|_| Error::OutOfMemory { bytes: length })?;
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
    verify(section, &raw)?;
    Ok(raw)
}

fn verify(section: &Section, raw: &[u8]) -> Result<()> {
    match checksum(raw) == section.checksum {
        true => Ok(()),
        false => Err(Error::corrupt(format!("bytes {:?} do not match their checksum", section.range))),
    }
}
