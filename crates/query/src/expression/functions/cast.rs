//! Casts among numbers. Called for `Function::Cast`.

use vector::{
    Bitmap, DisplayScales, LogicalType, NumericInts, NumericValues, Special, Values, power_of_ten, unsigned,
};

use super::lanes::{Native, WRONG_TYPE, any_fails, decimals, lane, one};
use super::numeric::{Decimal, LIMIT, MAX_SCALE, TOO_WIDE, rounded};
use super::{Output, Picked, Value};
use crate::kernels::Lane;
use crate::kernels::arithmetic::{map_checked, zip};
use crate::{Error, Result, SqlError};

/// A cast between these types.
pub(super) fn compile(from: LogicalType, to: LogicalType) -> Option<Picked> {
    use LogicalType::{Bool, Date, Float32, Float64, Int16, Int32, Int64, Numeric, Timestamp, UInt64};
    macro_rules! plain {
        ($from:ty, $to:ty, $f:expr) => {
            Some((
                Box::new(|a: &[Value], rows: usize, _: Option<&Bitmap>| mapped::<$from, $to>(a, rows, $f)),
                1,
            ))
        };
    }
    macro_rules! checked {
        ($from:ty, $to:ty, $error:expr, $f:expr) => {
            Some((
                Box::new(|a: &[Value], rows: usize, valid: Option<&Bitmap>| {
                    flagged::<$from, $to>(a, rows, valid, $f, |_| $error)
                }),
                1,
            ))
        };
    }
    const SMALL: SqlError = SqlError::SmallintOutOfRange;
    const INTEGER: SqlError = SqlError::IntegerOutOfRange;
    const BIG: SqlError = SqlError::BigintOutOfRange;
    match (from, to) {
        (from, to) if from == to => Some((Box::new(|a: &[Value], _: usize, _: Option<&Bitmap>| same(a)), 0)),
        (Int16, Int32) => plain!(i16, i32, i32::from),
        (Int16, Int64) => plain!(i16, i64, i64::from),
        (Int32, Int64) => plain!(i32, i64, i64::from),
        (Int32, Int16) => checked!(i32, i16, SMALL, |v| (v as i16, i32::from(v as i16) != v)),
        (Int64, Int16) => checked!(i64, i16, SMALL, |v| (v as i16, i64::from(v as i16) != v)),
        (Int64, Int32) => checked!(i64, i32, INTEGER, |v| (v as i32, i64::from(v as i32) != v)),
        (Int16, Float32) => plain!(i16, f32, f32::from),
        (Int32, Float32) => plain!(i32, f32, |v| v as f32),
        (Int64, Float32) => plain!(i64, f32, |v| v as f32),
        (Int16, Float64) => plain!(i16, f64, f64::from),
        (Int32, Float64) => plain!(i32, f64, f64::from),
        (Int64, Float64) => plain!(i64, f64, |v| v as f64),
        (UInt64, Float32) => plain!(i64, f32, |v| unsigned(v) as f32),
        (UInt64, Float64) => plain!(i64, f64, |v| unsigned(v) as f64),
        (Float32, Float64) => plain!(f32, f64, f64::from),
        (Float64, Float32) => Some((
            Box::new(|a: &[Value], rows: usize, valid: Option<&Bitmap>| {
                let error =
                    |v: f64| if v.abs() > 1.0 { SqlError::FloatOverflow } else { SqlError::FloatUnderflow };
                flagged::<f64, f32>(a, rows, valid, narrowed, error)
            }),
            1,
        )),
        (Float32, Int16) => checked!(f32, i16, SMALL, |v| whole(v.into(), -32_768.0, 32_768.0, |v| v as i16)),
        (Float32, Int32) => checked!(f32, i32, INTEGER, |v| whole(v.into(), -TWO_31, TWO_31, |v| v as i32)),
        (Float32, Int64) => checked!(f32, i64, BIG, |v| whole(v.into(), -TWO_63, TWO_63, |v| v as i64)),
        (Float64, Int16) => checked!(f64, i16, SMALL, |v| whole(v, -32_768.0, 32_768.0, |v| v as i16)),
        (Float64, Int32) => checked!(f64, i32, INTEGER, |v| whole(v, -TWO_31, TWO_31, |v| v as i32)),
        (Float64, Int64) => checked!(f64, i64, BIG, |v| whole(v, -TWO_63, TWO_63, |v| v as i64)),
        (Int16 | Int32 | Int64, Numeric) => {
            Some((Box::new(|a: &[Value], _: usize, _: Option<&Bitmap>| numeric(a)), 1))
        }
        (UInt64, Numeric) => {
            Some((Box::new(|a: &[Value], _: usize, _: Option<&Bitmap>| unsigned_numeric(a)), 1))
        }
        (Float32, Numeric) => Some((
            Box::new(|a: &[Value], rows: usize, valid: Option<&Bitmap>| {
                let lane = lane::<f32>(one(a)?)?;
                from_floats(rows, valid, |row| lane.get(row).map_or(0.0, f64::from), 6)
            }),
            300,
        )),
        (Float64, Numeric) => Some((
            Box::new(|a: &[Value], rows: usize, valid: Option<&Bitmap>| {
                let lane = lane::<f64>(one(a)?)?;
                from_floats(rows, valid, |row| lane.get(row).unwrap_or(0.0), 15)
            }),
            300,
        )),
        (Numeric, Int16) => Some((
            Box::new(|a: &[Value], rows: usize, v: Option<&Bitmap>| to_integers::<i16>(a, rows, v, SMALL)),
            4,
        )),
        (Numeric, Int32) => Some((
            Box::new(|a: &[Value], rows: usize, v: Option<&Bitmap>| to_integers::<i32>(a, rows, v, INTEGER)),
            4,
        )),
        (Numeric, Int64) => Some((
            Box::new(|a: &[Value], rows: usize, v: Option<&Bitmap>| to_integers::<i64>(a, rows, v, BIG)),
            4,
        )),
        (Numeric, Float64) => {
            Some((Box::new(|a: &[Value], rows: usize, _: Option<&Bitmap>| to_doubles(a, rows)), 4))
        }
        (Numeric, Float32) => {
            Some((Box::new(|a: &[Value], rows: usize, _: Option<&Bitmap>| to_singles(a, rows)), 40))
        }
        (Bool, Int32) => Some((
            Box::new(|a: &[Value], rows: usize, _: Option<&Bitmap>| {
                let Values::Bool(bits) = &one(a)?.inner().values else { return Err(WRONG_TYPE) };
                Ok(Values::Int32((0..rows).map(|row| i32::from(bits.get(row))).collect()).into())
            }),
            1,
        )),
        (Date | Timestamp, Date | Timestamp) => super::dates::cast(to),
        _ => None,
    }
}

const TWO_31: f64 = 2_147_483_648.0;
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// The whole number nearest to a float, the even one of two, and whether it is outside `low..high`.
#[inline(always)]
fn whole<T>(value: f64, low: f64, high: f64, to: impl Fn(f64) -> T) -> (T, bool) {
    let value = value.round_ties_even();
    (to(value), !((value >= low) & (value < high)))
}

#[inline(always)]
fn narrowed(value: f64) -> (f32, bool) {
    let narrow = value as f32;
    (narrow, (narrow.is_infinite() & !value.is_infinite()) | ((narrow == 0.0) & (value != 0.0)))
}

/// The values as they are.
fn same(arguments: &[Value]) -> Result<Output> {
    let argument = one(arguments)?;
    Ok(Output { values: argument.inner().values.clone(), validity: None, bounds: argument.bounds })
}

fn mapped<T: Native, U: Native>(arguments: &[Value], rows: usize, f: impl Fn(T) -> U) -> Result<Output> {
    let (values, _) = map_checked(lane::<T>(one(arguments)?)?, rows, |v| (f(v), false));
    Ok(U::values(values).into())
}

fn flagged<T: Native, U: Native>(
    arguments: &[Value],
    rows: usize,
    valid: Option<&Bitmap>,
    f: impl Fn(T) -> (U, bool),
    error: impl Fn(T) -> SqlError,
) -> Result<Output> {
    let a = lane::<T>(one(arguments)?)?;
    let (values, flag) = map_checked(a, rows, &f);
    let mut found = None;
    if flag {
        any_fails(rows, valid, |row| {
            let bad = a.get(row).filter(|&a| f(a).1);
            found = bad.map(&error);
            bad.is_some()
        });
    }
    match found {
        Some(error) => Err(Error::Sql(error)),
        None => Ok(U::values(values).into()),
    }
}

/// Integers as decimals: scale and display scale 0.
fn numeric(arguments: &[Value]) -> Result<Output> {
    let (ints, range) = match &one(arguments)?.inner().values {
        Values::Int16(values) => (
            NumericInts::Int32(values.iter().map(|&v| v.into()).collect()),
            (i16::MIN.into(), i16::MAX.into()),
        ),
        Values::Int32(values) => (NumericInts::Int32(values.clone()), (i32::MIN.into(), i32::MAX.into())),
        Values::Int64(values) => {
            let ints = NumericInts::Int64(values.clone());
            let range = super::numeric::bounds(&ints);
            (ints, range)
        }
        _ => return Err(WRONG_TYPE),
    };
    let values = NumericValues { ints, scale: 0, display: DisplayScales::Constant(0), side: Vec::new() };
    Ok(Output { values: Values::Numeric(values), validity: None, bounds: Some(range) })
}

/// Unsigned integers as decimals: scale and display scale 0.
fn unsigned_numeric(arguments: &[Value]) -> Result<Output> {
    let Values::Int64(values) = &one(arguments)?.inner().values else { return Err(WRONG_TYPE) };
    let ints = match values.iter().all(|&value| value < 0) {
        // All of them are below 2^63.
        true => NumericInts::Int64(values.iter().map(|&value| unsigned(value).cast_signed()).collect()),
        false => NumericInts::Int128(values.iter().map(|&value| unsigned(value).into()).collect()),
    };
    let range = super::numeric::bounds(&ints);
    let values = NumericValues { ints, scale: 0, display: DisplayScales::Constant(0), side: Vec::new() };
    Ok(Output { values: Values::Numeric(values), validity: None, bounds: Some(range) })
}

/// A float as the decimal of its first `digits` significant digits, trailing zeros dropped: what `%.*g`
/// prints. None past 38 digits.
fn decimal_of(value: f64, digits: usize) -> Option<(i128, u16)> {
    if value == 0.0 {
        return Some((0, 0));
    }
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let mut unscaled: i128 = mantissa.replace('.', "").parse().ok()?;
    let mut scale = i32::try_from(digits).ok()? - 1 - exponent;
    while scale > 0 && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    if scale < 0 {
        unscaled = unscaled.checked_mul(power_of_ten(scale.unsigned_abs())?)?;
        scale = 0;
    }
    let scale = u16::try_from(scale).ok().filter(|&scale| scale <= MAX_SCALE)?;
    Some((unscaled, scale))
}

fn from_floats(
    rows: usize,
    valid: Option<&Bitmap>,
    get: impl Fn(usize) -> f64,
    digits: usize,
) -> Result<Output> {
    let mut parts: Vec<(i128, u16)> = Vec::with_capacity(rows);
    let mut side = Vec::new();
    for row in 0..rows {
        let counts = valid.is_none_or(|valid| valid.get(row));
        let value = if counts { get(row) } else { 0.0 };
        if !value.is_finite() {
            let special = match value {
                f64::INFINITY => Special::Infinity,
                f64::NEG_INFINITY => Special::NegativeInfinity,
                _ => Special::Nan,
            };
            side.push((row as u32, special.bytes().into()));
            parts.push((0, 0));
            continue;
        }
        parts.push(decimal_of(value, digits).ok_or(TOO_WIDE)?);
    }
    let scale = parts.iter().map(|&(_, scale)| scale).max().unwrap_or(0);
    let mut ints = Vec::with_capacity(rows);
    for &(value, own) in &parts {
        let scaled = power_of_ten(scale - own).and_then(|power| value.checked_mul(power));
        ints.push(scaled.filter(|value| value.unsigned_abs() < LIMIT.unsigned_abs()).ok_or(TOO_WIDE)?);
    }
    let display = match parts.iter().all(|&(_, own)| own == scale) {
        true => DisplayScales::Constant(scale),
        false => DisplayScales::PerValue(parts.iter().map(|&(_, own)| own).collect()),
    };
    let ints = NumericInts::Int128(ints).narrowed();
    Ok(Values::Numeric(NumericValues { ints, scale, display, side }).into())
}

fn to_integers<T: Native + TryFrom<i128>>(
    arguments: &[Value],
    rows: usize,
    valid: Option<&Bitmap>,
    error: SqlError,
) -> Result<Output> {
    let a = Decimal::of(one(arguments)?)?;
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let value = rounded(a.get(row), a.values.scale, 0);
        values.push(match value.and_then(|value| T::try_from(value).ok()) {
            Some(value) => value,
            None if valid.is_none_or(|valid| valid.get(row)) => return Err(Error::Sql(error)),
            None => T::default(),
        });
    }
    Ok(T::values(values).into())
}

/// Powers of ten that doubles hold exactly.
const EXACT: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The nearest double to each decimal. One division of two exact doubles is rounded once; what is larger goes
/// through its digits, as in the server.
fn to_doubles(arguments: &[Value], rows: usize) -> Result<Output> {
    const MANTISSA: i128 = 1 << 53;
    let argument = one(arguments)?;
    let a = Decimal::of(argument)?;
    let power = EXACT.get(usize::from(a.values.scale));
    if let (Some(&power), true) = (power, a.low >= -MANTISSA && a.high <= MANTISSA) {
        let values = match &a.values.ints {
            NumericInts::Int32(values) => {
                zip(a.lane(values), Lane::One(power), rows, |v, power| f64::from(v) / power)
            }
            NumericInts::Int64(values) => {
                zip(a.lane(values), Lane::One(power), rows, |v: i64, power| v as f64 / power)
            }
            NumericInts::Int128(values) => {
                zip(a.lane(values), Lane::One(power), rows, |v: i128, power| v as f64 / power)
            }
        };
        return Ok(Values::Float64(values).into());
    }
    let parse = |row: usize| format!("{}e-{}", a.get(row), a.values.scale).parse::<f64>().ok();
    let values: Option<Vec<f64>> = (0..rows).map(parse).collect();
    Ok(Values::Float64(values.ok_or(WRONG_TYPE)?).into())
}

fn to_singles(arguments: &[Value], rows: usize) -> Result<Output> {
    let values = decimals(one(arguments)?)?;
    let parse = |row: usize| format!("{}e-{}", values.ints.get(row), values.scale).parse::<f32>().ok();
    let values: Option<Vec<f32>> = (0..rows).map(parse).collect();
    Ok(Values::Float32(values.ok_or(WRONG_TYPE)?).into())
}
