//! The types' own order of single values, for statistics, pruning and filters. It is in one place, so that a
//! bound of the stripe writer and a comparison of a filter never disagree.

use std::cmp::Ordering;

use crate::{Scalar, power_of_ten};

impl Scalar {
    /// Compares two values of one column in the order of `LogicalType`'s table: floats with -0 = 0 and NaN
    /// above everything, decimals by value whatever their scales, bytes bytewise. Integers may be compared
    /// with decimals. `None` if one is NULL or the kinds differ.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => Some(compare_floats(*a, *b)),
            (
                Self::Numeric { unscaled: a, scale: a_scale },
                Self::Numeric { unscaled: b, scale: b_scale },
            ) => Some(compare_decimals(*a, *a_scale, *b, *b_scale)),
            (Self::Numeric { unscaled, scale }, Self::Int(b)) => {
                Some(compare_decimals(*unscaled, *scale, i128::from(*b), 0))
            }
            (Self::Int(a), Self::Numeric { unscaled, scale }) => {
                Some(compare_decimals(i128::from(*a), 0, *unscaled, *scale))
            }
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// -0 equals 0, NaN equals NaN and is above everything else.
#[inline]
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Compares `a` x 10^-`a_scale` with `b` x 10^-`b_scale` exactly.
pub fn compare_decimals(a: i128, a_scale: u16, b: i128, b_scale: u16) -> Ordering {
    match a_scale.cmp(&b_scale) {
        Ordering::Equal => a.cmp(&b),
        Ordering::Less => compare_scaled_up(a, b_scale - a_scale, b),
        Ordering::Greater => compare_scaled_up(b, a_scale - b_scale, a).reverse(),
    }
}

/// Compares `a` x 10^`up` with `b`. A product that overflows is farther from zero than any 128-bit integer.
fn compare_scaled_up(a: i128, up: u16, b: i128) -> Ordering {
    if a == 0 {
        return 0.cmp(&b);
    }
    match power_of_ten(up).and_then(|factor| a.checked_mul(factor)) {
        Some(scaled) => scaled.cmp(&b),
        None if a > 0 => Ordering::Greater,
        None => Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_one_zero_and_nan_on_top() {
        assert_eq!(compare_floats(-0.0, 0.0), Ordering::Equal);
        assert_eq!(compare_floats(f64::NAN, f64::INFINITY), Ordering::Greater);
        assert_eq!(compare_floats(f64::NEG_INFINITY, f64::NAN), Ordering::Less);
        assert_eq!(compare_floats(f64::NAN, -f64::NAN), Ordering::Equal);
        assert_eq!(compare_floats(1.0, 2.0), Ordering::Less);
    }

    #[test]
    fn decimals_compare_by_value() {
        assert_eq!(compare_decimals(10, 1, 100, 2), Ordering::Equal);
        assert_eq!(compare_decimals(-11, 1, -1, 0), Ordering::Less);
        assert_eq!(compare_decimals(i128::MAX, 0, i128::MAX, 38), Ordering::Greater);
        assert_eq!(compare_decimals(i128::MIN, 0, i128::MIN, 38), Ordering::Less);
        assert_eq!(compare_decimals(1, 0, i128::MAX, u16::MAX), Ordering::Greater);
        assert_eq!(compare_decimals(0, 0, 0, 400), Ordering::Equal);
        assert_eq!(compare_decimals(0, 0, -1, 400), Ordering::Greater);
    }

    #[test]
    fn kinds_do_not_mix() {
        assert_eq!(Scalar::Int(1).compare(&Scalar::Float(1.0)), None);
        let decimal = Scalar::Numeric { unscaled: 15, scale: 1 };
        assert_eq!(decimal.compare(&Scalar::Int(2)), Some(Ordering::Less));
        assert_eq!(Scalar::Int(2).compare(&decimal), Some(Ordering::Greater));
        assert_eq!(Scalar::Null.compare(&Scalar::Null), None);
    }
}
