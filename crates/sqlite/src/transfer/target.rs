//! A file that is written, in either format, from rows that come one by one.
//!
//! A column of Parquet has one type, which has to be said before the first row. It is taken from the first
//! row group. Where a later one has reals after integers, or the first values of a column, what was written
//! is thrown away and the query runs again: `Wider` says so.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use files::csv::CsvWriter;
use files::parquet::ParquetWriter;
use files::{Field, FieldKind};
use vector::{LogicalType, Values, Vector};

use super::options::{Format, Transfer};
use crate::api::{Error, Result, Value, random};
use crate::values::{Affinity, Column, ColumnBuilder, Kind, as_real};

/// Rows that take so much memory become a row group before there are as many as there may be.
const GROUP_BYTES: usize = 128 << 20;
/// Integers up to this size are reals without loss.
const EXACT: u64 = 1 << 53;

/// A file beside its place, which takes it when it is whole.
pub struct Place {
    path: PathBuf,
    /// None where the place is no ordinary file.
    beside: Option<PathBuf>,
}

impl Place {
    /// The place of a file.
    pub fn new(path: &Path) -> Self {
        // A link stays, and what it names is replaced.
        let path = &path.canonicalize().unwrap_or_else(|_| path.into());
        let is_special = path.metadata().is_ok_and(|found| !found.is_file());
        let beside = || {
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".{:016x}", random()));
            path.with_file_name(name)
        };
        Self { path: path.into(), beside: (!is_special).then(beside) }
    }

    fn named(&self, error: &std::io::Error) -> Error {
        Error::coded(crate::api::raw::SQLITE_CANTOPEN, format!("{}: {error}", self.path.display()))
    }

    /// Opens it, empty.
    pub fn create(&self) -> Result<File> {
        File::create(self.beside.as_ref().unwrap_or(&self.path)).map_err(|error| self.named(&error))
    }

    /// The file is whole.
    pub fn keep(mut self, file: &File) -> Result<()> {
        let Some(beside) = self.beside.take() else { return Ok(()) };
        // Whoever may read the older file may read this one, and nobody else.
        let allowed = match self.path.metadata() {
            Ok(before) => file.set_permissions(before.permissions()),
            Err(_) => Ok(()),
        };
        let kept = allowed.and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&beside, &self.path));
        kept.map_err(|error| {
            let _ = std::fs::remove_file(&beside);
            self.named(&error)
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = std::fs::remove_file(beside);
        }
    }
}

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

/// A file that is being written.
pub enum Target {
    /// CSV.
    Csv(CsvWriter<BufWriter<File>>, String),
    /// Parquet.
    Parquet(Box<Groups>),
}

/// Row groups of a Parquet file.
pub struct Groups {
    names: Vec<String>,
    kinds: Kinds,
    options: (files::parquet::Codec, usize),
    file: Option<File>,
    writer: Option<ParquetWriter<BufWriter<File>>>,
    waiting: Vec<ColumnBuilder>,
    rows: usize,
}

impl Target {
    /// Begins to write columns of these names. `kinds`: what is known of them from before.
    pub fn new(file: File, names: &[String], options: &Transfer, kinds: Kinds) -> Result<Self> {
        match options.format {
            Format::Csv => {
                let out = BufWriter::with_capacity(1 << 18, file);
                let mut writer = CsvWriter::new(out, options.dialect, options.null.clone());
                if options.has_header {
                    names.iter().for_each(|name| writer.field(name.as_bytes()));
                    writer.end()?;
                }
                Ok(Self::Csv(writer, String::new()))
            }
            Format::Parquet => Ok(Self::Parquet(Box::new(Groups {
                names: names.to_vec(),
                kinds,
                options: (options.codec, options.group_rows),
                file: Some(file),
                writer: None,
                waiting: builders(names.len()),
                rows: 0,
            }))),
        }
    }

    /// Writes a row.
    pub fn row<'v>(&mut self, values: impl Iterator<Item = Value<'v>>) -> std::result::Result<(), Trouble> {
        match self {
            Self::Csv(writer, room) => {
                for value in values {
                    room.clear();
                    match value {
                        Value::Null => writer.null(),
                        Value::Text(text) => writer.field(text),
                        Value::Integer(integer) => {
                            let _ = write!(room, "{integer}");
                            writer.field(room.as_bytes());
                        }
                        // The shortest text that is this number.
                        Value::Real(real) => {
                            let _ = write!(room, "{real:?}");
                            writer.field(room.as_bytes());
                        }
                        Value::Blob(blob) => {
                            blob.iter().for_each(|byte| _ = write!(room, "{byte:02x}"));
                            writer.field(room.as_bytes());
                        }
                    }
                }
                Ok(writer.end()?)
            }
            Self::Parquet(groups) => {
                for (builder, value) in groups.waiting.iter_mut().zip(values) {
                    builder.push(value)?;
                }
                groups.rows += 1;
                let bytes = || groups.waiting.iter().map(ColumnBuilder::bytes).sum::<usize>();
                if groups.rows >= groups.options.1
                    || (groups.rows.is_multiple_of(16) && bytes() >= GROUP_BYTES)
                {
                    groups.write()?;
                }
                Ok(())
            }
        }
    }

    /// Ends the file, and gives it back.
    pub fn finish(self) -> std::result::Result<File, Trouble> {
        let inner = |out: BufWriter<File>| {
            out.into_inner().map_err(|error| files::Error::Io(error.into_error())).map_err(Error::from)
        };
        match self {
            Self::Csv(writer, _) => Ok(inner(writer.finish()?)?),
            Self::Parquet(mut groups) => {
                if groups.rows > 0 || groups.writer.is_none() {
                    groups.write()?;
                }
                match groups.writer {
                    Some(writer) => Ok(inner(writer.finish()?)?),
                    None => Err(Error::new("no file was begun").into()),
                }
            }
        }
    }
}

fn builders(count: usize) -> Vec<ColumnBuilder> {
    // Integers beside reals are told apart by nothing but their fraction, which suits a column of reals.
    (0..count).map(|_| ColumnBuilder::new(Affinity::Numeric)).collect()
}

impl Groups {
    fn write(&mut self) -> std::result::Result<(), Trouble> {
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
                kind: kind.unwrap_or(FieldKind::Integer),
            };
            let fields: Vec<Field> = self.names.iter().zip(&self.kinds).map(field).collect();
            let file = self.file.take().ok_or_else(|| Error::new("no file"))?;
            self.writer =
                Some(ParquetWriter::new(BufWriter::with_capacity(1 << 18, file), &fields, self.options.0)?);
        } else if wider != self.kinds {
            return Err(Trouble::Wider(wider));
        }
        let vectors: Vec<Vector> = columns
            .into_iter()
            .zip(&self.kinds)
            .map(|(column, kind)| of_kind(column, *kind))
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
        Kind::Integer => Integer,
        Kind::Real | Kind::Number => Real,
        Kind::Text if is_utf8(column)? => Text,
        Kind::Text => {
            return Err(Error::new(format!("column {name} has text that is not UTF-8: CAST it to a BLOB")));
        }
        Kind::Mixed if are_blobs(column)? => Bytes,
        Kind::Mixed => return Err(several(name)),
    };
    match (kind, own) {
        (None, own) => Ok(Some(own)),
        (Some(Integer | Real), Real) | (Some(Real), Integer) => Ok(Some(Real)),
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

/// The values as a vector of this kind.
fn of_kind(column: Column, kind: Option<FieldKind>) -> Result<Vector> {
    match (column.kind, kind) {
        (Kind::Integer, Some(FieldKind::Real)) => {
            let Values::Int64(integers) = &column.vector.values else { return Ok(column.vector) };
            let valid = |row: usize| column.vector.validity.as_ref().is_none_or(|validity| validity.get(row));
            let great =
                integers.iter().enumerate().find(|(row, value)| valid(*row) && value.unsigned_abs() > EXACT);
            if let Some((_, value)) = great {
                return Err(Error::new(format!(
                    "{value} stands beside reals, and no real is equal to it: use CAST"
                )));
            }
            let values = Values::Float64(integers.iter().map(|&value| as_real(value)).collect());
            Ok(Vector { logical: LogicalType::Float64, validity: column.vector.validity, values })
        }
        (Kind::Null, Some(FieldKind::Real)) => Ok(nulls(&column, LogicalType::Float64)),
        (Kind::Null, Some(FieldKind::Text | FieldKind::Bytes)) => Ok(nulls(&column, LogicalType::Bytes)),
        (Kind::Mixed, _) => column.blobs(),
        _ => Ok(column.vector),
    }
}

fn nulls(column: &Column, logical: LogicalType) -> Vector {
    let mut builder = vector::VectorBuilder::new(logical);
    (0..column.vector.len()).for_each(|_| builder.push_null());
    builder.finish(&|_, _, _| Box::default())
}
