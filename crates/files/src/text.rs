//! Values of column files as text, in PostgreSQL's words.

use std::fmt::Write;

use vector::calendar::{Day, from_days};
use vector::{LogicalType, NumericValues, Scalar, Special, Values, Vector, VectorBuilder, unsigned};

use crate::column::Column;
use crate::{Error, Result};

const DAY: i64 = 86_400_000_000;

/// Appends the value of a row that is not NULL. The declared type says what the vector does not: whether
/// integers are times of the day, and timestamps instants.
///
/// # Errors
/// `Unsupported` for values that only the server knows.
pub fn append(column: &Vector, row: usize, declared: &str, out: &mut String) -> Result<()> {
    let unknown = || Error::Unsupported(format!("values of type {declared} have no text outside the server"));
    let written = match (column.logical, &column.values) {
        (LogicalType::Bool, Values::Bool(values)) => write!(out, "{}", values.get(row)),
        (LogicalType::Int64, Values::Int64(values)) if declared == "time without time zone" => {
            time(values.get(row).copied().unwrap_or(0), out)
        }
        (LogicalType::UInt64, Values::Int64(values)) => {
            digits(unsigned(values.get(row).copied().unwrap_or(0)), 1, out);
            Ok(())
        }
        (LogicalType::Timestamp, Values::Int64(values)) => {
            let zone = if declared.ends_with("with time zone") { "+00" } else { "" };
            timestamp(values.get(row).copied().unwrap_or(0), zone, out)
        }
        (LogicalType::Date, Values::Int32(values)) => match values.get(row).copied().unwrap_or(0) {
            i32::MAX => write!(out, "infinity"),
            i32::MIN => write!(out, "-infinity"),
            days => date(days.into(), "", out),
        },
        (_, Values::Int16(values)) => {
            integer(values.get(row).copied().unwrap_or(0).into(), out);
            Ok(())
        }
        (_, Values::Int32(values)) => {
            integer(values.get(row).copied().unwrap_or(0).into(), out);
            Ok(())
        }
        (_, Values::Int64(values)) => {
            integer(values.get(row).copied().unwrap_or(0), out);
            Ok(())
        }
        (_, Values::Float32(values)) => {
            let value = values.get(row).copied().unwrap_or(0.0);
            float(&format!("{value:?}"), out)
        }
        (_, Values::Float64(values)) => {
            let value = values.get(row).copied().unwrap_or(0.0);
            float(&format!("{value:?}"), out)
        }
        (LogicalType::Uuid, Values::Fixed(values)) => {
            values.get(row).iter().enumerate().try_for_each(|(at, byte)| {
                write!(out, "{}{byte:02x}", if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" })
            })
        }
        (LogicalType::Numeric, Values::Numeric(values)) => {
            return decimal(values, row, out).ok_or_else(unknown);
        }
        (logical, Values::Bytes(values)) if logical == LogicalType::Text || declared == "json" => {
            match std::str::from_utf8(values.get(row)) {
                Ok(text) => {
                    out.push_str(text);
                    Ok(())
                }
                Err(_) => return Err(Error::Unsupported("text that is not UTF-8 is not shown".into())),
            }
        }
        (LogicalType::Bytes, Values::Bytes(values)) if declared == "bytea" => {
            out.push_str("\\x");
            values.get(row).iter().try_for_each(|byte| write!(out, "{byte:02x}"))
        }
        _ => return Err(unknown()),
    };
    // A String takes all that is written.
    written.map_err(|_| unknown())
}

/// A single value of a column, as statistics have it. Decimals show `least` digits after the point, or all
/// that they have. Of text that was cut within a character, the rest of it is left out. None for NULL, and
/// for values that only the server knows.
pub fn of_scalar(value: &Scalar, least: u16, column: &Column) -> Option<String> {
    if let (Scalar::Bytes(bytes), LogicalType::Text) = (value, column.logical) {
        return Some(String::from_utf8_lossy(bytes).trim_end_matches('\u{fffd}').to_owned());
    }
    let mut builder = VectorBuilder::new(column.logical);
    let fits = match (value, column.logical) {
        (Scalar::Null, _) => false,
        (Scalar::Bool(value), _) => builder.push_bool(*value),
        (Scalar::Int(value), LogicalType::Int16) => {
            i16::try_from(*value).is_ok_and(|value| builder.push_i16(value))
        }
        (Scalar::Int(value), LogicalType::Int32 | LogicalType::Date) => {
            i32::try_from(*value).is_ok_and(|value| builder.push_i32(value))
        }
        (Scalar::Int(value), _) => builder.push_i64(*value),
        (Scalar::Float(value), LogicalType::Float32) => builder.push_f32(*value as f32),
        (Scalar::Float(value), _) => builder.push_f64(*value),
        (Scalar::Numeric { unscaled, scale }, _) => {
            builder.push_numeric(*unscaled, *scale, least.max(*scale))
        }
        (Scalar::Bytes(bytes), _) => builder.push_bytes(bytes),
    };
    let mut out = String::new();
    let column_of_one = fits.then(|| builder.finish(&|_, _, _| Box::default()))?;
    append(&column_of_one, 0, &column.declared, &mut out).ok().map(|()| out)
}

/// Rust's shortest digits, with the server's words.
fn float(debug: &str, out: &mut String) -> std::fmt::Result {
    match debug {
        "inf" => write!(out, "Infinity"),
        "-inf" => write!(out, "-Infinity"),
        "NaN" => write!(out, "NaN"),
        number => {
            let (digits, exponent) = number.split_once('e').unwrap_or((number, ""));
            let digits = digits.strip_suffix(".0").unwrap_or(digits);
            match exponent.strip_prefix('-') {
                _ if exponent.is_empty() => write!(out, "{digits}"),
                Some(exponent) => write!(out, "{digits}e-{exponent:0>2}"),
                None => write!(out, "{digits}e+{exponent:0>2}"),
            }
        }
    }
}

/// None for a value that 128 bits do not hold.
fn decimal(values: &NumericValues, row: usize, out: &mut String) -> Option<()> {
    if let Some(side) = values.side_value(row) {
        out.push_str(match Special::of(side)? {
            Special::Nan => "NaN",
            Special::Infinity => "Infinity",
            Special::NegativeInfinity => "-Infinity",
        });
        return Some(());
    }
    let (unscaled, scale, shown) =
        (values.ints.get(row), usize::from(values.scale), usize::from(values.display.get(row)));
    let small = u64::try_from(unscaled.unsigned_abs()).ok().filter(|_| shown == scale && scale > 0);
    if let Some((value, unit)) = small.zip(10_u64.checked_pow(u32::from(values.scale))) {
        if unscaled < 0 {
            out.push('-');
        }
        digits(value / unit, 1, out);
        out.push('.');
        digits(value % unit, scale, out);
        return Some(());
    }
    let mut digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    // Digits past those that are shown are zeros.
    match shown.checked_sub(scale) {
        Some(more) => digits.extend(std::iter::repeat_n('0', more)),
        None => digits.truncate(digits.len() + shown - scale),
    }
    let (whole, fraction) = digits.split_at(digits.len() - shown);
    let (sign, point) = (if unscaled < 0 { "-" } else { "" }, if fraction.is_empty() { "" } else { "." });
    write!(out, "{sign}{whole}{point}{fraction}").ok()
}

/// `between` stands before the mark of years before the first.
fn date(days: i64, between: &str, out: &mut String) -> std::fmt::Result {
    let Day { year, month, day } = from_days(days);
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    digits(year.unsigned_abs(), 4, out);
    for part in [month, day] {
        out.push('-');
        digits(part.unsigned_abs(), 2, out);
    }
    out.push_str(between);
    out.push_str(era);
    Ok(())
}

/// Appends a number with so many digits at least: what `write!` does, in a fraction of its time.
fn digits(mut value: u64, least: usize, out: &mut String) {
    let mut room = [b'0'; 20];
    let mut used = 0;
    for (place, digit) in room.iter_mut().rev().enumerate() {
        *digit += (value % 10) as u8;
        value /= 10;
        used = place + 1;
        if value == 0 && used >= least {
            break;
        }
    }
    out.extend(room.iter().skip(room.len() - used).map(|&digit| char::from(digit)));
}

fn integer(value: i64, out: &mut String) {
    if value < 0 {
        out.push('-');
    }
    digits(value.unsigned_abs(), 1, out);
}

fn time(micros: i64, out: &mut String) -> std::fmt::Result {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    digits((seconds / 3600).unsigned_abs(), 2, out);
    for part in [seconds / 60 % 60, seconds % 60] {
        out.push(':');
        digits(part.unsigned_abs(), 2, out);
    }
    if fraction == 0 {
        return Ok(());
    }
    let digits = format!("{fraction:06}");
    write!(out, ".{}", digits.trim_end_matches('0'))
}

fn timestamp(micros: i64, zone: &str, out: &mut String) -> std::fmt::Result {
    match micros {
        i64::MAX => write!(out, "infinity"),
        i64::MIN => write!(out, "-infinity"),
        _ => {
            let mut clock = String::from(" ");
            time(micros.rem_euclid(DAY), &mut clock)?;
            clock.push_str(zone);
            date(micros.div_euclid(DAY), &clock, out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::append;
    use vector::{LogicalType, Vector, VectorBuilder};

    fn of(logical: LogicalType, declared: &str, push: impl Fn(&mut VectorBuilder)) -> String {
        let mut builder = VectorBuilder::new(logical);
        push(&mut builder);
        let column: Vector = builder.finish(&|_, _, _| Box::default());
        let mut out = String::new();
        append(&column, 0, declared, &mut out).unwrap();
        out
    }

    #[test]
    fn values_are_the_servers_words() {
        let date = |days| of(LogicalType::Date, "date", move |to| assert!(to.push_i32(days)));
        assert_eq!(
            [date(0), date(8825), date(-10_957), date(i32::MAX)],
            ["2000-01-01", "2024-02-29", "1970-01-01", "infinity"]
        );
        assert_eq!([date(-730_120), date(-730_119)], ["0001-12-31 BC", "0001-01-01"]);
        let at =
            |micros, declared| of(LogicalType::Timestamp, declared, move |to| assert!(to.push_i64(micros)));
        assert_eq!(at(-1, "timestamp without time zone"), "1999-12-31 23:59:59.999999");
        assert_eq!(at(1_500_000, "timestamp with time zone"), "2000-01-01 00:00:01.5+00");
        assert_eq!(at(1, "timestamp(3) with time zone"), "2000-01-01 00:00:00.000001+00");
        assert_eq!(
            of(LogicalType::Int64, "time without time zone", |to| assert!(to.push_i64(86_399_900_000))),
            "23:59:59.9"
        );
        let whole = |value| of(LogicalType::Int64, "bigint", |to| assert!(to.push_i64(value)));
        assert_eq!([whole(0), whole(-7), whole(1230)], ["0", "-7", "1230"]);
        assert_eq!([whole(i64::MIN), whole(i64::MAX)], ["-9223372036854775808", "9223372036854775807"]);
        let real =
            |value| of(LogicalType::Float64, "double precision", move |to| assert!(to.push_f64(value)));
        assert_eq!(
            [real(0.1), real(-0.0), real(1e300), real(1e-7), real(100.0)],
            ["0.1", "-0", "1e+300", "1e-07", "100"]
        );
        assert_eq!([real(f64::NAN), real(f64::NEG_INFINITY)], ["NaN", "-Infinity"]);
        let number = |unscaled, scale, shown| {
            of(LogicalType::Numeric, "numeric", move |to| assert!(to.push_numeric(unscaled, scale, shown)))
        };
        assert_eq!(
            [
                number(-5, 2, 2),
                number(i128::from(u64::MAX), 19, 19),
                number(-(1 << 70), 3, 3),
                number(0, 5, 5)
            ],
            ["-0.05", "1.8446744073709551615", "-1180591620717411303.424", "0.00000"]
        );
        assert_eq!(
            [number(-5, 2, 2), number(125, 2, 4), number(120, 2, 1), number(7, 0, 0)],
            ["-0.05", "1.2500", "1.2", "7"]
        );
        assert_eq!(of(LogicalType::Bytes, "json", |to| assert!(to.push_bytes(b"[1, 2]"))), "[1, 2]");
        assert_eq!(of(LogicalType::Bytes, "bytea", |to| assert!(to.push_bytes(&[0, 255]))), "\\x00ff");
        assert_eq!(
            of(LogicalType::UInt64, "engine.uint8", |to| assert!(to.push_i64(-1))),
            "9223372036854775807"
        );
        let uuid = of(LogicalType::Uuid, "uuid", |to| assert!(to.push_bytes(&[0x11; 16])));
        assert_eq!(uuid, "11111111-1111-1111-1111-111111111111");
    }
}
