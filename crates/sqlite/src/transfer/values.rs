//! Values of files as SQLite's.
//!
//! SQLite has no types for dates, decimals and the like. They become what its own functions work with: dates
//! and times ISO 8601 text, decimals numbers as long as a real keeps all their digits, and text then.

use std::fmt::Write;

use files::{FieldKind, Unit};
use vector::calendar::{SINCE_1970, from_days};
use vector::{LogicalType, NumericValues, Values, Vector, VectorBuilder, unsigned};

use crate::api::{Error, Result};
use crate::values::{Column, Kind, as_real};

/// Decimals of so many digits are kept by reals.
const REAL_DIGITS: u16 = 15;

/// The type of a column of SQLite for values of this kind.
pub fn declared(kind: FieldKind) -> String {
    match kind {
        FieldKind::Bool => "BOOLEAN".into(),
        FieldKind::Integer { .. } | FieldKind::Unsigned => "INTEGER".into(),
        FieldKind::Real { .. } => "REAL".into(),
        FieldKind::Decimal { precision, scale } if precision <= REAL_DIGITS => {
            format!("DECIMAL({precision},{scale})")
        }
        FieldKind::Bytes => "BLOB".into(),
        _ => "TEXT".into(),
    }
}

/// Values of a kind as a column of SQLite's.
pub fn column(kind: FieldKind, vector: Vector) -> Result<Column> {
    let Vector { validity, values, .. } = vector;
    let valid = |row: usize| validity.as_ref().is_none_or(|validity| validity.get(row));
    let texts = |rows: usize, write: &dyn Fn(usize, &mut String)| {
        let mut builder = VectorBuilder::new(LogicalType::Text);
        let mut room = String::new();
        for row in 0..rows {
            if valid(row) {
                room.clear();
                write(row, &mut room);
                builder.push_bytes(room.as_bytes());
            } else {
                builder.push_null();
            }
        }
        Column::new(Kind::Text, builder.finish(&|_, _, _| Box::default()))
    };
    Ok(match (kind, values) {
        (FieldKind::Bool, Values::Bool(bits)) => {
            let values = Values::Int64(bits.iter().map(i64::from).collect());
            Column::new(Kind::Integer, Vector { logical: LogicalType::Int64, validity, values })
        }
        (FieldKind::Unsigned, Values::Int64(held)) => {
            let mut values = Vec::with_capacity(held.len());
            for (row, &held) in held.iter().enumerate() {
                let value = unsigned(held);
                values.push(match i64::try_from(value) {
                    Ok(value) => value,
                    Err(_) if !valid(row) => 0,
                    Err(_) => return Err(Error::new(format!("{value} is past the integers of SQLite"))),
                });
            }
            Column::new(
                Kind::Integer,
                Vector { logical: LogicalType::Int64, validity, values: Values::Int64(values) },
            )
        }
        (FieldKind::Date, Values::Int64(days)) => {
            texts(days.len(), &|row, out| date(days.get(row).copied().unwrap_or(0), out))
        }
        (FieldKind::Time(unit), Values::Int64(times)) => {
            texts(times.len(), &|row, out| time(times.get(row).copied().unwrap_or(0), unit, out))
        }
        (FieldKind::Timestamp { unit, .. }, Values::Int64(times)) => texts(times.len(), &|row, out| {
            let moment = times.get(row).copied().unwrap_or(0);
            let day = 86_400 * unit.per_second();
            date(moment.div_euclid(day), out);
            out.push(' ');
            time(moment.rem_euclid(day), unit, out);
        }),
        (FieldKind::Integer { .. }, values @ Values::Int64(_)) => {
            Column::new(Kind::Integer, Vector { logical: LogicalType::Int64, validity, values })
        }
        (FieldKind::Real { .. }, Values::Float64(reals)) => {
            // SQLite has no NaN: it is NULL.
            let mut builder = VectorBuilder::new(LogicalType::Float64);
            for (row, &real) in reals.iter().enumerate() {
                match valid(row) && !real.is_nan() {
                    true => _ = builder.push_f64(real),
                    false => builder.push_null(),
                }
            }
            Column::new(Kind::Real, builder.finish(&|_, _, _| Box::default()))
        }
        (FieldKind::Decimal { precision, scale }, Values::Numeric(decimals)) => {
            match precision <= REAL_DIGITS {
                true => {
                    let real = |row| small_decimal(&decimals, row, scale);
                    let values = Values::Float64((0..decimals.len()).map(real).collect());
                    Column::new(Kind::Number, Vector { logical: LogicalType::Float64, validity, values })
                }
                false => texts(decimals.len(), &|row, out| decimal(&decimals, row, scale, out)),
            }
        }
        (FieldKind::Uuid, Values::Fixed(all)) => texts(all.len(), &|row, out| {
            for (at, byte) in all.get(row).iter().enumerate() {
                let _ = write!(out, "{}{byte:02x}", if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" });
            }
        }),
        (FieldKind::Text | FieldKind::Json, values @ Values::Bytes(_)) => {
            Column::new(Kind::Text, Vector { logical: LogicalType::Text, validity, values })
        }
        (FieldKind::Bytes, values @ Values::Bytes(_)) => {
            Column::of_blobs(&Vector { logical: LogicalType::Bytes, validity, values })?
        }
        (kind, _) => return Err(Error::new(format!("internal error of colonnade: a file's {kind:?}"))),
    })
}

/// A decimal at the scale of its column.
fn scaled(decimals: &NumericValues, row: usize, scale: u16) -> i128 {
    // Vectors keep the least scale that holds all values.
    let missing = u32::from(scale.saturating_sub(decimals.scale));
    decimals.ints.get(row).saturating_mul(10i128.saturating_pow(missing))
}

/// Both numbers are reals without loss, so the quotient is the real that is nearest to the decimal.
fn small_decimal(decimals: &NumericValues, row: usize, scale: u16) -> f64 {
    let unscaled = i64::try_from(scaled(decimals, row, scale)).unwrap_or(0);
    as_real(unscaled) / 10f64.powi(i32::from(scale))
}

fn decimal(decimals: &NumericValues, row: usize, scale: u16, out: &mut String) {
    let unscaled = scaled(decimals, row, scale);
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let sign = if unscaled < 0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    let _ = write!(out, "{sign}{whole}{point}{fraction}");
}

fn date(days: i64, out: &mut String) {
    // Days past the calendar of 64 bits are no dates of any file that was meant so.
    let day = from_days(days.clamp(-1 << 40, 1 << 40) - SINCE_1970);
    let sign = if day.year < 0 { "-" } else { "" };
    let _ = write!(out, "{sign}{:04}-{:02}-{:02}", day.year.abs(), day.month, day.day);
}

/// A time of the day. A fraction is shown if there is one.
fn time(since_midnight: i64, unit: Unit, out: &mut String) {
    let (seconds, fraction) = (since_midnight / unit.per_second(), since_midnight % unit.per_second());
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction != 0 {
        let _ = match unit {
            Unit::Millis => write!(out, ".{fraction:03}"),
            Unit::Micros => write!(out, ".{fraction:06}"),
            Unit::Nanos => write!(out, ".{fraction:09}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::{column, date, time};
    use crate::api::Value;
    use files::{FieldKind, Unit};
    use vector::{LogicalType, Values, Vector, VectorBuilder};

    #[test]
    fn times_are_iso_text() {
        let shown = |write: &dyn Fn(&mut String)| {
            let mut text = String::new();
            write(&mut text);
            text
        };
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (19_782, "2024-02-29"),
            (-719_528, "0000-01-01"),
            (-1_000_000, "-0768-02-04"),
        ] {
            assert_eq!(shown(&|out| date(days, out)), text);
        }
        assert_eq!(shown(&|out| time(86_399_999, Unit::Millis, out)), "23:59:59.999");
        assert_eq!(shown(&|out| time(3_600_000_000_001, Unit::Nanos, out)), "01:00:00.000000001");
        let moment = Vector::new(LogicalType::Int64, Values::Int64(vec![-1, 1_000_000]));
        let kind = FieldKind::Timestamp { unit: Unit::Micros, is_instant: false };
        let moments = column(kind, moment).unwrap();
        assert_eq!(moments.get(0).unwrap(), Value::Text(b"1969-12-31 23:59:59.999999"));
        assert_eq!(moments.get(1).unwrap(), Value::Text(b"1970-01-01 00:00:01"));
    }

    #[test]
    fn decimals_are_numbers_while_reals_keep_them() {
        let of = |precision, scale, all: &[i128]| {
            let mut builder = VectorBuilder::new(LogicalType::Numeric);
            all.iter().for_each(|&unscaled| assert!(builder.push_numeric(unscaled, scale, scale)));
            builder.push_null();
            column(FieldKind::Decimal { precision, scale }, builder.finish(&|_, _, _| Box::default()))
                .unwrap()
        };
        let small = of(15, 2, &[1230, -5, 200]);
        let found: Vec<Value<'_>> = (0..4).map(|row| small.get(row).unwrap()).collect();
        assert_eq!(found, [Value::Real(12.3), Value::Real(-0.05), Value::Integer(2), Value::Null]);
        let great = of(38, 3, &[12_345_678_901_234_567_890_123, -1, 0, 5000]);
        let found: Vec<Value<'_>> = (0..5).map(|row| great.get(row).unwrap()).collect();
        let text = |text: &'static str| Value::Text(text.as_bytes());
        assert_eq!(
            found,
            [text("12345678901234567890.123"), text("-0.001"), text("0.000"), text("5.000"), Value::Null]
        );
    }
}
