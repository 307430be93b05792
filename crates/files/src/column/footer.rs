//! The columns of a file, and where its segments are.
//!
//! ```text
//! magic "CLFF", version u8, columns v,
//! per column: number v, name (length v, bytes), declared type (length v, bytes), type tag u8, fixed width u16;
//! segments v, per segment: offset v, length v, rows v;
//! from version 2 on: defaults v, per default: column number v, value (length v, bytes);
//! checksum u64
//! ```
//! v = varint. A column keeps its number for as long as the file lives; segments name columns by it. Dates
//! and timestamps count from 2000-01-01.

use std::collections::HashSet;
use std::ops::Range;

use encodings::cursor::Reader;
use vector::LogicalType;

use super::default::ColumnDefault;
use super::sealed::{self, range};
use crate::Result;

/// Most columns of a file.
pub const MAX_COLUMNS: usize = 65_535;
const MAGIC: [u8; 4] = *b"CLFF";
/// The version without defaults, which older builds read, too.
const PLAIN: u8 = 1;
const NEWEST: u8 = 2;

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its number, which it keeps.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The type in PostgreSQL's words, as `numeric(15,2)`.
    pub declared: String,
    /// What its values are to this crate.
    pub logical: LogicalType,
}

/// Where a segment is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentPlace {
    /// Its bytes in the file.
    pub bytes: Range<u64>,
    /// The rows of its stripes.
    pub rows: u64,
}

/// A footer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Footer {
    /// The columns, in their order.
    pub columns: Vec<Column>,
    /// The segments, oldest first.
    pub segments: Vec<SegmentPlace>,
    /// What rows have that are older than a column, by its number (`default`).
    pub defaults: Vec<ColumnDefault>,
}

impl Footer {
    /// The sealed bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut out = sealed::begin(MAGIC, if self.defaults.is_empty() { PLAIN } else { NEWEST });
        out.varint(self.columns.len() as u64);
        for column in &self.columns {
            out.varint(column.number.into());
            out.child(column.name.as_bytes());
            out.child(column.declared.as_bytes());
            out.u8(column.logical.tag());
            out.u16(if let LogicalType::FixedBytes(width) = column.logical { width } else { 0 });
        }
        out.varint(self.segments.len() as u64);
        for segment in &self.segments {
            out.varint(segment.bytes.start);
            out.varint(segment.bytes.end - segment.bytes.start);
            out.varint(segment.rows);
        }
        if !self.defaults.is_empty() {
            out.varint(self.defaults.len() as u64);
            for (number, value) in &self.defaults {
                out.varint((*number).into());
                out.child(value);
            }
        }
        sealed::end(out)
    }

    /// Parses sealed bytes. Segments lie before byte `end` of the file.
    ///
    /// # Errors
    /// `Malformed` for bytes that break the format, `Unsupported` for a newer version.
    pub fn read(sealed: &[u8], end: u64) -> Result<Self> {
        sealed::read(sealed, MAGIC, "footer", NEWEST, |version, cursor| Self::parse(version, cursor, end))
    }

    fn parse(version: u8, cursor: &mut Reader<'_>, end: u64) -> vector::Result<Self> {
        let count = cursor.count(MAX_COLUMNS, "columns")?;
        let (mut columns, mut numbers) = (Vec::new(), HashSet::new());
        for _ in 0..count {
            let number = u32::try_from(cursor.varint()?).unwrap_or(u32::MAX);
            let (name, declared) = (text(cursor)?, text(cursor)?);
            let (tag, width) = (cursor.u8()?, cursor.u16()?);
            let logical = LogicalType::from_tag(tag, width)
                .filter(|logical| *logical != LogicalType::FixedBytes(0))
                .ok_or_else(|| vector::Error::Unsupported(format!("type tag {tag}")))?;
            if !numbers.insert(number) {
                return Err(vector::Error::corrupt(format!("two columns of number {number}")));
            }
            columns.push(Column { number, name, declared, logical });
        }
        // A segment takes three bytes at least.
        let count = cursor.count(cursor.remaining() / 3, "segments")?;
        let mut segments = Vec::with_capacity(count);
        for _ in 0..count {
            let bytes = range(cursor, end)?;
            segments.push(SegmentPlace { bytes, rows: cursor.varint()? });
        }
        let mut defaults = Vec::new();
        if version > PLAIN {
            for _ in 0..cursor.count(MAX_COLUMNS, "defaults")? {
                let number = u32::try_from(cursor.varint()?).unwrap_or(u32::MAX);
                defaults.push((number, cursor.child()?.rest().to_vec()));
            }
        }
        Ok(Self { columns, segments, defaults })
    }
}

fn text(cursor: &mut Reader<'_>) -> vector::Result<String> {
    let bytes = cursor.child()?.rest();
    String::from_utf8(bytes.to_vec()).map_err(|_| vector::Error::corrupt("a name that is no UTF-8"))
}
