//! Rows of a column file, a Parquet or a CSV file, in vectors of a column file's types.

use std::fs::File;
use std::path::Path;

use files::column::{Column, ColumnFile};
use files::csv::{self, CsvReader, Dialect, Record};
use files::parquet::ParquetReader;
use files::{Error, Field, FieldKind, Result, Unit};
use vector::calendar::SINCE_1970;
use vector::{LogicalType, Values, Vector, VectorBuilder};

use crate::Format;

/// Rows that are read at once from files of other systems.
const ROWS: usize = 10_000;
const MICROS_OF_DAY: i64 = 86_400_000_000;

/// A file that is read from its first row to its last.
pub struct Source {
    /// Its columns.
    pub columns: Vec<Column>,
    rows: Rows,
}

enum Rows {
    Column { file: Box<ColumnFile<File>>, chosen: Vec<usize>, stripe: usize, chunk: u32 },
    Parquet { reader: Box<ParquetReader>, kinds: Vec<FieldKind> },
    Csv { reader: Box<CsvReader<File>>, kinds: Vec<FieldKind>, chosen: Vec<usize>, width: usize },
}

impl Source {
    /// Opens a file; `chosen`: these columns only, in this order.
    pub fn open(path: &Path, chosen: Option<&[String]>) -> Result<Self> {
        match Format::of(path) {
            Format::Column => Self::of_column_file(path, chosen),
            Format::Parquet => Self::of_parquet(path, chosen),
            Format::Csv => Self::of_csv(path, chosen),
        }
    }

    fn of_column_file(path: &Path, names: Option<&[String]>) -> Result<Self> {
        let file = Box::new(ColumnFile::open(File::open(path)?)?);
        let chosen = choose(file.columns().iter().map(|column| column.name.as_str()), names)?;
        let columns = chosen.iter().filter_map(|&at| file.columns().get(at).cloned()).collect();
        Ok(Self { columns, rows: Rows::Column { file, chosen, stripe: 0, chunk: 0 } })
    }

    fn of_parquet(path: &Path, names: Option<&[String]>) -> Result<Self> {
        let mut reader = Box::new(ParquetReader::open(path)?);
        let fields = reader.fields();
        let chosen = choose(fields.iter().map(|field| field.name.as_str()), names)?;
        reader.choose(&chosen);
        let fields: Vec<Field> = chosen.iter().filter_map(|&at| fields.get(at).cloned()).collect();
        let kinds = fields.iter().map(|field| field.kind).collect();
        Ok(Self { columns: columns(&fields)?, rows: Rows::Parquet { reader, kinds } })
    }

    /// Reads a CSV file once to find out what its columns are.
    fn of_csv(path: &Path, names: Option<&[String]>) -> Result<Self> {
        let open = || File::open(path).map(|file| CsvReader::new(file, Dialect::default()));
        let (mut reader, mut record) = (open()?, Record::default());
        reader.next(&mut record)?;
        let head =
            record.iter().map(|(name, _)| utf8(name).map(str::to_owned)).collect::<Result<Vec<_>>>()?;
        let kinds = csv::kinds(&mut reader, head.len(), is_null)?;
        let chosen = choose(head.iter().map(String::as_str), names)?;
        let field = |&at: &usize| Some(Field { name: head.get(at)?.clone(), kind: *kinds.get(at)? });
        let fields: Vec<Field> = chosen.iter().filter_map(field).collect();
        let kinds = fields.iter().map(|field| field.kind).collect();
        let mut reader = Box::new(open()?);
        reader.next(&mut record)?;
        Ok(Self { columns: columns(&fields)?, rows: Rows::Csv { reader, kinds, chosen, width: head.len() } })
    }

    /// The next rows: a vector for each column. None at the end.
    pub fn next(&mut self) -> Result<Option<Vec<Vector>>> {
        match &mut self.rows {
            Rows::Column { file, chosen, stripe, chunk } => loop {
                let Some(open) = file.stripe(*stripe)? else { return Ok(None) };
                if *chunk < open.reader().chunk_count() {
                    let columns = chosen.iter().map(|&at| open.read(at, *chunk)).collect::<Result<_>>()?;
                    *chunk += 1;
                    return Ok(Some(columns));
                }
                (*stripe, *chunk) = (*stripe + 1, 0);
            },
            Rows::Parquet { reader, kinds } => {
                let Some(columns) = reader.next(ROWS)? else { return Ok(None) };
                columns
                    .into_iter()
                    .zip(kinds)
                    .map(|(column, kind)| stored(column, *kind))
                    .collect::<Result<_>>()
                    .map(Some)
            }
            Rows::Csv { reader, kinds, chosen, width } => {
                let mut builders: Vec<VectorBuilder> =
                    kinds.iter().map(|kind| VectorBuilder::new(of_csv(*kind))).collect();
                let (mut record, mut rows) = (Record::default(), 0);
                while rows < ROWS && reader.next_of(*width, &mut record)? {
                    for ((builder, kind), &at) in builders.iter_mut().zip(kinds.iter()).zip(chosen.iter()) {
                        let value = record.field(at).filter(|&(text, quoted)| !is_null(text, quoted));
                        push(builder, *kind, value.map(|(text, _)| text))?;
                    }
                    rows += 1;
                }
                let finished = builders.into_iter().map(|builder| builder.finish(&|_, _, _| Box::default()));
                Ok((rows > 0).then(|| finished.collect()))
            }
        }
    }
}

/// The positions of columns of these names; all of them where no name is given.
fn choose<'a>(all: impl Iterator<Item = &'a str>, names: Option<&[String]>) -> Result<Vec<usize>> {
    let all: Vec<&str> = all.collect();
    let Some(names) = names else { return Ok((0..all.len()).collect()) };
    let find = |name: &String| {
        let found = all.iter().position(|column| column == name);
        found.ok_or_else(|| Error::Unsupported(format!("there is no column {name}")))
    };
    names.iter().map(find).collect()
}

/// An empty field without quotes is NULL.
const fn is_null(text: &[u8], quoted: bool) -> bool {
    text.is_empty() && !quoted
}

/// A column file's text is UTF-8, so that every reader can show it.
fn utf8(text: &[u8]) -> Result<&str> {
    std::str::from_utf8(text).map_err(|_| Error::Malformed("it has text that is not UTF-8".into()))
}

const fn of_csv(kind: FieldKind) -> LogicalType {
    match kind {
        FieldKind::Integer => LogicalType::Int64,
        FieldKind::Real => LogicalType::Float64,
        _ => LogicalType::Text,
    }
}

/// Adds a value of a column whose values were all looked at.
fn push(builder: &mut VectorBuilder, kind: FieldKind, value: Option<&[u8]>) -> Result<()> {
    let Some(text) = value.map(utf8).transpose()? else {
        builder.push_null();
        return Ok(());
    };
    let fits = match kind {
        FieldKind::Integer => text.parse().is_ok_and(|value| builder.push_i64(value)),
        FieldKind::Real => text.parse().is_ok_and(|value| builder.push_f64(value)),
        _ => builder.push_bytes(text.as_bytes()),
    };
    fits.then_some(()).ok_or_else(|| Error::Malformed(format!("the file has changed meanwhile: {text}")))
}

/// Columns of a column file for fields of another.
fn columns(fields: &[Field]) -> Result<Vec<Column>> {
    if fields.is_empty() {
        return Err(Error::Malformed("it has no columns".into()));
    }
    let column = |(number, field): (u32, &Field)| {
        let (declared, logical) = match field.kind {
            FieldKind::Bool => ("boolean".into(), LogicalType::Bool),
            FieldKind::Integer => ("bigint".into(), LogicalType::Int64),
            FieldKind::Unsigned => ("engine.uint8".into(), LogicalType::UInt64),
            FieldKind::Real => ("double precision".into(), LogicalType::Float64),
            FieldKind::Date => ("date".into(), LogicalType::Date),
            FieldKind::Time(_) => ("time without time zone".into(), LogicalType::Int64),
            FieldKind::Timestamp { is_instant, .. } => {
                let zone = if is_instant { "with" } else { "without" };
                (format!("timestamp {zone} time zone"), LogicalType::Timestamp)
            }
            FieldKind::Decimal { precision, scale } => {
                (format!("numeric({precision},{scale})"), LogicalType::Numeric)
            }
            FieldKind::Uuid => ("uuid".into(), LogicalType::Uuid),
            FieldKind::Text => ("text".into(), LogicalType::Text),
            FieldKind::Bytes => ("bytea".into(), LogicalType::Bytes),
            FieldKind::Other(what) => {
                return Err(Error::Unsupported(format!(
                    "column {} is {what}, which is not read",
                    field.name
                )));
            }
        };
        Ok(Column { number, name: field.name.clone(), declared, logical })
    };
    (1..).zip(fields).map(column).collect()
}

/// Values of a Parquet file as a column file has them.
fn stored(column: Vector, kind: FieldKind) -> Result<Vector> {
    let Vector { logical, validity, values } = column;
    let is_valid = |row: usize| validity.as_ref().is_none_or(|validity| validity.get(row));
    fn times<T: Default>(
        times: Vec<i64>,
        is_valid: impl Fn(usize) -> bool,
        make: impl Fn(i64) -> Option<T>,
    ) -> Result<Vec<T>> {
        let each = |(row, time): (usize, i64)| match make(time) {
            Some(time) => Ok(time),
            // Of rows without a value any will do.
            None if !is_valid(row) => Ok(T::default()),
            None => Err(Error::Unsupported(format!("a time of {time} is past those that are held"))),
        };
        times.into_iter().enumerate().map(each).collect()
    }
    let (logical, values) = match (kind, values) {
        (FieldKind::Date, Values::Int64(days)) => {
            // The extremes stand for no end of time.
            let held = |days: i64| {
                let days = i32::try_from(days.checked_sub(SINCE_1970)?).ok()?;
                (days != i32::MIN && days != i32::MAX).then_some(days)
            };
            (LogicalType::Date, Values::Int32(times(days, is_valid, held)?))
        }
        (FieldKind::Time(unit), Values::Int64(all)) => {
            let of_day = |time| micros(time, unit).filter(|time| (0..=MICROS_OF_DAY).contains(time));
            (LogicalType::Int64, Values::Int64(times(all, is_valid, of_day)?))
        }
        (FieldKind::Timestamp { unit, .. }, Values::Int64(all)) => {
            let held = |time| {
                let micros = micros(time, unit)?.checked_sub(SINCE_1970 * MICROS_OF_DAY)?;
                (micros != i64::MIN && micros != i64::MAX).then_some(micros)
            };
            (LogicalType::Timestamp, Values::Int64(times(all, is_valid, held)?))
        }
        (_, values) => (logical, values),
    };
    Ok(Vector { logical, validity, values })
}

/// Microseconds. Parts of one are cut off, towards the past.
fn micros(time: i64, unit: Unit) -> Option<i64> {
    match unit {
        Unit::Millis => time.checked_mul(1000),
        Unit::Micros => Some(time),
        Unit::Nanos => Some(time.div_euclid(1000)),
    }
}
