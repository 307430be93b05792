//! Numeric results of aggregates: square roots as the server computes them, values that are no numbers, and
//! vectors of decimals of differing scales.

use vector::{
    Bitmap, Decimal, DisplayScales, LogicalType, NumericInts, NumericValues, Special, Values, Vector,
};

use crate::{Error, Result};

const WIDE: Error = Error::Decline("numeric outside 128 bits");

/// Ten to this power.
pub fn power_of_ten(exponent: u32) -> Result<i128> {
    vector::power_of_ten(exponent).ok_or(WIDE)
}

/// The square root of `value` x 10^-`scale` at that scale, rounded half up. It is computed digit by digit, as
/// on paper, so that no number is much wider than the root.
pub fn square_root(value: i128, scale: u16) -> Result<i128> {
    // The root at `scale` digits is that of value x 10^scale as an integer; one digit more decides the
    // rounding.
    let mut digits: Vec<u8> = value.unsigned_abs().to_string().bytes().map(|digit| digit - b'0').collect();
    digits.resize(digits.len() + usize::from(scale) + 2, 0);
    let odd = digits.len() % 2;
    let (first, pairs) = digits.split_at(odd);
    let (mut root, mut rest) = (0u128, 0u128);
    let first = first.iter().map(|&digit| u128::from(digit));
    let pairs =
        pairs.chunks(2).map(|pair| pair.iter().fold(0, |value, &digit| value * 10 + u128::from(digit)));
    for pair in first.chain(pairs) {
        rest = rest.checked_mul(100).and_then(|rest| rest.checked_add(pair)).ok_or(WIDE)?;
        let twenty = root.checked_mul(20).ok_or(WIDE)?;
        let digit = (0..=9u128).rev().find(|digit| (twenty + digit) * digit <= rest).unwrap_or(0);
        rest -= (twenty + digit) * digit;
        root = root * 10 + digit;
    }
    i128::try_from(root / 10 + u128::from(root % 10 >= 5)).map_err(|_| WIDE)
}

/// A vector of decimals, NULL where None, at the greatest scale among them.
pub fn decimals(values: &[Option<Decimal>]) -> Result<Vector> {
    let scale = values.iter().flatten().map(|value| value.scale).max().unwrap_or(0);
    let shown = values.iter().flatten().map(|value| value.display).next().unwrap_or(0);
    let mut ints = Vec::with_capacity(values.len());
    for value in values {
        ints.push(match value {
            None => 0,
            Some(value) => {
                let factor = u32::from(scale - value.scale);
                match factor {
                    0 => value.unscaled,
                    _ => value.unscaled.checked_mul(power_of_ten(factor)?).ok_or(WIDE)?,
                }
            }
        });
    }
    let display = if values.iter().flatten().all(|value| value.display == shown) {
        DisplayScales::Constant(shown)
    } else {
        DisplayScales::PerValue(values.iter().map(|value| value.map_or(shown, |v| v.display)).collect())
    };
    let numeric =
        NumericValues { ints: NumericInts::Int128(ints).narrowed(), scale, display, side: Vec::new() };
    Ok(with_nulls(LogicalType::Numeric, Values::Numeric(numeric), values.iter().map(Option::is_some)))
}

/// Which values a group has met that are no numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Specials(u8);

impl Specials {
    const NAN: u8 = 1;
    const INFINITY: u8 = 2;
    const NEGATIVE: u8 = 4;

    /// One more.
    pub const fn meet(&mut self, special: Special) {
        self.0 |= match special {
            Special::Nan => Self::NAN,
            Special::Infinity => Self::INFINITY,
            Special::NegativeInfinity => Self::NEGATIVE,
        };
    }

    /// Those of another state of the group, too.
    pub const fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Their sum, and average; None where there is none.
    pub const fn sum(self) -> Option<Special> {
        match self.0 {
            0 => None,
            Self::INFINITY => Some(Special::Infinity),
            Self::NEGATIVE => Some(Special::NegativeInfinity),
            _ => Some(Special::Nan),
        }
    }

    /// The greatest or least value of a group, if it is no number. `numbers` says whether the group has
    /// numbers, too.
    pub fn extreme(self, greatest: bool, numbers: bool) -> Option<Special> {
        let has = |bit| self.0 & bit != 0;
        match greatest {
            true if has(Self::NAN) => Some(Special::Nan),
            true if has(Self::INFINITY) => Some(Special::Infinity),
            false if has(Self::NEGATIVE) => Some(Special::NegativeInfinity),
            _ if numbers => None,
            true if has(Self::NEGATIVE) => Some(Special::NegativeInfinity),
            false if has(Self::INFINITY) => Some(Special::Infinity),
            false if has(Self::NAN) => Some(Special::Nan),
            _ => None,
        }
    }
}

/// The rows that are numbers: neither NULL nor one of these.
pub fn without(validity: Option<&Bitmap>, specials: &[(u32, Special)], rows: usize) -> Bitmap {
    let mut rest = specials.iter().map(|(row, _)| *row as usize).peekable();
    let mut is_number = |row: usize| rest.next_if_eq(&row).is_none();
    (0..rows).map(|row| is_number(row) & validity.is_none_or(|validity| validity.get(row))).collect()
}

/// A vector of decimals with these, ascending, in their rows.
pub fn with_specials(mut vector: Vector, specials: impl Iterator<Item = (usize, Special)>) -> Vector {
    if let Values::Numeric(numeric) = &mut vector.values {
        numeric.side = specials.map(|(row, special)| (row as u32, special.bytes().into())).collect();
    }
    vector
}

/// A vector whose row i is NULL where the i-th flag is false.
pub fn with_nulls(logical: LogicalType, values: Values, valid: impl Iterator<Item = bool>) -> Vector {
    let validity: Bitmap = valid.collect();
    let validity = (validity.count_zeros() > 0).then_some(validity);
    Vector { logical, validity, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn square_roots_round_to_the_nearest() {
        assert_eq!(square_root(4, 0), Ok(2));
        assert_eq!(square_root(2 * 10i128.pow(16), 16), Ok(14_142_135_623_730_950));
        assert_eq!(square_root(30, 1), Ok(17));
        assert_eq!(square_root(3 * 10i128.pow(20), 20), Ok(173_205_080_756_887_729_353));
        assert_eq!(square_root(1, 16), Ok(100_000_000));
        assert_eq!(square_root(0, 5), Ok(0));
    }
}
