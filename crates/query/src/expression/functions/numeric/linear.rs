//! Sums, differences, products and signs of decimals.

use vector::{Bitmap, NumericInts, power_of_ten};

use super::{Decimal, LIMIT, MAX_SCALE, TOO_WIDE, Width, displays, finished};
use crate::Result;
use crate::expression::functions::lanes::{any_fails, one, two};
use crate::expression::functions::{Output, Value};
use crate::kernels::Lane;
use crate::kernels::arithmetic::{map, zip};

/// a + b, or a - b.
pub(super) fn add(
    arguments: &[Value],
    rows: usize,
    valid: Option<&Bitmap>,
    subtract: bool,
) -> Result<Output> {
    let (a, b) = two(arguments)?;
    let (a, b) = (Decimal::of(a)?, Decimal::of(b)?);
    let scale = a.values.scale.max(b.values.scale);
    let display = displays(&a, &b, rows, u16::max);
    let factors = power_of_ten(scale - a.values.scale).zip(power_of_ten(scale - b.values.scale));
    let sign = if subtract { -1 } else { 1 };
    // Bounds of both terms and of their sum; None where 128 bits cannot be proved to hold them.
    let proved = factors.and_then(|(fa, fb)| {
        let fb = fb * sign;
        let (a_low, a_high) = (a.low.checked_mul(fa)?, a.high.checked_mul(fa)?);
        let (b_one, b_two) = (b.low.checked_mul(fb)?, b.high.checked_mul(fb)?);
        let (b_low, b_high) = (b_one.min(b_two), b_one.max(b_two));
        let (low, high) = (a_low.checked_add(b_low)?, a_high.checked_add(b_high)?);
        let width = Width::holding(low.min(a_low).min(b_low), high.max(a_high).max(b_high))?;
        let factors = Width::holding(fb.min(0), fa.max(fb))?;
        let lanes = Width::of(&a.values.ints).max(Width::of(&b.values.ints));
        Some((fa, fb, low, high, width.max(factors).max(lanes)))
    });
    let Some((fa, fb, low, high, width)) = proved else {
        let (fa, fb) = factors.ok_or(TOO_WIDE)?;
        let sum = |row: usize| {
            let (a, b) = (a.get(row).checked_mul(fa)?, b.get(row).checked_mul(fb * sign)?);
            a.checked_add(b).filter(|sum| sum.unsigned_abs() < LIMIT.unsigned_abs())
        };
        return checked(rows, valid, sum, scale, display);
    };
    let ints = match (width, &a.values.ints, &b.values.ints) {
        (Width::W32, NumericInts::Int32(x), NumericInts::Int32(y)) => {
            NumericInts::Int32(sums32(a.lane(x), b.lane(y), rows, fa as i32, fb as i32))
        }
        (Width::W64, NumericInts::Int32(x), NumericInts::Int32(y)) => {
            NumericInts::Int64(sums64(a.lane(x), b.lane(y), rows, fa as i64, fb as i64))
        }
        (Width::W64, NumericInts::Int32(x), NumericInts::Int64(y)) => {
            NumericInts::Int64(sums64(a.lane(x), b.lane(y), rows, fa as i64, fb as i64))
        }
        (Width::W64, NumericInts::Int64(x), NumericInts::Int32(y)) => {
            NumericInts::Int64(sums64(a.lane(x), b.lane(y), rows, fa as i64, fb as i64))
        }
        (Width::W64, NumericInts::Int64(x), NumericInts::Int64(y)) => {
            NumericInts::Int64(sums64(a.lane(x), b.lane(y), rows, fa as i64, fb as i64))
        }
        _ => {
            let (x, y) = (a.wide(), b.wide());
            NumericInts::Int128(zip(a.lane(&x), b.lane(&y), rows, |a, b| a * fa + b * fb))
        }
    };
    Ok(finished(ints, scale, display, (low, high), valid))
}

/// a x fa + b x fb, where all of it fits; one factor at least is 1 or -1, which is worth loops of its own.
fn sums32(a: Lane<'_, i32>, b: Lane<'_, i32>, rows: usize, fa: i32, fb: i32) -> Vec<i32> {
    match (fa, fb) {
        (1, 1) => zip(a, b, rows, |a, b| a.wrapping_add(b)),
        (1, -1) => zip(a, b, rows, |a, b| a.wrapping_sub(b)),
        _ => zip(a, b, rows, |a, b| a.wrapping_mul(fa).wrapping_add(b.wrapping_mul(fb))),
    }
}

fn sums64<A: Copy + Into<i64>, B: Copy + Into<i64>>(
    a: Lane<'_, A>,
    b: Lane<'_, B>,
    rows: usize,
    fa: i64,
    fb: i64,
) -> Vec<i64> {
    match (fa, fb) {
        (1, 1) => zip(a, b, rows, |a, b| a.into().wrapping_add(b.into())),
        (1, -1) => zip(a, b, rows, |a, b| a.into().wrapping_sub(b.into())),
        (1, _) => zip(a, b, rows, |a, b| a.into().wrapping_add(b.into().wrapping_mul(fb))),
        (_, 1) => zip(a, b, rows, |a, b| a.into().wrapping_mul(fa).wrapping_add(b.into())),
        (_, -1) => zip(a, b, rows, |a, b| a.into().wrapping_mul(fa).wrapping_sub(b.into())),
        _ => zip(a, b, rows, |a, b| a.into().wrapping_mul(fa).wrapping_add(b.into().wrapping_mul(fb))),
    }
}

/// a x b.
pub(super) fn multiply(arguments: &[Value], rows: usize, valid: Option<&Bitmap>) -> Result<Output> {
    let (a, b) = two(arguments)?;
    let (a, b) = (Decimal::of(a)?, Decimal::of(b)?);
    let scale = a.values.scale + b.values.scale;
    if scale > MAX_SCALE {
        return Err(TOO_WIDE);
    }
    let display = displays(&a, &b, rows, |a, b| a.saturating_add(b));
    let proved = || {
        let corners = [(a.low, b.low), (a.low, b.high), (a.high, b.low), (a.high, b.high)];
        let (mut low, mut high) = (i128::MAX, i128::MIN);
        for (a, b) in corners {
            let product = a.checked_mul(b)?;
            (low, high) = (low.min(product), high.max(product));
        }
        let lanes = Width::of(&a.values.ints).max(Width::of(&b.values.ints));
        Some((low, high, Width::holding(low, high)?.max(lanes)))
    };
    let Some((low, high, width)) = proved() else {
        let product = |row: usize| {
            let product = a.get(row).checked_mul(b.get(row));
            product.filter(|product| product.unsigned_abs() < LIMIT.unsigned_abs())
        };
        return checked(rows, valid, product, scale, display);
    };
    let ints = match (width, &a.values.ints, &b.values.ints) {
        (Width::W32, NumericInts::Int32(x), NumericInts::Int32(y)) => {
            NumericInts::Int32(zip(a.lane(x), b.lane(y), rows, |a: i32, b: i32| a.wrapping_mul(b)))
        }
        (Width::W64, NumericInts::Int32(x), NumericInts::Int32(y)) => {
            NumericInts::Int64(products64(a.lane(x), b.lane(y), rows))
        }
        (Width::W64, NumericInts::Int32(x), NumericInts::Int64(y)) => {
            NumericInts::Int64(products64(a.lane(x), b.lane(y), rows))
        }
        (Width::W64, NumericInts::Int64(x), NumericInts::Int32(y)) => {
            NumericInts::Int64(products64(a.lane(x), b.lane(y), rows))
        }
        (Width::W64, NumericInts::Int64(x), NumericInts::Int64(y)) => {
            NumericInts::Int64(products64(a.lane(x), b.lane(y), rows))
        }
        _ => {
            let (x, y) = (a.wide(), b.wide());
            NumericInts::Int128(zip(a.lane(&x), b.lane(&y), rows, |a: i128, b: i128| a.wrapping_mul(b)))
        }
    };
    Ok(finished(ints, scale, display, (low, high), valid))
}

fn products64<A: Copy + Into<i64>, B: Copy + Into<i64>>(
    a: Lane<'_, A>,
    b: Lane<'_, B>,
    rows: usize,
) -> Vec<i64> {
    zip(a, b, rows, |a, b| a.into().wrapping_mul(b.into()))
}

/// Row by row in 128 bits; a row that counts and does not fit ends it.
fn checked(
    rows: usize,
    valid: Option<&Bitmap>,
    f: impl Fn(usize) -> Option<i128>,
    scale: u16,
    display: vector::DisplayScales,
) -> Result<Output> {
    let ints: Vec<Option<i128>> = (0..rows).map(f).collect();
    if any_fails(rows, valid, |row| ints.get(row).is_none_or(Option::is_none)) {
        return Err(TOO_WIDE);
    }
    let ints = NumericInts::Int128(ints.into_iter().map(Option::unwrap_or_default).collect()).narrowed();
    let bounds = super::bounds(&ints);
    Ok(finished(ints, scale, display, bounds, valid))
}

/// -a.
pub(super) fn negate(arguments: &[Value], _rows: usize) -> Result<Output> {
    let a = Decimal::of(one(arguments)?)?;
    signed(&a, |a| -a, |a| a.checked_neg(), |a| a.checked_neg(), (-a.high, -a.low))
}

/// |a|.
pub(super) fn absolute(arguments: &[Value], _rows: usize) -> Result<Output> {
    let a = Decimal::of(one(arguments)?)?;
    let high = a.low.abs().max(a.high.abs());
    signed(&a, |a| a.abs(), |a| a.checked_abs(), |a| a.checked_abs(), (0, high))
}

/// The same with other signs; the least value of a width, which has no opposite there, widens it.
fn signed(
    a: &Decimal<'_>,
    wide: impl Fn(i128) -> i128,
    narrow32: impl Fn(i32) -> Option<i32>,
    narrow64: impl Fn(i64) -> Option<i64>,
    bounds: (i128, i128),
) -> Result<Output> {
    let ints = match &a.values.ints {
        NumericInts::Int32(values) if a.low > i128::from(i32::MIN) => {
            NumericInts::Int32(map(values, |value| narrow32(value).unwrap_or_default()))
        }
        NumericInts::Int64(values) if a.low > i128::from(i64::MIN) => {
            NumericInts::Int64(map(values, |value| narrow64(value).unwrap_or_default()))
        }
        _ => NumericInts::Int128(map(&a.wide(), wide)),
    };
    Ok(finished(ints, a.values.scale, a.values.display.clone(), bounds, None))
}
