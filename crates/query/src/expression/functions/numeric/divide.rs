//! Quotients and remainders of decimals, row by row: each quotient has a display scale of its own.

use vector::{Bitmap, DisplayScales, NumericInts};

use super::{Decimal, LIMIT, MAX_SCALE, TOO_WIDE, bounds, displays, finished, power_of_ten};
use crate::expression::functions::lanes::two;
use crate::expression::functions::{Output, Value};
use crate::{Error, Result, SqlError};

/// Digits the server computes of a quotient at least.
const MIN_SIGNIFICANT: i32 = 16;

/// Decimal digits in one of the server's digits.
const GROUP: i32 = 4;

/// Weight (power of 10,000) and value of the server's first digit of `value` x 10^-`scale`; zeros for zero.
fn first_group(value: u128, scale: u16) -> (i32, u128) {
    let Some(log) = value.checked_ilog10() else { return (0, 0) };
    let exponent = log.cast_signed() - i32::from(scale);
    let weight = exponent.div_euclid(GROUP);
    let shift = i32::from(scale) + GROUP * weight;
    let power = 10u128.pow(shift.unsigned_abs().min(38));
    (weight, if shift >= 0 { value / power } else { value * power })
}

/// The display scale of a quotient, as the server chooses it: 16 significant digits, and no fewer digits after the point than an operand shows.
pub(crate) fn quotient_scale(a: (u128, u16, u16), b: (u128, u16, u16)) -> u16 {
    let ((a, a_scale, a_display), (b, b_scale, b_display)) = (a, b);
    let ((a_weight, a_first), (b_weight, b_first)) = (first_group(a, a_scale), first_group(b, b_scale));
    let weight = a_weight - b_weight - i32::from(a_first <= b_first);
    let scale = u16::try_from((MIN_SIGNIFICANT - weight * GROUP).clamp(0, 1000)).unwrap_or(0);
    scale.max(a_display).max(b_display).min(1000)
}

/// `a` x 10^`up` / `b`, half away from zero; None past 38 digits.
fn rounded_quotient(a: u128, b: u128, up: i32) -> Option<u128> {
    let (quotient, rest, divisor) = if up < 0 {
        let divisor = b.checked_mul(10u128.checked_pow(up.unsigned_abs())?)?;
        (a / divisor, a % divisor, divisor)
    } else if let Some(scaled) = 10u128.checked_pow(up.unsigned_abs()).and_then(|power| a.checked_mul(power))
    {
        (scaled / b, scaled % b, b)
    } else {
        // Digit by digit, as on paper.
        let (mut quotient, mut rest) = (a / b, a % b);
        for _ in 0..up {
            rest = rest.checked_mul(10)?;
            quotient = quotient.checked_mul(10)?.checked_add(rest / b)?;
            rest %= b;
        }
        (quotient, rest, b)
    };
    let rounded = quotient + u128::from(rest >= divisor - rest);
    (rounded < LIMIT.unsigned_abs()).then_some(rounded)
}

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
        let (size_x, size_y) = (x.unsigned_abs(), y.unsigned_abs());
        *scale = quotient_scale(
            (size_x, a.values.scale, a.display(row)),
            (size_y, b.values.scale, b.display(row)),
        );
        let up = i32::from(*scale) + i32::from(b.values.scale) - i32::from(a.values.scale);
        let size = rounded_quotient(size_x, size_y, up).ok_or(TOO_WIDE)?.cast_signed();
        *quotient = if (x < 0) == (y < 0) { size } else { -size };
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
