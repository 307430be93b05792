//! Columns of PostgreSQL's types, and fields of Parquet files: which is which, and their values.
//!
//! Vectors of both kinds differ where times are counted from: 2000-01-01 there, 1970-01-01 here.

use std::ops::Range;

use vector::calendar::SINCE_1970;
use vector::{LogicalType, Values, Vector};

use crate::column::Column;
use crate::{Error, Field, FieldKind, Result, Unit};

const MICROS_OF_DAY: i64 = 86_400_000_000;
const EPOCH_MICROS: i64 = SINCE_1970 * MICROS_OF_DAY;
/// Dates of PostgreSQL, in days since 2000-01-01: from 4714-11-24 BC to the end of the year 5874897.
const DAYS: Range<i64> = -2_451_545..2_145_031_949;
/// Times of PostgreSQL, in microseconds: from the same day to the end of the year 294276.
const MICROS: Range<i64> = DAYS.start * MICROS_OF_DAY..106_751_983 * MICROS_OF_DAY;

/// Columns of PostgreSQL's types for fields of a file.
///
/// # Errors
/// `Unsupported` for a field whose values are not read, `Malformed` where there is none.
pub fn columns(fields: &[Field]) -> Result<Vec<Column>> {
    if fields.is_empty() {
        return Err(Error::Malformed("it has no columns".into()));
    }
    let column = |(number, field): (u32, &Field)| {
        let (declared, logical) = match field.kind {
            FieldKind::Bool => ("boolean".into(), LogicalType::Bool),
            FieldKind::Integer { bits: 16 } => ("smallint".into(), LogicalType::Int16),
            FieldKind::Integer { bits: 32 } => ("integer".into(), LogicalType::Int32),
            FieldKind::Integer { .. } => ("bigint".into(), LogicalType::Int64),
            FieldKind::Unsigned => ("engine.uint8".into(), LogicalType::UInt64),
            FieldKind::Real { bits: 32 } => ("real".into(), LogicalType::Float32),
            FieldKind::Real { .. } => ("double precision".into(), LogicalType::Float64),
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
            FieldKind::Json => ("json".into(), LogicalType::Bytes),
            FieldKind::Jsonb => ("jsonb".into(), LogicalType::Bytes),
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

/// Values as the column of their field has them (`columns`).
///
/// # Errors
/// `Unsupported` for dates, times and integers that the type of PostgreSQL does not hold.
pub fn to_column(column: Vector, kind: FieldKind) -> Result<Vector> {
    let Vector { logical, validity, values } = column;
    let is_valid = |row: usize| validity.as_ref().is_none_or(|validity| validity.get(row));
    fn each<T: Default>(
        values: Vec<i64>,
        is_valid: impl Fn(usize) -> bool,
        make: impl Fn(i64) -> Option<T>,
    ) -> Result<Vec<T>> {
        let made = |(row, value): (usize, i64)| match make(value) {
            Some(made) => Ok(made),
            // Of rows without a value any will do.
            None if !is_valid(row) => Ok(T::default()),
            None => Err(Error::Unsupported(format!("a value of {value} is past those of its type"))),
        };
        values.into_iter().enumerate().map(made).collect()
    }
    let (logical, values) = match (kind, values) {
        (FieldKind::Date, Values::Int64(days)) => {
            let held = |days: i64| {
                let days = days.checked_sub(SINCE_1970).filter(|days| DAYS.contains(days))?;
                i32::try_from(days).ok()
            };
            (LogicalType::Date, Values::Int32(each(days, is_valid, held)?))
        }
        (FieldKind::Integer { bits: 16 }, Values::Int64(all)) => {
            (LogicalType::Int16, Values::Int16(each(all, is_valid, |value| i16::try_from(value).ok())?))
        }
        (FieldKind::Integer { bits: 32 }, Values::Int64(all)) => {
            (LogicalType::Int32, Values::Int32(each(all, is_valid, |value| i32::try_from(value).ok())?))
        }
        (FieldKind::Real { bits: 32 }, Values::Float64(all)) => {
            (LogicalType::Float32, Values::Float32(all.into_iter().map(|value| value as f32).collect()))
        }
        (FieldKind::Time(unit), Values::Int64(all)) => {
            let of_day = |time| micros(time, unit).filter(|time| (0..=MICROS_OF_DAY).contains(time));
            (LogicalType::Int64, Values::Int64(each(all, is_valid, of_day)?))
        }
        (FieldKind::Timestamp { unit, .. }, Values::Int64(all)) => {
            let held = |time| {
                let micros = micros(time, unit)?.checked_sub(EPOCH_MICROS)?;
                MICROS.contains(&micros).then_some(micros)
            };
            (LogicalType::Timestamp, Values::Int64(each(all, is_valid, held)?))
        }
        (_, values) => (logical, values),
    };
    Ok(Vector { logical, validity, values })
}

/// What values of a file's column become in a column of a table.
///
/// # Errors
/// `Unsupported` where the column does not hold all of them as they are.
pub fn read_as(from: &Field, to: &Column) -> Result<FieldKind> {
    use FieldKind as K;
    let other = || {
        let is = columns(std::slice::from_ref(from)).ok();
        let is = is.and_then(|all| Some(all.first()?.declared.clone()));
        let is =
            is.unwrap_or_else(|| if let K::Other(what) = from.kind { what.into() } else { String::new() });
        let text = format!("its column \"{}\" is {is}, and the table's {}", from.name, to.declared);
        Error::Unsupported(text)
    };
    if to.logical == LogicalType::Numeric && to.declared == "numeric" {
        return if let K::Decimal { .. } = from.kind { Ok(from.kind) } else { Err(other()) };
    }
    // Text may be JSON, which its values tell.
    match (from.kind, to.declared.as_str()) {
        (K::Json | K::Text, "json") => return Ok(K::Json),
        (K::Json | K::Text, "jsonb") => return Ok(K::Jsonb),
        (K::Json, "text") => return Ok(K::Text),
        _ => {}
    }
    // Others than these have conditions of their own: a length, a list of names, a CHECK.
    const TYPES: [&str; 14] = [
        "boolean",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double precision",
        "date",
        "uuid",
        "text",
        "character varying",
        "bytea",
        "time without time zone",
        "timestamp without time zone",
        "timestamp with time zone",
    ];
    let is_plain = TYPES.contains(&to.declared.as_str())
        || matches!(to.logical, LogicalType::Numeric | LogicalType::UInt64);
    if !is_plain {
        return Err(other());
    }
    Ok(match (from.kind, field(to).map_err(|_| other())?.kind) {
        (K::Integer { bits: from }, K::Integer { bits: to }) if from <= to => K::Integer { bits: to },
        (K::Real { bits: from }, K::Real { bits: to }) if from <= to => K::Real { bits: to },
        (K::Decimal { precision, scale }, K::Decimal { precision: digits, scale: other })
            if scale == other && precision <= digits =>
        {
            from.kind
        }
        (K::Time(_), K::Time(_)) => from.kind,
        (K::Timestamp { is_instant: one, .. }, K::Timestamp { is_instant: other, .. }) if one == other => {
            from.kind
        }
        (one, other) if one == other => one,
        _ => return Err(other()),
    })
}

/// A date of a column as days in a file, the other way round than `to_column`.
pub const fn days_in_file(days: i64) -> Option<i64> {
    days.checked_add(SINCE_1970)
}

/// A timestamp of a column as microseconds in a file, the other way round than `to_column`.
pub const fn micros_in_file(micros: i64) -> Option<i64> {
    micros.checked_add(EPOCH_MICROS)
}

/// Microseconds. Parts of one are cut off, towards the past.
fn micros(time: i64, unit: Unit) -> Option<i64> {
    match unit {
        Unit::Millis => time.checked_mul(1000),
        Unit::Micros => Some(time),
        Unit::Nanos => Some(time.div_euclid(1000)),
    }
}

/// What a column is in Parquet.
///
/// # Errors
/// `Unsupported` for a type without a counterpart.
pub fn field(column: &Column) -> Result<Field> {
    let Column { name, declared, logical, .. } = column;
    let kind = match logical {
        LogicalType::Bool => FieldKind::Bool,
        LogicalType::Int64 if declared == "time without time zone" => FieldKind::Time(Unit::Micros),
        LogicalType::Int64 if declared != "bigint" => return Err(refused(column)),
        LogicalType::Int16 => FieldKind::Integer { bits: 16 },
        LogicalType::Int32 => FieldKind::Integer { bits: 32 },
        LogicalType::Int64 => FieldKind::INTEGER,
        LogicalType::UInt64 => FieldKind::Unsigned,
        LogicalType::Float32 => FieldKind::Real { bits: 32 },
        LogicalType::Float64 => FieldKind::REAL,
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
        LogicalType::Bytes if declared == "json" => FieldKind::Json,
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
///
/// # Errors
/// `Unsupported` for infinite dates and times.
pub fn to_field(column: Vector, field: &Field) -> Result<Vector> {
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
