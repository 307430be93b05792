//! Decimals with fewer (or more) digits after the point.

use vector::{Bitmap, DisplayScales, NumericInts, power_of_ten};

use super::{Decimal, LIMIT, MAX_SCALE, TOO_WIDE, Width, bounds, finished};
use crate::Result;
use crate::expression::functions::{Output, Picked, Value};
use crate::kernels::arithmetic::{map, zip};

/// Which of two neighbours a value goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::expression::functions) enum Towards {
    /// The nearer one, the one farther from zero of two.
    Nearest,
    Zero,
    Above,
    Below,
}

/// `value` x 10^-`scale` at scale `to`, half away from zero; None past 128 bits.
pub(in crate::expression::functions) fn rounded(value: i128, scale: u16, to: u16) -> Option<i128> {
    at_scale(value, scale, to, Towards::Nearest)
}

fn at_scale(value: i128, scale: u16, to: u16, towards: Towards) -> Option<i128> {
    let Some(drop) = scale.checked_sub(to) else {
        return power_of_ten(to - scale).and_then(|power| value.checked_mul(power));
    };
    // Past 38 digits nothing is left but the sign.
    let Some(power) = power_of_ten(drop) else {
        return Some(match towards {
            Towards::Above if value > 0 => 1,
            Towards::Below if value < 0 => -1,
            _ => 0,
        });
    };
    let (whole, rest) = (value / power, value % power);
    Some(match towards {
        Towards::Zero => whole,
        Towards::Nearest => whole + if rest.abs() >= power - rest.abs() { rest.signum() } else { 0 },
        Towards::Above => whole + i128::from(rest > 0),
        Towards::Below => whole - i128::from(rest < 0),
    })
}

/// Rounds to `digits` after the point (negative: before it) and shows as many. Values of more than
/// `precision` digits are declined.
pub(in crate::expression::functions) fn compile(
    towards: Towards,
    digits: i32,
    precision: Option<u16>,
) -> Option<Picked> {
    let shown = u16::try_from(digits.max(0)).ok().filter(|&shown| shown <= MAX_SCALE)?;
    let limit = match precision {
        Some(precision) => power_of_ten(precision)?,
        None => LIMIT,
    };
    Some((
        Box::new(move |arguments: &[Value], rows: usize, valid: Option<&Bitmap>| {
            let a = Decimal::of(arguments.first().ok_or(TOO_WIDE)?)?;
            if digits < 0 {
                return before_point(&a, rows, valid, towards, digits.unsigned_abs());
            }
            let scale = a.values.scale;
            let display = DisplayScales::Constant(shown);
            if scale <= shown {
                // Nothing is dropped.
                let up = power_of_ten(shown - scale).ok_or(TOO_WIDE)?;
                let low = a.low.checked_mul(up).filter(|low| -limit < *low);
                let high = a.high.checked_mul(up).filter(|high| *high < limit);
                if low.is_some() && high.is_some() {
                    return Ok(finished(a.values.ints.clone(), scale, display, (a.low, a.high), valid));
                }
            }
            if let (Some(drop), Some(width)) = (scale.checked_sub(shown), Width::holding(a.low, a.high))
                && width <= Width::W64
                && towards == Towards::Nearest
                && drop <= 18
                && a.low.abs().max(a.high.abs()) < limit
            {
                let power = 10i64.pow(u32::from(drop));
                let nearest = move |value: i64| {
                    let (whole, rest) = (value / power, value % power);
                    whole + if rest.abs() >= power - rest.abs() { rest.signum() } else { 0 }
                };
                let ints = match &a.values.ints {
                    NumericInts::Int32(values) => map(values, |value| nearest(value.into())),
                    NumericInts::Int64(values) => map(values, nearest),
                    NumericInts::Int128(values) => map(values, |value| nearest(value as i64)),
                };
                let ints = NumericInts::Int64(ints);
                let range = bounds(&ints);
                if range.0 > -limit && range.1 < limit {
                    return Ok(finished(ints, shown, display, range, valid));
                }
            }
            let mut ints = vec![0i128; rows];
            for (row, value) in ints.iter_mut().enumerate() {
                if valid.is_none_or(|valid| valid.get(row)) {
                    *value = at_scale(a.get(row), scale, shown, towards)
                        .filter(|value| value.unsigned_abs() < limit.unsigned_abs())
                        .ok_or(TOO_WIDE)?;
                }
            }
            let ints = NumericInts::Int128(ints).narrowed();
            let range = bounds(&ints);
            Ok(finished(ints, shown, display, range, valid))
        }),
        4,
    ))
}

fn before_point(
    a: &Decimal<'_>,
    rows: usize,
    valid: Option<&Bitmap>,
    towards: Towards,
    digits: u32,
) -> Result<Output> {
    let power = u16::try_from(digits).ok().and_then(power_of_ten);
    let scale = u32::from(a.values.scale).saturating_add(digits);
    let round = |value: i128| {
        let whole =
            u16::try_from(scale).ok().and_then(|scale| at_scale(value, scale, 0, towards)).unwrap_or(0);
        if whole == 0 { Some(0) } else { power.and_then(|power| whole.checked_mul(power)) }
    };
    let rounded =
        zip(crate::kernels::Lane::Many(&a.wide()), crate::kernels::Lane::One(()), rows, |value, ()| {
            round(value)
        });
    let mut ints = Vec::with_capacity(rows);
    for (row, value) in rounded.into_iter().enumerate() {
        let value = if valid.is_none_or(|valid| valid.get(row)) { value } else { Some(0) };
        ints.push(value.filter(|value| value.unsigned_abs() < LIMIT.unsigned_abs()).ok_or(TOO_WIDE)?);
    }
    let ints = NumericInts::Int128(ints).narrowed();
    let range = bounds(&ints);
    Ok(finished(ints, 0, DisplayScales::Constant(0), range, valid))
}
