//! Writes rows as Parquet.

use std::fs::File;
use std::io::BufWriter;

use files::column::Column;
use files::parquet::{Codec, ParquetWriter};
use files::{Error, Field, FieldKind, Result, Unit};
use vector::calendar::SINCE_1970;
use vector::{LogicalType, Values, Vector, concat};

use crate::source::Source;

/// Rows of a row group.
const GROUP_ROWS: usize = 122_880;
const EPOCH_MICROS: i64 = SINCE_1970 * 86_400_000_000;

/// Writes all rows of a source.
pub fn run(mut source: Source, file: File, codec: Codec) -> Result<()> {
    let fields = source.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    let mut writer = ParquetWriter::new(BufWriter::new(file), &fields, codec)?;
    let (mut waiting, mut count): (Vec<Vec<Vector>>, usize) = (vec![Vec::new(); fields.len()], 0);
    loop {
        let rows = source.next()?;
        let is_end = rows.is_none();
        if let Some(rows) = rows {
            count += rows.first().map_or(0, Vector::len);
            for ((parts, column), field) in waiting.iter_mut().zip(rows).zip(&fields) {
                parts.push(of_kind(column, field)?);
            }
        }
        if count >= GROUP_ROWS || (is_end && count > 0) {
            let parts = waiting.iter_mut().map(std::mem::take);
            let joined = parts.map(|parts| {
                let logical = parts.first().map_or(LogicalType::Bytes, |column| column.logical);
                concat(logical, parts).map_err(|error| Error::Unsupported(error.to_string()))
            });
            writer.write(&joined.collect::<Result<Vec<_>>>()?)?;
            count = 0;
        }
        if is_end {
            writer.finish()?.into_inner().map_err(|error| Error::Io(error.into_error()))?;
            return Ok(());
        }
    }
}

/// What a column is in Parquet.
fn field(column: &Column) -> Result<Field> {
    let Column { name, declared, logical, .. } = column;
    let kind = match logical {
        LogicalType::Bool => FieldKind::Bool,
        LogicalType::Int64 if declared == "time without time zone" => FieldKind::Time(Unit::Micros),
        LogicalType::Int64 if declared != "bigint" => return Err(refused(column)),
        LogicalType::Int16 | LogicalType::Int32 | LogicalType::Int64 => FieldKind::Integer,
        LogicalType::UInt64 => FieldKind::Unsigned,
        LogicalType::Float32 | LogicalType::Float64 => FieldKind::Real,
        LogicalType::Date => FieldKind::Date,
        LogicalType::Timestamp => {
            FieldKind::Timestamp { unit: Unit::Micros, is_instant: declared.ends_with("with time zone") }
        }
        LogicalType::Uuid => FieldKind::Uuid,
        LogicalType::Numeric => {
            let digits = declared.strip_prefix("numeric(").and_then(|digits| digits.strip_suffix(')'));
            let (precision, scale) =
                digits.and_then(|digits| digits.split_once(',')).ok_or_else(|| refused(column))?;
            match (precision.parse(), scale.parse()) {
                (Ok(precision), Ok(scale)) if precision <= 38 && scale <= precision => {
                    FieldKind::Decimal { precision, scale }
                }
                _ => return Err(refused(column)),
            }
        }
        LogicalType::Text => FieldKind::Text,
        LogicalType::Bytes if declared == "bytea" => FieldKind::Bytes,
        LogicalType::Bytes | LogicalType::FixedBytes(_) => return Err(refused(column)),
    };
    Ok(Field { name: name.clone(), kind })
}

fn refused(column: &Column) -> Error {
    let Column { name, declared, .. } = column;
    Error::Unsupported(format!(
        "column {name} is {declared}, which has no counterpart in Parquet that is written"
    ))
}

/// The same values in the vector that a Parquet file's column is written from.
fn of_kind(column: Vector, field: &Field) -> Result<Vector> {
    let Vector { logical, validity, values } = column;
    let is_valid = |row: usize| validity.as_ref().is_none_or(|validity| validity.get(row));
    let infinite =
        || Error::Unsupported(format!("column {} has an infinity, which Parquet has not", field.name));
    let since_1970 = |values: Vec<i64>, epoch: i64, extremes: [i64; 2]| {
        let each = |(row, value): (usize, i64)| match is_valid(row) {
            true if extremes.contains(&value) => Err(infinite()),
            true => value.checked_add(epoch).ok_or_else(infinite),
            // Any will do where there is no value.
            false => Ok(0),
        };
        values.into_iter().enumerate().map(each).collect::<Result<Vec<i64>>>()
    };
    let (logical, values) = match (field.kind, values) {
        (FieldKind::Date, Values::Int32(days)) => {
            let days = days.into_iter().map(i64::from).collect();
            let days = since_1970(days, SINCE_1970, [i32::MIN.into(), i32::MAX.into()])?;
            (LogicalType::Int64, Values::Int64(days))
        }
        (FieldKind::Timestamp { .. }, Values::Int64(micros)) => {
            (LogicalType::Int64, Values::Int64(since_1970(micros, EPOCH_MICROS, [i64::MIN, i64::MAX])?))
        }
        (_, Values::Int16(values)) => {
            (LogicalType::Int64, Values::Int64(values.into_iter().map(i64::from).collect()))
        }
        (_, Values::Int32(values)) => {
            (LogicalType::Int64, Values::Int64(values.into_iter().map(i64::from).collect()))
        }
        (_, Values::Float32(values)) => {
            (LogicalType::Float64, Values::Float64(values.into_iter().map(f64::from).collect()))
        }
        (_, values) => (logical, values),
    };
    Ok(Vector { logical, validity, values })
}
