//! Quotients and remainders of decimals, row by row: each quotient has a display scale of its own.

use vector::{Bitmap, DisplayScales, NumericInts, power_of_ten};

use super::{Decimal, LIMIT, MAX_SCALE, TOO_WIDE, bounds, displays, finished};
use crate::division::{self, division_scale};
use crate::expression::functions::lanes::two;
use crate::expression::functions::{Output, Value};
use crate::{Error, Result, SqlError};

/// a / b.
pub(super) fn divide(arguments: &[Value], rows: usize, valid: Option<&Bitmap>) -> Result<Output> {
    let (a, b) = two(arguments)?;
    let (a, b) = (Decimal::of(a)?, Decimal::of(b)?);
    let mut quotients = vec![0i128; rows];
    let mut scales = vec![u16::MAX; rows];
    for (row, (quotient, scale)) in quotients.iter_mut().zip(&mut scales).enumerate() {
        if valid.is_some_and(|valid| !valid.get(row)) {
            continue;
        }
        let (x, y) = (a.get(row), b.get(row));
        if y == 0 {
            return Err(Error::Sql(SqlError::DivisionByZero));
        }
        *scale = division_scale(
            vector::Decimal { unscaled: x, scale: a.values.scale, display: a.display(row) },
            vector::Decimal { unscaled: y, scale: b.values.scale, display: b.display(row) },
        );
        let up = i32::from(*scale) + i32::from(b.values.scale) - i32::from(a.values.scale);
        *quotient = division::divide(x, y, up)?;
        if quotient.unsigned_abs() >= LIMIT.unsigned_abs() {
            return Err(TOO_WIDE);
        }
    }
    let shown = scales.iter().copied().filter(|&scale| scale != u16::MAX);
    let (least, most) = shown.fold((u16::MAX, 0), |(least, most), scale| (least.min(scale), most.max(scale)));
    // Values stay exact at the largest scale any of them shows, where that is not too large.
    let common = most.min(MAX_SCALE);
    for (quotient, scale) in quotients.iter_mut().zip(&mut scales) {
        if *scale == u16::MAX {
            *scale = most;
        }
        *quotient = match (*quotient, common.checked_sub(*scale)) {
            (0, _) => 0,
            (_, None) => return Err(TOO_WIDE),
            (value, Some(up)) => power_of_ten(up)
                .and_then(|power| value.checked_mul(power))
                .filter(|value| value.unsigned_abs() < LIMIT.unsigned_abs())
                .ok_or(TOO_WIDE)?,
        };
    }
    let display = if least >= most { DisplayScales::Constant(most) } else { DisplayScales::PerValue(scales) };
    let ints = NumericInts::Int128(quotients).narrowed();
    let range = bounds(&ints);
    Ok(finished(ints, common, display, range, valid))
}

/// What is left of a after whole times b, with the sign of a.
pub(super) fn modulo(arguments: &[Value], rows: usize, valid: Option<&Bitmap>) -> Result<Output> {
    let (a, b) = two(arguments)?;
    let (a, b) = (Decimal::of(a)?, Decimal::of(b)?);
    let scale = a.values.scale.max(b.values.scale);
    let up = |value: i128, own: u16| power_of_ten(scale - own).and_then(|power| value.checked_mul(power));
    let mut rests = vec![0i128; rows];
    for (row, rest) in rests.iter_mut().enumerate() {
        if valid.is_some_and(|valid| !valid.get(row)) {
            continue;
        }
        let (x, y) = (a.get(row), b.get(row));
        if y == 0 {
            return Err(Error::Sql(SqlError::DivisionByZero));
        }
        *rest = up(x, a.values.scale).zip(up(y, b.values.scale)).map(|(x, y)| x % y).ok_or(TOO_WIDE)?;
    }
    let display = displays(&a, &b, rows, u16::max);
    let ints = NumericInts::Int128(rests).narrowed();
    let range = bounds(&ints);
    Ok(finished(ints, scale, display, range, valid))
}
