//! Functions of exact decimals, computed in the narrowest width that is proved to hold the result.
//!
//! Every value carries bounds of its integers. One pass over a column finds them; for results they are
//! derived. Whether a sum or product fits 32 or 64 bits is decided from the bounds once a batch, so most
//! loops need no check. Values outside 38 digits are declined, and NaN and infinities where `special` has no
//! rule for them. Invariant: integers are zero where the row is NULL.

mod compare;
mod divide;
mod linear;
mod round;
mod special;

use std::borrow::Cow;

use vector::{Bitmap, DisplayScales, NumericInts, NumericValues, Values};

pub(super) use compare::compare;
pub(super) use round::{Towards, compile as compile_round, rounded};
pub(super) use special::around;

use super::lanes::decimals;
use super::{Output, Picked, Value};
use crate::expression::Function;
use crate::kernels::Lane;
use crate::kernels::arithmetic::{extremes, map};
use crate::{Error, Result};

/// Magnitudes stay below 10^38.
pub(super) const LIMIT: i128 = 10i128.pow(38);

/// The largest scale of a vector.
pub(super) const MAX_SCALE: u16 = 38;

/// More digits than 38 are needed.
pub(super) const TOO_WIDE: Error = Error::Decline("numeric of more than 38 digits");

/// A function of two decimals.
pub(super) fn binary(function: Function) -> Option<Picked> {
    Some(match function {
        Function::Add => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| linear::add(a, rows, valid, false)), 1)
        }
        Function::Subtract => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| linear::add(a, rows, valid, true)), 1)
        }
        Function::Multiply => (Box::new(linear::multiply), 2),
        Function::Divide => (Box::new(divide::divide), 60),
        Function::Modulo => (Box::new(divide::modulo), 30),
        _ => return None,
    })
}

/// A function of one decimal.
pub(super) fn unary(function: Function) -> Option<Picked> {
    Some(match function {
        Function::Negate => (Box::new(|a: &[Value], rows, _: Option<&Bitmap>| linear::negate(a, rows)), 1),
        Function::Absolute => {
            (Box::new(|a: &[Value], rows, _: Option<&Bitmap>| linear::absolute(a, rows)), 1)
        }
        _ => return None,
    })
}

/// An argument and what is known of it.
pub(super) struct Decimal<'a> {
    pub values: &'a NumericValues,
    /// One value for all rows.
    pub one: bool,
    /// No integer lies outside.
    pub low: i128,
    pub high: i128,
}

impl<'a> Decimal<'a> {
    pub fn of(argument: &'a Value) -> Result<Self> {
        let values = decimals(argument)?;
        let (low, high) = argument.bounds.unwrap_or_else(|| bounds(&values.ints));
        Ok(Self { values, one: argument.constant().is_some(), low, high })
    }

    /// The integer of a row.
    #[inline]
    pub fn get(&self, row: usize) -> i128 {
        self.values.ints.get(if self.one { 0 } else { row })
    }

    /// The display scale of a row.
    #[inline]
    pub fn display(&self, row: usize) -> u16 {
        self.values.display.get(if self.one { 0 } else { row })
    }

    /// The one display scale of all rows.
    pub fn constant_display(&self) -> Option<u16> {
        match &self.values.display {
            DisplayScales::Constant(display) => Some(*display),
            DisplayScales::PerValue(displays) => displays.first().copied().filter(|_| self.one),
        }
    }

    /// As a lane of the slice's type.
    pub fn lane<'s, T: Copy + Default>(&self, slice: &'s [T]) -> Lane<'s, T> {
        if self.one { Lane::One(slice.first().copied().unwrap_or_default()) } else { Lane::Many(slice) }
    }

    /// Its integers in 128 bits.
    pub fn wide(&self) -> Cow<'a, [i128]> {
        match &self.values.ints {
            NumericInts::Int32(values) => Cow::Owned(map(values, i128::from)),
            NumericInts::Int64(values) => Cow::Owned(map(values, i128::from)),
            NumericInts::Int128(values) => Cow::Borrowed(values),
        }
    }
}

/// Least and greatest integer (zero for none).
pub(super) fn bounds(ints: &NumericInts) -> (i128, i128) {
    let found = match ints {
        NumericInts::Int32(values) => extremes(values).map(|(low, high)| (i128::from(low), i128::from(high))),
        NumericInts::Int64(values) => extremes(values).map(|(low, high)| (i128::from(low), i128::from(high))),
        NumericInts::Int128(values) => extremes(values),
    };
    found.unwrap_or((0, 0))
}

/// A width that integers are computed in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    W32,
    W64,
    W128,
}

impl Width {
    /// The narrowest that holds these bounds; None past 38 digits.
    pub fn holding(low: i128, high: i128) -> Option<Self> {
        let within = |min: i128, max: i128| low >= min && high <= max;
        if within(i128::from(i32::MIN), i128::from(i32::MAX)) {
            Some(Self::W32)
        } else if within(i128::from(i64::MIN), i128::from(i64::MAX)) {
            Some(Self::W64)
        } else if within(1 - LIMIT, LIMIT - 1) {
            Some(Self::W128)
        } else {
            None
        }
    }

    /// That of these integers.
    pub const fn of(ints: &NumericInts) -> Self {
        match ints {
            NumericInts::Int32(_) => Self::W32,
            NumericInts::Int64(_) => Self::W64,
            NumericInts::Int128(_) => Self::W128,
        }
    }
}

/// The display scales of a result, made of those of two arguments.
pub(super) fn displays(
    a: &Decimal<'_>,
    b: &Decimal<'_>,
    rows: usize,
    f: impl Fn(u16, u16) -> u16,
) -> DisplayScales {
    match (a.constant_display(), b.constant_display()) {
        (Some(a), Some(b)) => DisplayScales::Constant(f(a, b)),
        _ => DisplayScales::PerValue((0..rows).map(|row| f(a.display(row), b.display(row))).collect()),
    }
}

/// The finished result: integers of NULL rows are zeroed.
pub(super) fn finished(
    mut ints: NumericInts,
    scale: u16,
    display: DisplayScales,
    bounds: (i128, i128),
    valid: Option<&Bitmap>,
) -> Output {
    if let Some(valid) = valid {
        match &mut ints {
            NumericInts::Int32(values) => clear(values, valid),
            NumericInts::Int64(values) => clear(values, valid),
            NumericInts::Int128(values) => clear(values, valid),
        }
    }
    // The zeros of NULL rows count as values.
    let bounds = (bounds.0.min(0), bounds.1.max(0));
    let values = Values::Numeric(NumericValues { ints, scale, display, side: Vec::new() });
    Output { values, validity: None, bounds: Some(bounds) }
}

fn clear<T: Default>(values: &mut [T], valid: &Bitmap) {
    for (chunk, &word) in values.chunks_mut(64).zip(valid.words()) {
        if word != u64::MAX {
            for (bit, value) in chunk.iter_mut().enumerate() {
                if (word >> bit) & 1 == 0 {
                    *value = T::default();
                }
            }
        }
    }
}
