//! A Parquet file that is written from rows: row groups, and the types of its columns.
//!
//! A column of Parquet has one type, which has to be said before the first row. It is taken from the first
//! row group. A later one may have reals after integers, or the first values of a column. Then what was
//! written is thrown away and the query runs again: `Wider` says so.

use std::fs::File;
use std::io::BufWriter;

use files::parquet::{Codec, ParquetWriter};
use files::{Field, FieldKind};
use vector::{LogicalType, Values, Vector};

use super::options::Transfer;
use crate::api::{Error, Result, Value};
use crate::values::{Affinity, Column, ColumnBuilder, Kind, cast, is_exact};

/// A row group ends early once its rows take so much memory.
const MOST_BYTES: usize = 128 << 20;
/// Rows after which their memory is looked at.
const COUNTED_ROWS: usize = 16;

/// What Parquet files have for each column, as far as it is known.
pub type Kinds = Vec<Option<FieldKind>>;

/// Why rows were not written.
pub enum Trouble {
    /// It cannot be done.
    Error(Error),
    /// Columns have to have these kinds from the beginning.
    Wider(Kinds),
}

impl<E: Into<Error>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// What writing gives.
pub type Written<T> = std::result::Result<T, Trouble>;

/// Row groups of a Parquet file.
pub struct Groups {
    names: Vec<String>,
    kinds: Kinds,
    codec: Codec,
    /// Rows of a group.
    most: usize,
    /// Until the first group is written.
    file: Option<File>,
    writer: Option<ParquetWriter<BufWriter<File>>>,
    waiting: Vec<ColumnBuilder>,
    rows: usize,
}

fn builders(count: usize) -> Vec<ColumnBuilder> {
    // Integers beside reals are told apart by nothing but their fraction, which suits a column of reals.
    (0..count).map(|_| ColumnBuilder::new(Affinity::Numeric)).collect()
}

impl Groups {
    /// Begins a file of columns of these names. `kinds`: what is known of them from before.
    pub fn new(file: File, names: &[String], options: &Transfer, kinds: Kinds) -> Self {
        Self {
            names: names.to_vec(),
            kinds,
            codec: options.codec,
            most: options.group_rows,
            file: Some(file),
            writer: None,
            waiting: builders(names.len()),
            rows: 0,
        }
    }

    /// Adds a row.
    pub fn row<'v>(&mut self, values: impl Iterator<Item = Value<'v>>) -> Written<()> {
        for (builder, value) in self.waiting.iter_mut().zip(values) {
            builder.push(value)?;
        }
        self.rows += 1;
        let bytes = || self.waiting.iter().map(ColumnBuilder::bytes).sum::<usize>();
        match self.rows >= self.most || (self.rows.is_multiple_of(COUNTED_ROWS) && bytes() >= MOST_BYTES) {
            true => self.write(),
            false => Ok(()),
        }
    }

    /// Ends the file.
    pub fn finish(mut self) -> Written<BufWriter<File>> {
        if self.rows > 0 || self.writer.is_none() {
            self.write()?;
        }
        match self.writer {
            Some(writer) => Ok(writer.finish()?),
            None => Err(Error::new("no file was begun").into()),
        }
    }

    fn write(&mut self) -> Written<()> {
        let waiting = std::mem::replace(&mut self.waiting, builders(self.names.len()));
        self.rows = 0;
        let columns: Vec<Column> = waiting.into_iter().map(ColumnBuilder::finish).collect();
        let mut wider = self.kinds.clone();
        for ((kind, column), name) in wider.iter_mut().zip(&columns).zip(&self.names) {
            *kind = joined(*kind, column, name)?;
        }
        if self.writer.is_none() {
            self.kinds = wider;
            let field = |(name, kind): (&String, &Option<FieldKind>)| Field {
                name: name.clone(),
                kind: kind.unwrap_or(FieldKind::INTEGER),
            };
            let fields: Vec<Field> = self.names.iter().zip(&self.kinds).map(field).collect();
            let file = self.file.take().ok_or_else(|| Error::new("no file"))?;
            self.writer =
                Some(ParquetWriter::new(BufWriter::with_capacity(1 << 18, file), &fields, self.codec)?);
        } else if wider != self.kinds {
            return Err(Trouble::Wider(wider));
        }
        let vectors: Vec<Vector> = columns
            .into_iter()
            .zip(&self.kinds)
            .zip(&self.names)
            .map(|((column, kind), name)| of_kind(column, *kind, name))
            .collect::<Result<_>>()?;
        if let Some(writer) = &mut self.writer
            && vectors.first().is_some_and(|first| !first.is_empty())
        {
            writer.write(&vectors)?;
        }
        Ok(())
    }
}

/// What a column is that was of this kind and gets these values.
fn joined(kind: Option<FieldKind>, column: &Column, name: &str) -> Result<Option<FieldKind>> {
    use FieldKind::{Bytes, Integer, Real, Text};
    let own = match column.kind {
        Kind::Null => return Ok(kind),
        Kind::Integer => FieldKind::INTEGER,
        Kind::Real | Kind::Number => FieldKind::REAL,
        Kind::Text if is_utf8(column)? => Text,
        Kind::Text => {
            return Err(Error::new(format!("column {name} has text that is not UTF-8: CAST it to a BLOB")));
        }
        Kind::Mixed if are_blobs(column)? => Bytes,
        Kind::Mixed => return Err(several(name)),
    };
    match (kind, own) {
        (None, own) => Ok(Some(own)),
        (Some(Integer { .. } | Real { .. }), Real { .. }) | (Some(Real { .. }), Integer { .. }) => {
            Ok(Some(FieldKind::REAL))
        }
        (Some(kind), own) if kind == own => Ok(Some(kind)),
        _ => Err(several(name)),
    }
}

fn several(name: &str) -> Error {
    Error::new(format!(
        "column {name} has values of several classes, or reals beside integers past 2^53; a column of Parquet has \
         one type: use CAST"
    ))
}

fn is_utf8(column: &Column) -> Result<bool> {
    for row in 0..column.vector.len() {
        if let Value::Text(text) = column.get(row)?
            && std::str::from_utf8(text).is_err()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn are_blobs(column: &Column) -> Result<bool> {
    for row in 0..column.vector.len() {
        if !matches!(column.get(row)?, Value::Null | Value::Blob(_)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The values as a flat vector of this kind.
fn of_kind(column: Column, kind: Option<FieldKind>, name: &str) -> Result<Vector> {
    let logical = match kind {
        Some(FieldKind::Real { .. }) => LogicalType::Float64,
        Some(FieldKind::Text) => LogicalType::Text,
        Some(FieldKind::Bytes) if column.kind == Kind::Mixed => return column.blobs(),
        Some(FieldKind::Bytes) => LogicalType::Bytes,
        _ => LogicalType::Int64,
    };
    if let (Values::Int64(integers), LogicalType::Float64) = (&column.vector.values, logical) {
        let mut values = integers.iter().enumerate();
        if let Some((_, value)) =
            values.find(|&(row, &value)| column.vector.is_valid(row) && !is_exact(value))
        {
            return Err(Error::new(format!(
                "column {name}: {value} stands beside reals, and no real is equal to it: use CAST"
            )));
        }
    }
    Ok(if column.vector.logical == logical { column.vector } else { cast(&column.vector, logical) })
}
