//! Values of lists, maps and structs, row by row: the columns of the file are read side by side, and put
//! together by their levels (`nested`).
//!
//! Invariant: memory goes by what is read, not by what a file says of itself. Rows that are put together
//! have `MOST_ENTRIES` of all columns at most, and `MOST_BYTES` of values and of text. A page that goes on is
//! counted before the next one is decoded; a single page may have `MOST_OF_PAGE`.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parquet::column::page::{Page, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use vector::{LogicalType, Vector, VectorBuilder};

use super::nested::Nested;
use super::nested_array::{self, Array};
use super::nested_text::{Form, Text};
use super::read::{self, Levels};
use super::source::Watched;
use super::to_column;
use crate::{Error, Result};

/// Rows that are put together at once.
const ROWS_AT_ONCE: usize = 256;
/// Entries of all columns that these may have.
const MOST_ENTRIES: usize = 1 << 23;
/// Entries of a page, of which any number may be another row's. DuckDB writes pages of 25 million.
const MOST_OF_PAGE: usize = 1 << 26;
/// Bytes of the values of these rows, and of the text of all rows that are asked for.
const MOST_BYTES: usize = 256 << 20;

/// Reads a list, map or struct of a row group from its first row on.
pub struct Records {
    nested: Nested,
    form: Form,
    readers: Vec<ColumnReader>,
    count: Arc<Count>,
}

/// What pages have brought for the rows that are read now.
#[derive(Default)]
struct Count {
    /// Which rows these are: how many times some were read before.
    turn: AtomicUsize,
    /// Entries of pages that began and ended within them.
    entries: AtomicUsize,
    /// There were too many.
    is_past: AtomicBool,
}

impl Count {
    /// Counts a page of a column that comes after another one, which has ended. `last` has the turn in which
    /// that began, and its entries.
    ///
    /// # Errors
    /// There are too many.
    fn add(&self, last: &mut Option<(usize, usize)>, page: &Page) -> ParquetResult<()> {
        let (turn, entries) = (self.turn.load(Ordering::Relaxed), page.num_values() as usize);
        let ended = match last.replace((turn, entries)) {
            Some((began, entries)) if began == turn => entries,
            // Of a page that began before, other rows had a part.
            _ => 0,
        };
        let all = self.entries.fetch_add(ended, Ordering::Relaxed).saturating_add(ended);
        if entries > MOST_OF_PAGE || all > MOST_ENTRIES {
            self.is_past.store(true, Ordering::Relaxed);
            return Err(ParquetError::General(too_much().to_string()));
        }
        Ok(())
    }
}

/// The entries of a column, and how far they are put together.
pub struct Entries {
    levels: Levels,
    pub values: Vector,
    at: usize,
    value: usize,
}

impl Records {
    /// `pages` opens the pages of the columns, one after the other; it gets the number of each in the file.
    ///
    /// # Errors
    /// Those of `pages`.
    pub fn open(
        nested: &Nested,
        form: Form,
        mut pages: impl FnMut(usize) -> Result<Box<dyn PageReader>>,
    ) -> Result<Self> {
        let count = Arc::new(Count::default());
        let mut readers = Vec::new();
        for (at, leaf) in nested.root.leaves.clone().zip(nested.leaves()) {
            let (count, mut last) = (Arc::clone(&count), None);
            let next = move |pages: &mut (dyn PageReader + 'static)| {
                let page = pages.get_next_page()?;
                match &page {
                    Some(data) if data.is_data_page() => count.add(&mut last, data).map(|()| page),
                    _ => Ok(page),
                }
            };
            let watched = Watched { pages: pages(at)?, next };
            readers.push(get_column_reader(leaf.description.clone(), Box::new(watched)));
        }
        Ok(Self { nested: nested.clone(), form, readers, count })
    }

    /// Passes over the next rows.
    ///
    /// # Errors
    /// As `read`.
    pub fn skip(&mut self, mut rows: usize) -> Result<()> {
        while rows > 0 {
            let now = rows.min(ROWS_AT_ONCE);
            rows -= now;
            self.counted(|readers, nested| {
                let mut all = readers.iter_mut().zip(nested.leaves());
                all.try_for_each(|(reader, leaf)| read::skip(reader, &leaf.field, now))
            })?;
        }
        Ok(())
    }

    /// The next rows, as text in a vector of `Bytes`.
    ///
    /// # Errors
    /// `Malformed` where columns contradict each other, `Unsupported` for values that are not read, and for
    /// too much.
    pub fn read(&mut self, rows: usize) -> Result<Vector> {
        let form = self.form;
        self.put_together(rows, |nested, columns, rows, most, out| {
            let mut text = Text::new(nested, columns, form);
            let mut bytes = 0;
            for _ in 0..rows {
                let Some(value) = text.row(most - bytes)? else {
                    out.push_null();
                    continue;
                };
                bytes += value.len();
                if !out.push_bytes(value.as_bytes()) {
                    return Err(too_much());
                }
            }
            text.finish()?;
            Ok(bytes)
        })
    }

    /// The next rows, as arrays of the server.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_arrays(&mut self, rows: usize, array: &Array) -> Result<Vector> {
        self.put_together(rows, |nested, columns, rows, most, out| {
            let [entries] = <[Entries; 1]>::try_from(columns).map_err(|_| contradiction())?;
            nested_array::append(nested, array, entries, rows, most, out)
        })
    }

    /// The next rows. `append` gets the entries of some of them, the bytes that their values may have, and
    /// where these go. It returns how many they have.
    fn put_together(
        &mut self,
        rows: usize,
        append: impl Fn(&Nested, Vec<Entries>, usize, usize, &mut VectorBuilder) -> Result<usize>,
    ) -> Result<Vector> {
        let mut out = VectorBuilder::new(LogicalType::Bytes);
        let (mut left, mut most) = (rows, MOST_BYTES);
        while left > 0 {
            let now = left.min(ROWS_AT_ONCE);
            left -= now;
            let columns = self.counted(|readers, nested| entries(readers, nested, now))?;
            most -= append(&self.nested, columns, now, most, &mut out)?.min(most);
        }
        Ok(out.finish(&|_, _, _| Box::default()))
    }

    /// Has some rows be read, whose pages are counted.
    fn counted<T>(&mut self, read: impl FnOnce(&mut [ColumnReader], &Nested) -> Result<T>) -> Result<T> {
        self.count.turn.fetch_add(1, Ordering::Relaxed);
        self.count.entries.store(0, Ordering::Relaxed);
        let read = read(&mut self.readers, &self.nested);
        if self.count.is_past.load(Ordering::Relaxed) { Err(too_much()) } else { read }
    }
}

/// The entries of the next rows.
fn entries(readers: &mut [ColumnReader], nested: &Nested, rows: usize) -> Result<Vec<Entries>> {
    let (mut found, mut all, mut bytes) = (Vec::new(), 0, MOST_BYTES);
    for (reader, leaf) in readers.iter_mut().zip(nested.leaves()) {
        let levels = RefCell::new(Levels { bytes, ..Levels::default() });
        let values = read::entries(reader, &leaf.description, &leaf.field, rows, &levels)?;
        let (values, levels) = (to_column(values, leaf.field.kind)?, levels.into_inner());
        all += levels.definition.len();
        bytes = levels.bytes;
        if all > MOST_ENTRIES {
            return Err(too_much());
        }
        found.push(Entries { levels, values, at: 0, value: 0 });
    }
    Ok(found)
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
