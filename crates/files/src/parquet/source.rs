//! The stored bytes of a column in a row group, as far as they were read.
//!
//! Made by `group`, which has wanted rows read before they are decoded. Where the column has an offset index
//! (`page_index`), only the pages of these rows are read, and the dictionary. Who goes on in turn gets more
//! at a time. Other columns are read at once.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use stripe::StripeBytes;
use vector::Result;

use super::page_index::PagePlaces;

/// Bytes of a column.
pub struct Source {
    /// Where they lie in the file.
    range: Range<u64>,
    pages: Option<Arc<PagePlaces>>,
    read: Mutex<Parts>,
}

/// What was read.
#[derive(Default)]
struct Parts {
    /// Bytes, and where they begin in the file.
    parts: Vec<(u64, Bytes)>,
    /// Of each unit (`PagePlaces::bytes_of`), whether it is among them.
    has: Vec<bool>,
    /// The page behind those that were asked for last, and how many more than these were read.
    next: usize,
    ahead: usize,
}

impl Source {
    /// Nothing was read so far.
    pub fn new(range: Range<u64>, pages: Option<Arc<PagePlaces>>) -> Self {
        Self { range, pages, read: Mutex::default() }
    }

    /// How many bytes there are in the file.
    pub const fn stored_bytes(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Reads what these rows need, and was not read.
    ///
    /// # Errors
    /// Those of `bytes`.
    pub fn read(&self, rows: &Range<u32>, bytes: &dyn StripeBytes) -> Result<()> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pages) = &self.pages else {
            return match read.parts.is_empty() {
                true => read.add(self.range.clone(), bytes),
                false => Ok(()),
            };
        };
        let mut wanted = pages.of_rows(rows);
        read.has.resize(pages.places.len() + 1, false);
        let is_there = |read: &Parts, unit: usize| read.has.get(unit).copied().unwrap_or(true);
        // A page may have rows of two chunks.
        let goes_on = read.next > 0 && (wanted.start == read.next || wanted.start + 1 == read.next);
        read.next = wanted.end;
        if (wanted.start + 1..wanted.end + 1).all(|unit| is_there(&read, unit)) {
            return Ok(());
        }
        read.ahead = if goes_on { (read.ahead * 2).max(wanted.len()) } else { 0 };
        wanted.end = (wanted.end + read.ahead).min(pages.places.len());
        let missing = std::iter::once(0).chain(wanted.start + 1..wanted.end + 1);
        let missing: Vec<_> = missing.filter(|unit| !is_there(&read, *unit)).collect();
        // What lies side by side is read at once.
        for run in missing.chunk_by(|one, next| one + 1 == *next) {
            if let (Some(first), Some(last)) = (run.first(), run.last()) {
                read.add(pages.bytes_of(*first..*last + 1), bytes)?;
                read.has.get_mut(*first..*last + 1).unwrap_or_default().fill(true);
            }
        }
        Ok(())
    }

    fn found(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let slice = |(at, bytes): &(u64, Bytes)| {
            let from = usize::try_from(start.checked_sub(*at)?).ok()?;
            let end = from.checked_add(length).filter(|end| *end <= bytes.len())?;
            Some(bytes.slice(from..end))
        };
        let outside = || ParquetError::EOF(format!("{length} bytes at {start} are not the column's"));
        read.parts.iter().rev().find_map(slice).ok_or_else(outside)
    }
}

impl Parts {
    fn add(&mut self, range: Range<u64>, bytes: &dyn StripeBytes) -> Result<()> {
        if !range.is_empty() {
            let mut read = Vec::new();
            bytes.read(range.clone(), &mut read)?;
            self.parts.push((range.start, read.into()));
        }
        Ok(())
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.range.end
    }
}

impl ChunkReader for Source {
    type T = bytes::buf::Reader<Bytes>;

    /// Of a column that was read at once.
    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let left = self.range.end.checked_sub(start).and_then(|left| usize::try_from(left).ok());
        Ok(self.found(start, left.unwrap_or(usize::MAX))?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.found(start, length)
    }
}

/// A reader of a column's pages, from the first one on.
///
/// # Errors
/// `Malformed` where the footer contradicts itself.
pub fn pages(
    source: &Arc<Source>,
    metadata: &ColumnChunkMetaData,
    rows: u32,
) -> crate::Result<Box<dyn PageReader>> {
    let places = source.pages.as_ref().map(|pages| pages.places.clone());
    let is_indexed = places.is_some();
    let pages = Box::new(SerializedPageReader::new(Arc::clone(source), metadata, rows as usize, places)?);
    Ok(if is_indexed { Box::new(Watched { pages, next: next_indexed }) } else { pages })
}

/// The next of pages that are found by an index. It has to have the rows that the index says.
fn next_indexed(pages: &mut SerializedPageReader<Source>) -> ParquetResult<Option<Page>> {
    let expected = pages.peek_next_page()?.and_then(|page| page.num_rows);
    let page = pages.get_next_page()?;
    let found = page.as_ref().filter(|page| page.is_data_page()).map(|page| page.num_values() as usize);
    match (expected, found) {
        (Some(expected), Some(found)) if expected != found => {
            Err(ParquetError::General(format!("a page of {found} rows where its index has {expected}")))
        }
        _ => Ok(page),
    }
}

/// Pages that somebody looks at before they are decoded.
pub struct Watched<P: ?Sized, N> {
    pub pages: Box<P>,
    /// Reads the next one, and may refuse it.
    pub next: N,
}

impl<P, N> PageReader for Watched<P, N>
where
    P: PageReader + ?Sized,
    N: FnMut(&mut P) -> ParquetResult<Option<Page>> + Send,
{
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        (self.next)(&mut self.pages)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> ParquetResult<bool> {
        self.pages.at_record_boundary()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> ParquetResult<Option<Page>> {
        self.pages.take_deferred_dictionary()
    }
}

impl<P, N> Iterator for Watched<P, N>
where
    P: PageReader + ?Sized,
    N: FnMut(&mut P) -> ParquetResult<Option<Page>> + Send,
{
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
