//! A predicate on integers (dates, timestamps, unscaled decimals, dictionary codes) as ranges of the stored
//! domain.

use std::cmp::Ordering;

use vector::{CompareOp, Error, Result, Scalar, power_of_ten};

use super::int_set::IntSet;
use crate::encoding::Leaf;

/// Which integers pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntCondition {
    /// None.
    Never,
    /// Integers in `low..=high` or, if `outside`, all others.
    Range {
        /// Smallest.
        low: i128,
        /// Largest.
        high: i128,
        /// Integers that are not between them pass.
        outside: bool,
    },
    /// The members.
    Set(IntSet),
}

impl IntCondition {
    /// Everything passes.
    pub const ALWAYS: Self = Self::Range { low: i128::MIN, high: i128::MAX, outside: false };

    /// Does this integer pass?
    #[inline]
    pub fn passes(&self, value: i128) -> bool {
        match self {
            Self::Never => false,
            Self::Range { low, high, outside } => (*low <= value && value <= *high) != *outside,
            Self::Set(set) => set.contains(value),
        }
    }

    /// The values that satisfy `op` against a number. It is `floor` or, if not `exact`, strictly between
    /// `floor` and `floor + 1`.
    fn compare(op: CompareOp, floor: i128, exact: bool) -> Self {
        let range = |low, high| Self::Range { low, high, outside: false };
        let (min, max) = (i128::MIN, i128::MAX);
        match (op, exact) {
            (CompareOp::Equal, true) => range(floor, floor),
            (CompareOp::NotEqual, true) => Self::Range { low: floor, high: floor, outside: true },
            (CompareOp::Equal, false) => Self::Never,
            (CompareOp::NotEqual, false) => Self::ALWAYS,
            (CompareOp::Less, true) => floor.checked_sub(1).map_or(Self::Never, |high| range(min, high)),
            (CompareOp::Less | CompareOp::LessOrEqual, _) => range(min, floor),
            (CompareOp::GreaterOrEqual, true) => range(floor, max),
            (CompareOp::Greater | CompareOp::GreaterOrEqual, _) => {
                floor.checked_add(1).map_or(Self::Never, |low| range(low, max))
            }
        }
    }

    fn set(mut values: Vec<i128>) -> Self {
        values.sort_unstable();
        values.dedup();
        match values.as_slice() {
            [] => Self::Never,
            [only] => Self::Range { low: *only, high: *only, outside: false },
            [first, .., last] if usize::try_from(last.wrapping_sub(*first)) == Ok(values.len() - 1) => {
                Self::Range { low: *first, high: *last, outside: false }
            }
            _ => Self::Set(IntSet::new(values)),
        }
    }
}

/// The test of an integer column that a leaf stands for.
pub fn int_condition(leaf: &Leaf<'_>) -> Result<IntCondition> {
    let int = |scalar: &Scalar| match scalar {
        Scalar::Int(value) => Ok(i128::from(*value)),
        other => Err(mismatch("integer", other)),
    };
    match leaf {
        Leaf::Compare(op, value) => Ok(IntCondition::compare(*op, int(value)?, true)),
        Leaf::In(values) => Ok(IntCondition::set(values.iter().map(int).collect::<Result<_>>()?)),
        Leaf::StartsWith(_) => Err(Error::InvalidInput("prefix of an integer".into())),
    }
}

/// The test of unscaled decimals of this scale that a leaf stands for. Decimals may be compared with
/// integers, too.
pub fn numeric_condition(leaf: &Leaf<'_>, scale: u16) -> Result<IntCondition> {
    match leaf {
        Leaf::Compare(op, value) => {
            let (unscaled, own) = decimal(value)?;
            Ok(match rescale(unscaled, own, scale) {
                Some((floor, exact)) => IntCondition::compare(*op, floor, exact),
                // The constant is beyond every value that 128-bit integers can hold, so all values are on one
                // side.
                None => match (op, unscaled > 0) {
                    (CompareOp::Equal, _) => IntCondition::Never,
                    (CompareOp::NotEqual, _) => IntCondition::ALWAYS,
                    (CompareOp::Less | CompareOp::LessOrEqual, above) => side(above),
                    (CompareOp::Greater | CompareOp::GreaterOrEqual, above) => side(!above),
                },
            })
        }
        Leaf::In(values) => {
            let mut exact = Vec::with_capacity(values.len());
            for value in *values {
                let (unscaled, own) = decimal(value)?;
                if let Some((floor, true)) = rescale(unscaled, own, scale) {
                    exact.push(floor);
                }
            }
            Ok(IntCondition::set(exact))
        }
        Leaf::StartsWith(_) => Err(Error::InvalidInput("prefix of a decimal".into())),
    }
}

const fn side(all: bool) -> IntCondition {
    if all { IntCondition::ALWAYS } else { IntCondition::Never }
}

fn decimal(scalar: &Scalar) -> Result<(i128, u16)> {
    match scalar {
        Scalar::Numeric { unscaled, scale } => Ok((*unscaled, *scale)),
        Scalar::Int(value) => Ok((i128::from(*value), 0)),
        other => Err(mismatch("decimal", other)),
    }
}

/// `unscaled` x 10^-`own` in units of 10^-`scale`: its floor, and whether that is exact. `None` if it
/// overflows upwards.
fn rescale(unscaled: i128, own: u16, scale: u16) -> Option<(i128, bool)> {
    match own.cmp(&scale) {
        Ordering::Equal => Some((unscaled, true)),
        Ordering::Less if unscaled == 0 => Some((0, true)),
        Ordering::Less => {
            let factor = power_of_ten(scale - own)?;
            Some((unscaled.checked_mul(factor)?, true))
        }
        Ordering::Greater => Some(match power_of_ten(own - scale) {
            Some(factor) => (unscaled.div_euclid(factor), unscaled.rem_euclid(factor) == 0),
            // 10^39 is more than any 128-bit integer, so the quotient is 0 or just below.
            None => (if unscaled < 0 { -1 } else { 0 }, unscaled == 0),
        }),
    }
}

fn mismatch(wanted: &str, got: &Scalar) -> Error {
    Error::InvalidInput(format!("constant {got:?} where {wanted} is compared"))
}
