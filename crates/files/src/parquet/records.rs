//! Values of lists, maps and structs, row by row: the columns of the file are read side by side, and put
//! together by their levels (`nested`).
//!
//! Invariant: what a file claims costs no more memory than `MOST_ENTRIES` of all columns and `MOST_BYTES` of
//! text; past that, reading is an error.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use vector::{LogicalType, Vector, VectorBuilder};

use super::nested::Nested;
use super::nested_text::{Form, Text};
use super::read::{self, Levels};
use super::to_column;
use crate::{Error, Result};

/// Rows that are put together at once.
const ROWS_AT_ONCE: usize = 256;
/// Entries of all columns that pages may bring for these.
const MOST_ENTRIES: u64 = 1 << 23;
/// Bytes of text of all rows that are asked for.
const MOST_BYTES: usize = 256 << 20;

/// Reads a list, map or struct of a row group from its first row on.
pub struct Records {
    nested: Arc<Nested>,
    form: Form,
    readers: Vec<ColumnReader>,
    /// Entries that pages may still bring.
    allowed: Arc<AtomicU64>,
}

/// The entries of a column, and how far they are put together.
pub struct Entries {
    levels: Levels,
    pub values: Vector,
    at: usize,
    value: usize,
}

impl Records {
    /// `pages` opens the pages of a column of the file, by its number.
    ///
    /// # Errors
    /// `Unsupported` where values of one of them are not read.
    pub fn open(
        nested: &Arc<Nested>,
        form: Form,
        mut pages: impl FnMut(usize) -> Result<Box<dyn PageReader>>,
    ) -> Result<Self> {
        let allowed = Arc::new(AtomicU64::new(0));
        let mut readers = Vec::new();
        for leaf in &nested.leaves {
            let counted = Counted { pages: pages(leaf.at)?, allowed: Arc::clone(&allowed) };
            readers.push(get_column_reader(leaf.description.clone(), Box::new(counted)));
        }
        Ok(Self { nested: Arc::clone(nested), form, readers, allowed })
    }

    /// Passes over the next rows.
    ///
    /// # Errors
    /// As `read`.
    pub fn skip(&mut self, mut rows: usize) -> Result<()> {
        while rows > 0 {
            let now = rows.min(ROWS_AT_ONCE);
            rows -= now;
            self.allowed.store(MOST_ENTRIES, Ordering::Relaxed);
            for (reader, leaf) in self.readers.iter_mut().zip(&self.nested.leaves) {
                read::skip(reader, &leaf.field, now)?;
            }
        }
        Ok(())
    }

    /// The next rows, as text in a vector of `Bytes`.
    ///
    /// # Errors
    /// `Malformed` where columns contradict each other, `Unsupported` for values that are not read, and for
    /// too much.
    pub fn read(&mut self, rows: usize) -> Result<Vector> {
        let mut out = VectorBuilder::new(LogicalType::Bytes);
        let (mut left, mut bytes) = (rows, 0);
        while left > 0 {
            let now = left.min(ROWS_AT_ONCE);
            left -= now;
            self.allowed.store(MOST_ENTRIES, Ordering::Relaxed);
            let columns = self.readers.iter_mut().zip(&self.nested.leaves).map(|(reader, leaf)| {
                let levels = RefCell::new(Levels::default());
                let values = read::entries(reader, &leaf.description, &leaf.field, now, &levels)?;
                let values = to_column(values, leaf.field.kind)?;
                Ok(Entries { levels: levels.into_inner(), values, at: 0, value: 0 })
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let mut text = Text::new(&self.nested, columns, self.form);
            for _ in 0..now {
                let Some(value) = text.row(MOST_BYTES - bytes)? else {
                    out.push_null();
                    continue;
                };
                bytes += value.len();
                if !out.push_bytes(value.as_bytes()) {
                    return Err(too_much());
                }
            }
            text.finish()?;
        }
        Ok(out.finish(&|_, _, _| Box::default()))
    }
}

/// What says that rows are too long.
pub fn too_much() -> Error {
    Error::Unsupported(format!(
        "lists of more than {MOST_ENTRIES} entries in {ROWS_AT_ONCE} rows, or of more than {} MB as text",
        MOST_BYTES >> 20
    ))
}

/// Columns that tell different lists.
pub fn contradiction() -> Error {
    Error::Malformed("columns of one list or struct contradict each other".into())
}

impl Entries {
    /// The definition level of the next entry.
    pub fn definition(&self) -> Result<i16> {
        self.levels.definition.get(self.at).copied().ok_or_else(contradiction)
    }

    /// The repetition level of the next entry. None: there is none.
    pub fn repetition(&self) -> Option<i16> {
        self.levels.repetition.get(self.at).copied()
    }

    /// Passes over an entry without a value.
    pub const fn pass(&mut self) {
        self.at += 1;
    }

    /// Passes over an entry with a value, of which it returns the position.
    pub fn take(&mut self) -> Result<usize> {
        let value = self.value;
        self.at += 1;
        self.value += 1;
        if value < self.values.len() { Ok(value) } else { Err(contradiction()) }
    }
}

/// Pages of which no more entries come than are allowed.
struct Counted {
    pages: Box<dyn PageReader>,
    allowed: Arc<AtomicU64>,
}

impl PageReader for Counted {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = page.as_ref().filter(|page| page.is_data_page()) {
            let entries = u64::from(page.num_values());
            let take = |allowed: u64| allowed.checked_sub(entries);
            if self.allowed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
                return Err(ParquetError::General(too_much().to_string()));
            }
        }
        Ok(page)
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

impl Iterator for Counted {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
