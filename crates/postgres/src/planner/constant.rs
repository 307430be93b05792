//! A column compared with a value that is known now: the comparison becomes a `vector::Predicate`, perhaps a
//! weaker one.
//!
//! Called by `resolve` for each leaf of a template. Knows what the two sides mean if they have different
//! types; `vector::Resolved` has the arithmetic. A numeric or float beside an integer column is rounded to
//! the next integer that keeps the comparison. A timestamp beside a date is rounded to days.
//!
//! Invariant: the predicate is TRUE wherever the comparison is TRUE. `exact` is set only if it is TRUE
//! nowhere else.

use pgrx::pg_sys::{self, Datum, Oid};
use server_bytes::numeric;
use vector::{CompareOp, Predicate, Resolved, Scalar, power_of_ten};

use super::like::{self, Pattern};
use super::operand::{Column, Kind};
use crate::convert::varlena;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// The server's infinite dates.
const DATE_EXTREMES: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);
/// The server's infinite timestamps.
const TIMESTAMP_EXTREMES: (i64, i64) = (i64::MIN, i64::MAX);
/// Dates within this many days of 2000-01-01 have a timestamp in every time zone.
const SAFE_DAYS: i64 = 1_400_000;
/// No time zone moves a moment by as much as this many days.
const ZONE_DAYS: i64 = 2;
/// The server's cast of a date, and of a timestamp, to a timestamp with time zone.
const DATE_TO_TIMESTAMPTZ: u32 = 1174;
const TIMESTAMP_TO_TIMESTAMPTZ: u32 = 2028;

/// Position of a column in predicates and stripes.
pub fn position(column: Column) -> usize {
    usize::try_from(column.attno - 1).unwrap_or(0)
}

fn leaf(column: Column, op: CompareOp, value: Scalar) -> Predicate {
    Predicate::Compare { column: position(column), op, value }
}

fn not_null(column: Column) -> Predicate {
    Predicate::IsNotNull { column: position(column) }
}

/// `column op value` for a value that is not NULL.
///
/// # Safety
/// The datum is a valid value of `value_type`.
pub unsafe fn compare(column: Column, op: CompareOp, value: Datum, value_type: Oid) -> Resolved {
    // SAFETY: the caller's datum, of a type of variable length.
    let bytes = || unsafe { varlena::bytes_of(value) };
    let exact = |value: Scalar| Resolved::exact(leaf(column, op, value));
    let range = match column.kind {
        Kind::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Kind::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    match column.kind {
        Kind::Bool => Resolved::of_truth_values(position(column), op, value.value() as u8 != 0),
        Kind::Int16 | Kind::Int32 | Kind::Int64 => {
            // SAFETY: the caller's datum.
            unsafe { integer(column, op, value, value_type, range) }
        }
        // SAFETY: the caller's datum.
        Kind::Unsigned(own) => unsafe { unsigned(column, op, value, value_type, own) },
        Kind::Float32 | Kind::Float64 => exact(Scalar::Float(float(value, value_type))),
        Kind::Date => date(column, op, value, value_type),
        Kind::Timestamp => timestamp(column, op, value, value_type),
        Kind::TimestampTz => timestamptz(column, op, value, value_type),
        Kind::Numeric => match numeric::decode(&bytes()) {
            Some(decimal) => exact(Scalar::Numeric { unscaled: decimal.unscaled, scale: decimal.scale }),
            None => Resolved::weaker(not_null(column)),
        },
        Kind::Uuid => {
            // SAFETY: a uuid is passed by reference to its sixteen bytes.
            let bytes = unsafe { std::slice::from_raw_parts(value.cast_mut_ptr::<u8>(), 16) };
            exact(Scalar::Bytes(bytes.into()))
        }
        Kind::Text | Kind::Bytea => exact(Scalar::Bytes(bytes().into())),
        Kind::Padded(length) => padded(column, op, bytes(), length),
        Kind::Other => Resolved::weaker(Predicate::Always(true)),
    }
}

/// `column LIKE pattern`.
pub fn like(column: Column, pattern: &[u8]) -> Resolved {
    let prefix = |literal: Vec<u8>| match literal.is_empty() {
        true => not_null(column),
        false => Predicate::StartsWith { column: position(column), prefix: literal.into() },
    };
    match like::parse(pattern) {
        Pattern::Whole(literal) => {
            Resolved::exact(leaf(column, CompareOp::Equal, Scalar::Bytes(literal.into())))
        }
        Pattern::Prefix(literal) => Resolved::exact(prefix(literal)),
        Pattern::PrefixAndMore(literal) => Resolved::weaker(prefix(literal)),
        Pattern::Malformed => Resolved::weaker(Predicate::Always(true)),
    }
}

/// `column ^@ prefix`.
pub fn starts_with(column: Column, prefix: Vec<u8>) -> Resolved {
    Resolved::exact(match prefix.is_empty() {
        true => not_null(column),
        false => Predicate::StartsWith { column: position(column), prefix: prefix.into() },
    })
}

/// A column of integers within `range` against a number.
///
/// # Safety
/// The datum is a valid value of `value_type`.
unsafe fn integer(
    column: Column,
    op: CompareOp,
    value: Datum,
    value_type: Oid,
    range: (i64, i64),
) -> Resolved {
    match value_type {
        pg_sys::NUMERICOID => {
            // SAFETY: a value of a variable-length type.
            let Some(decimal) = numeric::decode(&unsafe { varlena::bytes_of(value) }) else {
                return Resolved::weaker(not_null(column));
            };
            let Some(unit) = power_of_ten(decimal.scale) else {
                return Resolved::weaker(not_null(column));
            };
            let floor = decimal.unscaled.div_euclid(unit);
            Resolved::of_integers(position(column), op, floor, decimal.unscaled.rem_euclid(unit) == 0, range)
        }
        pg_sys::FLOAT8OID | pg_sys::FLOAT4OID => {
            let number = float(value, value_type);
            // NaN is above every number.
            if number.is_nan() || number >= 1e30 {
                return Resolved::beyond(position(column), op, std::cmp::Ordering::Greater);
            }
            if number <= -1e30 {
                return Resolved::beyond(position(column), op, std::cmp::Ordering::Less);
            }
            // Exact: below 1e30 the floor of a double fits 128 bits.
            #[allow(clippy::cast_possible_truncation)]
            Resolved::of_integers(
                position(column),
                op,
                number.floor() as i128,
                number.floor() == number,
                range,
            )
        }
        _ => Resolved::of_integers(
            position(column),
            op,
            i128::from(small_integer(value, value_type)),
            true,
            range,
        ),
    }
}

/// A column of unsigned integers against a number, in terms of what vectors hold for it.
///
/// # Safety
/// The datum is a valid value of `value_type`.
unsafe fn unsigned(column: Column, op: CompareOp, value: Datum, value_type: Oid, own: Oid) -> Resolved {
    const ZERO: i128 = 1 << 63;
    let whole = |value: i128, is_whole| {
        Resolved::of_integers(position(column), op, value - ZERO, is_whole, (i64::MIN, i64::MAX))
    };
    match value_type {
        _ if value_type == own => whole(i128::from(value.value() as u64), true),
        pg_sys::NUMERICOID => {
            // SAFETY: a value of a variable-length type.
            let decimal = numeric::decode(&unsafe { varlena::bytes_of(value) });
            // What is far beyond the column's values stays beyond them.
            let unit = decimal.and_then(|decimal| Some((decimal, power_of_ten(decimal.scale)?)));
            match unit {
                Some((decimal, unit)) => {
                    let floor = decimal.unscaled.div_euclid(unit).clamp(-(1 << 100), 1 << 100);
                    whole(floor, decimal.unscaled.rem_euclid(unit) == 0)
                }
                None => Resolved::weaker(not_null(column)),
            }
        }
        _ => whole(i128::from(small_integer(value, value_type)), true),
    }
}

/// A by-value integer of any width.
pub fn small_integer(value: Datum, value_type: Oid) -> i64 {
    // Datums hold narrow integers in their low bytes. The bytes above are not defined.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    match value_type {
        pg_sys::INT2OID => i64::from(value.value() as i16),
        pg_sys::INT4OID | pg_sys::DATEOID => i64::from(value.value() as i32),
        _ => value.value() as i64,
    }
}

/// A by-value float, widened.
fn float(value: Datum, value_type: Oid) -> f64 {
    #[allow(clippy::cast_possible_truncation)]
    match value_type {
        pg_sys::FLOAT4OID => f64::from(f32::from_bits(value.value() as u32)),
        _ => f64::from_bits(value.value() as u64),
    }
}

fn date(column: Column, op: CompareOp, value: Datum, value_type: Oid) -> Resolved {
    let moment = small_integer(value, value_type);
    match value_type {
        pg_sys::DATEOID => Resolved::exact(leaf(column, op, Scalar::Int(moment))),
        _ if moment == TIMESTAMP_EXTREMES.0 => {
            Resolved::exact(leaf(column, op, Scalar::Int(DATE_EXTREMES.0)))
        }
        _ if moment == TIMESTAMP_EXTREMES.1 => {
            Resolved::exact(leaf(column, op, Scalar::Int(DATE_EXTREMES.1)))
        }
        pg_sys::TIMESTAMPOID => {
            let floor = i128::from(moment.div_euclid(DAY));
            Resolved::of_integers(position(column), op, floor, moment.rem_euclid(DAY) == 0, DATE_EXTREMES)
        }
        _ => Resolved::near(position(column), op, moment.div_euclid(DAY), ZONE_DAYS),
    }
}

fn timestamp(column: Column, op: CompareOp, value: Datum, value_type: Oid) -> Resolved {
    let moment = small_integer(value, value_type);
    match value_type {
        pg_sys::TIMESTAMPOID => Resolved::exact(leaf(column, op, Scalar::Int(moment))),
        pg_sys::DATEOID => match date_extreme(moment) {
            Some(extreme) => Resolved::exact(leaf(column, op, Scalar::Int(extreme))),
            None if moment.abs() <= SAFE_DAYS => Resolved::exact(leaf(column, op, Scalar::Int(moment * DAY))),
            None => Resolved::weaker(not_null(column)),
        },
        _ if moment == TIMESTAMP_EXTREMES.0 || moment == TIMESTAMP_EXTREMES.1 => {
            Resolved::exact(leaf(column, op, Scalar::Int(moment)))
        }
        _ => Resolved::near(position(column), op, moment, ZONE_DAYS * DAY),
    }
}

/// Compares a timestamp with time zone. The server's own cast converts the other side once, in the session's
/// time zone.
fn timestamptz(column: Column, op: CompareOp, value: Datum, value_type: Oid) -> Resolved {
    let moment = small_integer(value, value_type);
    let cast = match value_type {
        pg_sys::TIMESTAMPTZOID => return Resolved::exact(leaf(column, op, Scalar::Int(moment))),
        pg_sys::DATEOID => match date_extreme(moment) {
            Some(extreme) => return Resolved::exact(leaf(column, op, Scalar::Int(extreme))),
            None if moment.abs() <= SAFE_DAYS => DATE_TO_TIMESTAMPTZ,
            None => return Resolved::weaker(not_null(column)),
        },
        _ if moment == TIMESTAMP_EXTREMES.0 || moment == TIMESTAMP_EXTREMES.1 => {
            return Resolved::exact(leaf(column, op, Scalar::Int(moment)));
        }
        _ if (moment / DAY).abs() <= SAFE_DAYS => TIMESTAMP_TO_TIMESTAMPTZ,
        _ => return Resolved::weaker(not_null(column)),
    };
    // SAFETY: a strict cast between by-value types; the range check above keeps it from failing.
    let moved = unsafe { pg_sys::OidFunctionCall1Coll(Oid::from(cast), pg_sys::InvalidOid, value) };
    Resolved::exact(leaf(column, op, Scalar::Int(small_integer(moved, pg_sys::TIMESTAMPTZOID))))
}

fn date_extreme(days: i64) -> Option<i64> {
    match days {
        _ if days == DATE_EXTREMES.0 => Some(TIMESTAMP_EXTREMES.0),
        _ if days == DATE_EXTREMES.1 => Some(TIMESTAMP_EXTREMES.1),
        _ => None,
    }
}

/// char(n): trailing blanks do not count, and every stored value is padded to `length` characters.
fn padded(column: Column, op: CompareOp, mut bytes: Vec<u8>, length: u32) -> Resolved {
    bytes.truncate(bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1));
    // SAFETY: the bytes are text in the database's encoding.
    let characters = match i32::try_from(bytes.len()) {
        // SAFETY: the pointer and length are those of one buffer.
        Ok(len) => unsafe { pg_sys::pg_mbstrlen_with_len(bytes.as_ptr().cast(), len) },
        Err(_) => i32::MAX,
    };
    match usize::try_from(i64::from(length) - i64::from(characters)) {
        Ok(blanks) => {
            bytes.resize(bytes.len() + blanks, b' ');
            Resolved::exact(leaf(column, op, Scalar::Bytes(bytes.into())))
        }
        Err(_) => Resolved::beyond(position(column), op, std::cmp::Ordering::Greater),
    }
}
