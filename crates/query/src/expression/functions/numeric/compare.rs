//! Comparing decimals: by value, whatever their scales.

use vector::{CompareOp, NumericInts, compare_decimals, power_of_ten};

use super::{Decimal, Width};
use crate::Result;
use crate::expression::functions::Value;
use crate::expression::functions::compare::{by_row, holds, integers};
use crate::kernels::Lane;
use crate::kernels::compare::test;

/// A bit for each row.
pub(in crate::expression::functions) fn compare(
    op: CompareOp,
    a: &Value,
    b: &Value,
    rows: usize,
) -> Result<Vec<u64>> {
    let (a, b) = (Decimal::of(a)?, Decimal::of(b)?);
    if b.one && !a.one {
        return Ok(with_constant(op, &a, &b, rows));
    }
    if a.one && !b.one {
        return Ok(with_constant(turned(op), &b, &a, rows));
    }
    if a.values.scale == b.values.scale {
        match (&a.values.ints, &b.values.ints) {
            (NumericInts::Int32(x), NumericInts::Int32(y)) => {
                return integers(op, a.lane(x), b.lane(y), rows);
            }
            (NumericInts::Int64(x), NumericInts::Int64(y)) => {
                return integers(op, a.lane(x), b.lane(y), rows);
            }
            _ => {}
        }
    }
    let scale = a.values.scale.max(b.values.scale);
    let factors = power_of_ten(scale - a.values.scale).zip(power_of_ten(scale - b.values.scale));
    let fits = |low: i128, high: i128, factor: i128| {
        let (low, high) = (low.checked_mul(factor)?, high.checked_mul(factor)?);
        Width::holding(low, high).filter(|&width| width <= Width::W64).zip(i64::try_from(factor).ok())
    };
    let fit = factors.and_then(|(fa, fb)| fits(a.low, a.high, fa).zip(fits(b.low, b.high, fb)));
    if let Some(((_, fa), (_, fb))) = fit {
        match (&a.values.ints, &b.values.ints) {
            (NumericInts::Int32(x), NumericInts::Int32(y)) => {
                return Ok(scaled(op, a.lane(x), b.lane(y), rows, fa, fb));
            }
            (NumericInts::Int32(x), NumericInts::Int64(y)) => {
                return Ok(scaled(op, a.lane(x), b.lane(y), rows, fa, fb));
            }
            (NumericInts::Int64(x), NumericInts::Int32(y)) => {
                return Ok(scaled(op, a.lane(x), b.lane(y), rows, fa, fb));
            }
            (NumericInts::Int64(x), NumericInts::Int64(y)) => {
                return Ok(scaled(op, a.lane(x), b.lane(y), rows, fa, fb));
            }
            _ => {}
        }
    }
    Ok(by_row(rows, |row| {
        holds(op, compare_decimals(a.get(row), a.values.scale, b.get(row), b.values.scale))
    }))
}

fn scaled<A: Copy + Into<i64>, B: Copy + Into<i64>>(
    op: CompareOp,
    a: Lane<'_, A>,
    b: Lane<'_, B>,
    rows: usize,
    fa: i64,
    fb: i64,
) -> Vec<u64> {
    let (a_of, b_of) = (|a: A| a.into().wrapping_mul(fa), |b: B| b.into().wrapping_mul(fb));
    match op {
        CompareOp::Equal => test(a, b, rows, |a, b| a_of(a) == b_of(b)),
        CompareOp::NotEqual => test(a, b, rows, |a, b| a_of(a) != b_of(b)),
        CompareOp::Less => test(a, b, rows, |a, b| a_of(a) < b_of(b)),
        CompareOp::LessOrEqual => test(a, b, rows, |a, b| a_of(a) <= b_of(b)),
        CompareOp::Greater => test(a, b, rows, |a, b| a_of(a) > b_of(b)),
        CompareOp::GreaterOrEqual => test(a, b, rows, |a, b| a_of(a) >= b_of(b)),
    }
}

/// The operator with its operands exchanged.
const fn turned(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessOrEqual => CompareOp::GreaterOrEqual,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterOrEqual => CompareOp::LessOrEqual,
        same => same,
    }
}

/// Comparison with a constant: the constant is brought to the column's scale once, so that the column's
/// integers are compared as they are.
fn with_constant(op: CompareOp, a: &Decimal<'_>, constant: &Decimal<'_>, rows: usize) -> Vec<u64> {
    let value = constant.get(0);
    // The greatest integer at the column's scale that is not above the constant, and whether it equals it.
    let (floor, exact) = match a.values.scale.checked_sub(constant.values.scale) {
        Some(up) => {
            let scaled = power_of_ten(up).and_then(|power| value.checked_mul(power));
            // Past 128 bits it is past every value.
            (scaled.unwrap_or(if value < 0 { i128::MIN } else { i128::MAX }), value == 0 || scaled.is_some())
        }
        None => match power_of_ten(constant.values.scale - a.values.scale) {
            Some(power) => (value.div_euclid(power), value.rem_euclid(power) == 0),
            None => (if value < 0 { -1 } else { 0 }, value == 0),
        },
    };
    let all = |verdict: bool| vec![if verdict { u64::MAX } else { 0 }; rows.div_ceil(64)];
    let op = match (op, exact) {
        (CompareOp::Equal, false) => return all(false),
        (CompareOp::NotEqual, false) => return all(true),
        (CompareOp::Less | CompareOp::LessOrEqual, false) => CompareOp::LessOrEqual,
        (CompareOp::Greater | CompareOp::GreaterOrEqual, false) => CompareOp::Greater,
        (op, true) => op,
    };
    let outside = |low: i128, high: i128| (floor < low).then_some(-1).or((floor > high).then_some(1));
    let beyond = match &a.values.ints {
        NumericInts::Int32(_) => outside(i128::from(i32::MIN), i128::from(i32::MAX)),
        NumericInts::Int64(_) => outside(i128::from(i64::MIN), i128::from(i64::MAX)),
        NumericInts::Int128(_) => None,
    };
    if let Some(side) = beyond {
        return all(holds(op, 0.cmp(&side)));
    }
    let verdicts = match &a.values.ints {
        NumericInts::Int32(x) => integers(op, a.lane(x), Lane::One(floor as i32), rows),
        NumericInts::Int64(x) => integers(op, a.lane(x), Lane::One(floor as i64), rows),
        NumericInts::Int128(x) => integers(op, a.lane(x), Lane::One(floor), rows),
    };
    verdicts.unwrap_or_default()
}
