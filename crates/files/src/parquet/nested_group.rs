//! Lists, maps and structs of a row group, some rows at a time.
//!
//! Called by `group`. The bytes of their columns are read at once. A reader goes through them row by row, so
//! chunks are decoded quickly in their order; any other order begins anew.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use encodings::BlockCodecs;
use parquet::file::metadata::ColumnChunkMetaData;
use stripe::{ColumnChunk, StripeBytes};
use vector::{Result, Vector};

use super::file::NestedColumn;
use super::group::Location;
use super::nested_text::Form;
use super::read::guarded;
use super::records::Records;
use super::source::{self, Source};
use crate::{Error, FieldKind, json};

/// A list, map or struct that is in the file, and what was read of it.
pub struct NestedValues {
    column: NestedColumn,
    /// Its columns in the row group.
    metadata: Vec<ColumnChunkMetaData>,
    stored: OnceLock<Arc<Stored>>,
}

impl NestedValues {
    /// `chunk`: what the row group says of a column of the file.
    pub fn new(
        column: &NestedColumn,
        chunk: impl Fn(usize) -> Option<ColumnChunkMetaData>,
    ) -> crate::Result<Self> {
        let metadata: Option<_> = column.nested.root.leaves.clone().map(chunk).collect();
        let metadata = metadata.ok_or_else(|| Error::Malformed("a row group lacks a column".into()))?;
        Ok(Self { column: column.clone(), metadata, stored: OnceLock::new() })
    }

    /// Some rows. Their bytes are read, if they were not.
    pub fn read_chunk(
        &self,
        location: Location,
        rows_of_group: u32,
        rows: Range<u32>,
        bytes: &dyn StripeBytes,
    ) -> Result<Box<dyn ColumnChunk>> {
        if let Some(stored) = self.stored.get() {
            return Ok(Box::new(NestedChunk { stored: Arc::clone(stored), rows }));
        }
        let mut columns = Vec::new();
        for metadata in &self.metadata {
            let range = guarded(|| Ok(metadata.byte_range()));
            let (start, length) = range.map_err(|problem| location.tell(&problem))?;
            let source = Arc::new(Source::new(start..start.saturating_add(length), None));
            source.read(&rows, bytes)?;
            columns.push((metadata.clone(), source));
        }
        let column = self.column.clone();
        let made = Stored { location, column, columns, rows: rows_of_group, progress: Mutex::new(None) };
        let stored = Arc::clone(self.stored.get_or_init(|| Arc::new(made)));
        Ok(Box::new(NestedChunk { stored, rows }))
    }
}

/// The bytes of all columns, and how far they are put together.
struct Stored {
    location: Location,
    column: NestedColumn,
    columns: Vec<(ColumnChunkMetaData, Arc<Source>)>,
    /// Rows of the row group.
    rows: u32,
    /// A reader, and the row that it is at.
    progress: Mutex<Option<(Records, u32)>>,
}

impl Stored {
    /// The values of some rows.
    fn decode(&self, rows: &Range<u32>) -> Result<Vector> {
        // After a panic of the reader there is none.
        let mut kept = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let decoded = guarded(|| {
            let (mut records, row) = match kept.take() {
                Some((records, row)) if row <= rows.start => (records, row),
                _ => (self.records()?, 0),
            };
            records.skip((rows.start - row) as usize)?;
            let values = match &self.column.array {
                Some(array) => records.read_arrays(rows.len(), array)?,
                None => records.read(rows.len())?,
            };
            *kept = Some((records, rows.end));
            match self.column.kind {
                FieldKind::Jsonb => json::to_jsonb(json::byte_strings(&values), &self.column.name),
                _ => Ok(Vector { logical: self.column.logical, ..values }),
            }
        });
        decoded.map_err(|problem| self.location.tell(&problem))
    }

    /// A reader that is before the first row.
    fn records(&self) -> crate::Result<Records> {
        let mut columns = self.columns.iter();
        Records::open(&self.column.nested, Form::Json, |_| {
            let lacks = || Error::Malformed("a row group lacks a column".into());
            let (metadata, source) = columns.next().ok_or_else(lacks)?;
            source::pages(source, metadata, self.rows)
        })
    }
}

/// Some rows.
struct NestedChunk {
    stored: Arc<Stored>,
    rows: Range<u32>,
}

impl ColumnChunk for NestedChunk {
    fn rows(&self) -> u32 {
        self.rows.end.saturating_sub(self.rows.start)
    }

    /// Their share of the columns' bytes.
    fn stored_bytes(&self) -> u64 {
        let all = self.stored.columns.iter().map(|(_, source)| source.stored_bytes());
        let all = all.fold(0, u64::saturating_add);
        let before = |row: u32| u128::from(all) * u128::from(row) / u128::from(self.stored.rows.max(1));
        u64::try_from(before(self.rows.end).saturating_sub(before(self.rows.start))).unwrap_or(u64::MAX)
    }

    fn decode(&self, _codecs: &dyn BlockCodecs) -> Result<Vector> {
        self.stored.decode(&self.rows)
    }

    fn take(&self, rows: &[u32], _codecs: &dyn BlockCodecs) -> Result<Vector> {
        Ok(self.stored.decode(&self.rows)?.take(rows))
    }
}
