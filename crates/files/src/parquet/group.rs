//! A row group as an open stripe: its columns are decoded some rows at a time.
//!
//! Called by the scan (`stripe::OpenStripe`). The bytes of a column are read when chunks are asked for
//! (`source`). A reader goes through them from page to page. Pages without wanted rows are not unpacked. So
//! chunks are decoded quickly in their order; any other order begins anew, at the first page with such rows.
//!
//! The pages of the columns of a row group do not begin at the same rows. So chunks are of a size of ours.
//! Its statistics are those of the pages that it touches, where the file has a page index.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use encodings::BlockCodecs;
use parquet::basic::ColumnOrder;
use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::ColumnChunkMetaData;
use stripe::{ColumnChunk, ColumnStatistics, OpenStripe, StripeBytes};
use vector::{Error, LogicalType, Result, Scalar, Vector};

use super::bloom;
use super::file::{ParquetFile, Place, ReadColumn, TableColumns};
use super::nested_group::NestedValues;
use super::page_index::{self, PagePlaces};
use super::pages::Decoder;
use super::read::guarded;
use super::source::{self, Source};
use crate::same::SameChunk;

/// Rows of a chunk, at most.
const CHUNK_ROWS: u32 = 1 << 14;
/// Chunks of a row group, at most, where long rows want small ones.
const MOST_CHUNKS: u32 = 1 << 18;

/// A row group that is open.
pub struct RowGroup {
    /// What errors call it.
    name: Arc<str>,
    rows: u32,
    /// Rows of a chunk.
    chunk_rows: u32,
    columns: Vec<Option<GroupColumn>>,
}

/// A column of a table in a row group.
struct GroupColumn {
    logical: LogicalType,
    statistics: Option<ColumnStatistics>,
    values: Values,
}

enum Values {
    /// In the file.
    Read(Box<ReadValues>),
    /// In several columns of the file.
    Nested(Box<NestedValues>),
    /// One for all rows.
    Same(Arc<Vector>),
}

/// A column that is in the file, and what was read of it.
struct ReadValues {
    column: Arc<ReadColumn>,
    metadata: Arc<ColumnChunkMetaData>,
    order: ColumnOrder,
    stored: OnceLock<Arc<Stored>>,
    pages: OnceLock<Option<Arc<PagePlaces>>>,
    /// Statistics of each chunk, by the page index.
    chunks: OnceLock<Option<Vec<ColumnStatistics>>>,
    filter: OnceLock<Option<Sbbf>>,
}

impl ReadValues {
    fn has_filter(&self) -> bool {
        self.metadata.bloom_filter_offset().is_some()
    }
}

impl RowGroup {
    /// Opens a row group of a file, which errors call `name`.
    ///
    /// # Errors
    /// `Unsupported` where it has more rows than a stripe may have, `Malformed` where the file is.
    pub fn open(file: &ParquetFile, name: &str, group: usize, columns: &TableColumns) -> crate::Result<Self> {
        let rows = file.rows_of(group)?;
        let mut chunk_rows = CHUNK_ROWS;
        let mut of_group = |place: &Place| {
            let chunks = file.metadata.row_groups().get(group).map(|group| group.columns());
            let values = match place {
                Place::Same(value) => Values::Same(Arc::clone(value)),
                Place::Nested(column) => {
                    if let Some(group) = file.metadata.row_groups().get(group) {
                        let most = column.nested.rows_at_once(group);
                        let most = u32::try_from(most).unwrap_or(CHUNK_ROWS).max(rows.div_ceil(MOST_CHUNKS));
                        chunk_rows = chunk_rows.min(most);
                    }
                    let of_leaf = |at: usize| chunks.and_then(|chunks| chunks.get(at)).cloned();
                    Values::Nested(Box::new(NestedValues::new(column, of_leaf)?))
                }
                Place::Read(column) => {
                    let metadata = chunks.and_then(|chunks| chunks.get(column.at)).cloned();
                    let lacks = || crate::Error::Malformed(format!("row group {group} lacks a column"));
                    let metadata = Arc::new(metadata.ok_or_else(lacks)?);
                    Values::Read(Box::new(ReadValues {
                        column: Arc::clone(column),
                        metadata,
                        order: file.order(column),
                        stored: OnceLock::new(),
                        pages: OnceLock::new(),
                        chunks: OnceLock::new(),
                        filter: OnceLock::new(),
                    }))
                }
            };
            Ok(GroupColumn { logical: place.logical(), statistics: file.statistics(group, place), values })
        };
        let columns = columns.0.iter().map(|column| column.as_ref().map(&mut of_group).transpose());
        let columns = columns.collect::<crate::Result<_>>()?;
        let name = format!("file \"{name}\", row group {}", group + 1);
        Ok(Self { name: name.into(), rows, chunk_rows, columns })
    }

    fn column(&self, column: usize) -> Option<&GroupColumn> {
        self.columns.get(column)?.as_ref()
    }

    fn values(&self, column: usize) -> Option<&ReadValues> {
        match &self.column(column)?.values {
            Values::Read(values) => Some(values),
            Values::Nested(_) | Values::Same(_) => None,
        }
    }

    /// Where errors about a column are.
    fn location(&self, column: usize) -> Location {
        Location { group: Arc::clone(&self.name), column: u32::try_from(column).ok() }
    }

    /// Where the bytes of a column are in the file.
    fn range(&self, column: usize, metadata: &ColumnChunkMetaData) -> Result<Range<u64>> {
        let range = guarded(|| {
            let (start, length) = metadata.byte_range();
            Ok(start..start.saturating_add(length))
        });
        range.map_err(|problem| self.location(column).tell(&problem))
    }

    /// The pages of a column, where an index tells them.
    fn pages<'a>(
        &self,
        column: usize,
        read: &'a ReadValues,
        bytes: &dyn StripeBytes,
    ) -> Result<Option<&'a Arc<PagePlaces>>> {
        let pages = or_read(&read.pages, || {
            let range = self.range(column, &read.metadata)?;
            Ok(PagePlaces::read(&read.metadata, &range, self.rows, bytes)?.map(Arc::new))
        })?;
        Ok(pages.as_ref())
    }

    /// A column, of which nothing was read so far.
    fn stored(&self, column: usize, read: &ReadValues, bytes: &dyn StripeBytes) -> Result<Arc<Stored>> {
        // Of one chunk all is wanted.
        let pages = if self.chunk_count() > 1 { self.pages(column, read, bytes)? } else { None };
        Ok(Arc::new(Stored {
            location: self.location(column),
            column: Arc::clone(&read.column),
            metadata: Arc::clone(&read.metadata),
            source: Arc::new(Source::new(self.range(column, &read.metadata)?, pages.cloned())),
            rows: self.rows,
            progress: Mutex::new(None),
        }))
    }

    /// Statistics of a column's chunks, where its pages have some.
    fn of_chunks<'a>(
        &self,
        column: usize,
        read: &'a ReadValues,
        bytes: &dyn StripeBytes,
    ) -> Result<Option<&'a Vec<ColumnStatistics>>> {
        let group = self.column(column).and_then(|column| column.statistics.as_ref());
        let Some(group) = group.filter(|_| self.chunk_count() > 1) else { return Ok(None) };
        let chunks = or_read(&read.chunks, || {
            let Some(pages) = self.pages(column, read, bytes)? else { return Ok(None) };
            let chunks = (0..self.chunk_count()).map(|chunk| self.chunk_rows(chunk));
            page_index::statistics(&read.metadata, &read.column, read.order, group, pages, chunks, bytes)
        })?;
        Ok(chunks.as_ref())
    }
}

impl OpenStripe for RowGroup {
    fn logical(&self, column: usize) -> Option<LogicalType> {
        self.column(column).map(|column| column.logical)
    }

    fn chunk_count(&self) -> u32 {
        self.rows.div_ceil(self.chunk_rows)
    }

    fn chunk_rows(&self, chunk: u32) -> Range<u32> {
        let start = chunk.saturating_mul(self.chunk_rows).min(self.rows);
        start..start.saturating_add(self.chunk_rows).min(self.rows)
    }

    fn column_statistics(
        &self,
        column: usize,
        _bytes: &dyn StripeBytes,
    ) -> Result<Option<&ColumnStatistics>> {
        Ok(self.column(column).and_then(|column| column.statistics.as_ref()))
    }

    /// Those of the pages that have rows of the chunk, or of the whole row group.
    fn statistics(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
    ) -> Result<Option<&ColumnStatistics>> {
        if let Some(read) = self.values(column)
            && let Some(known) = self.of_chunks(column, read, bytes)?
        {
            return Ok(known.get(chunk as usize));
        }
        self.column_statistics(column, bytes)
    }

    fn counts_chunks(&self) -> bool {
        self.rows <= self.chunk_rows
    }

    fn has_stripe_filters(&self) -> bool {
        (0..self.columns.len()).any(|column| self.values(column).is_some_and(ReadValues::has_filter))
    }

    /// What is said of the row group is said of each chunk.
    fn may_have(
        &self,
        column: usize,
        _chunk: Option<u32>,
        values: &[Scalar],
        is_inside: &dyn Fn(&Scalar) -> bool,
        bytes: &dyn StripeBytes,
    ) -> Result<bool> {
        let Some(read) = self.values(column).filter(|read| read.has_filter()) else { return Ok(true) };
        let inside = values.iter().filter(|value| is_inside(value));
        let wanted: Option<Vec<_>> = inside.map(|value| bloom::stored(value, &read.column)).collect();
        let Some(wanted) = wanted else { return Ok(true) };
        let filter = or_read(&read.filter, || bloom::read(&read.metadata, bytes))?;
        Ok(filter.as_ref().is_none_or(|filter| wanted.iter().any(|value| filter.check(value.as_slice()))))
    }

    /// Of what the file has, no value is one. That of a folder may be NaN.
    fn has_side_values(&self, column: usize, _chunk: u32, _bytes: &dyn StripeBytes) -> Result<bool> {
        let same = self.column(column).filter(|column| matches!(column.values, Values::Same(_)));
        Ok(same.is_some_and(|column| column.statistics.as_ref().is_none_or(|known| known.side_rows > 0)))
    }

    fn read_chunk(
        &self,
        column: usize,
        chunk: u32,
        bytes: &dyn StripeBytes,
        _codecs: &'static dyn BlockCodecs,
    ) -> Result<Box<dyn ColumnChunk>> {
        let rows = self.chunk_rows(chunk);
        let has_not = || Error::InvalidInput("a column that the table has not".into());
        Ok(match &self.column(column).ok_or_else(has_not)?.values {
            Values::Same(value) => {
                Box::new(SameChunk { value: Arc::clone(value), rows: rows.end - rows.start })
            }
            Values::Nested(values) => values.read_chunk(self.location(column), self.rows, rows, bytes)?,
            Values::Read(values) => {
                let stored = or_read(&values.stored, || self.stored(column, values, bytes))?;
                stored.source.read(&rows, bytes)?;
                Box::new(GroupChunk { stored: Arc::clone(stored), rows })
            }
        })
    }

    fn is_in_turn(&self) -> bool {
        true
    }
}

/// What was read, or what is read now.
fn or_read<T>(cell: &OnceLock<T>, read: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let made = read()?;
    Ok(cell.get_or_init(|| made))
}

/// The bytes of a column in a row group, and how far they are decoded.
struct Stored {
    location: Location,
    column: Arc<ReadColumn>,
    metadata: Arc<ColumnChunkMetaData>,
    source: Arc<Source>,
    /// Rows of the row group.
    rows: u32,
    progress: Mutex<Option<Progress>>,
}

/// A decoder, and the row that it is at.
struct Progress {
    decoder: Decoder,
    row: u32,
}

impl Stored {
    /// The values of some rows.
    fn decode(&self, rows: &Range<u32>) -> Result<Vector> {
        // After a panic of the reader there is none.
        let mut kept = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let decoded = guarded(|| {
            let mut at = match kept.take() {
                Some(at) if at.row <= rows.start => at,
                before => Progress { decoder: self.decoder(before)?, row: 0 },
            };
            at.decoder.skip(&self.column, (rows.start - at.row) as usize)?;
            let values = at.decoder.read(&self.column, rows.end.saturating_sub(rows.start) as usize)?;
            at.row = rows.end;
            *kept = Some(at);
            Ok(values)
        });
        decoded.map_err(|problem| self.location.tell(&problem))
    }

    /// A decoder that is before the first row. It knows what the one before has learned.
    fn decoder(&self, before: Option<Progress>) -> crate::Result<Decoder> {
        let pages = source::pages(&self.source, &self.metadata, self.rows)?;
        let dictionary = before.and_then(|before| before.decoder.into_dictionary());
        Ok(Decoder::new(pages, &self.column, &self.metadata, dictionary))
    }
}

/// Where an error was met: row group, and column of the table, from zero on.
pub(super) struct Location {
    group: Arc<str>,
    column: Option<u32>,
}

impl Location {
    pub fn tell(&self, problem: &crate::Error) -> Error {
        let text = format!("{}: {problem}", self.group);
        match problem {
            crate::Error::Io(_) => Error::Host(text),
            crate::Error::Malformed(_) => Error::corrupt(text).at(self.column, None),
            crate::Error::Unsupported(_) => Error::InvalidInput(text),
        }
    }
}

/// Some rows of a column.
struct GroupChunk {
    stored: Arc<Stored>,
    rows: Range<u32>,
}

impl ColumnChunk for GroupChunk {
    fn rows(&self) -> u32 {
        self.rows.end.saturating_sub(self.rows.start)
    }

    /// Its share of the column's bytes.
    fn stored_bytes(&self) -> u64 {
        let all = self.stored.source.stored_bytes();
        let before = |row: u32| all * u64::from(row) / u64::from(self.stored.rows.max(1));
        before(self.rows.end) - before(self.rows.start)
    }

    fn decode(&self, _codecs: &dyn BlockCodecs) -> Result<Vector> {
        self.stored.decode(&self.rows)
    }

    fn take(&self, rows: &[u32], _codecs: &dyn BlockCodecs) -> Result<Vector> {
        Ok(self.stored.decode(&self.rows)?.take(rows))
    }
}
