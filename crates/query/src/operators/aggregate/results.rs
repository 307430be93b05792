//! Numeric results as the server computes them: division with its choice of scale, and vectors of decimals of differing scales.
//!
//! After `select_div_scale` of PostgreSQL: the quotient gets at least 16 significant digits, counted in digits of base 10,000, and no fewer decimals than either operand shows.

use vector::{Bitmap, DisplayScales, LogicalType, NumericInts, NumericValues, Special, Values, Vector};

use crate::{Error, Result};

const WIDE: Error = Error::Decline("numeric outside 128 bits");

/// Significant digits of a quotient.
const SIGNIFICANT: i32 = 16;

/// A decimal: `unscaled` x 10^-`scale`, shown with `display` digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// Integer.
    pub unscaled: i128,
    /// Its power of ten.
    pub scale: u16,
    /// Digits shown after the point.
    pub display: u16,
}

/// Ten to this power.
pub fn power_of_ten(exponent: u32) -> Result<i128> {
    10i128.checked_pow(exponent).ok_or(WIDE)
}

/// The weight (in digits of base 10,000) and value of the first such digit of a number.
fn first_digit(value: Decimal) -> (i32, i128) {
    let mut magnitude = value.unscaled.unsigned_abs();
    if magnitude == 0 {
        return (0, 0);
    }
    if let (Ok(narrow), 0) = (u64::try_from(magnitude), value.scale) {
        // A whole number of 64 bits: its own digits of base 10,000.
        let weight = narrow.ilog10() / 4;
        return (weight as i32, i128::from(narrow / 10u64.pow(weight * 4)));
    }
    // Digits of the integer part, as a count of decimal digits that may be negative.
    let digits = magnitude.ilog10() as i32 + 1 - i32::from(value.scale);
    let weight = (digits - 1).div_euclid(4);
    // The decimal digits that the first base-10,000 digit holds.
    let held = digits - weight * 4;
    let length = magnitude.ilog10() as i32 + 1;
    if length >= held {
        magnitude /= 10u128.pow((length - held) as u32);
    } else {
        magnitude *= 10u128.pow((held - length) as u32);
    }
    (weight, magnitude as i128)
}

/// Decimals of a quotient.
pub fn division_scale(dividend: Decimal, divisor: Decimal) -> u16 {
    let ((weight, first), (divisor_weight, divisor_first)) = (first_digit(dividend), first_digit(divisor));
    let mut quotient = weight - divisor_weight;
    if first <= divisor_first {
        quotient -= 1;
    }
    let scale = (SIGNIFICANT - quotient * 4).max(i32::from(dividend.display)).max(i32::from(divisor.display));
    scale.clamp(0, 1_000) as u16
}

/// `sum` divided by a positive count, rounded half away from zero, as the server's numeric division.
///
/// # Errors
/// `Decline` where the quotient has no room in 128 bits.
pub fn average(sum: Decimal, count: i64) -> Result<Decimal> {
    let divisor = Decimal { unscaled: i128::from(count), scale: 0, display: 0 };
    let display = division_scale(sum, divisor);
    let unscaled = divide(sum.unscaled, divisor.unscaled, i32::from(display) - i32::from(sum.scale))?;
    Ok(Decimal { unscaled, scale: display, display })
}

/// `dividend` x 10^`up` / `divisor`, rounded half away from zero. `up` may be negative; the divisor is positive.
pub fn divide(dividend: i128, divisor: i128, up: i32) -> Result<i128> {
    let negative = dividend < 0;
    if let (Ok(narrow), Ok(short), Ok(digits)) =
        (u64::try_from(dividend.unsigned_abs()), u32::try_from(divisor), u32::try_from(up))
        && short > 0
    {
        return divide_narrow(narrow, short, digits).map(|value| if negative { -value } else { value });
    }
    let (mut magnitude, mut divisor) = (dividend.unsigned_abs(), divisor.unsigned_abs());
    if up < 0 {
        divisor = divisor.checked_mul(power_of_ten(up.unsigned_abs())?.unsigned_abs()).ok_or(WIDE)?;
    }
    let mut quotient = magnitude / divisor;
    magnitude %= divisor;
    let mut left = up.max(0) as u32;
    while left > 0 {
        // As many digits at once as the remainder has room for.
        let step = left.min(u128::MAX.checked_div(divisor).unwrap_or(1).ilog10().max(1));
        let factor = 10u128.pow(step);
        let scaled = magnitude.checked_mul(factor).ok_or(WIDE)?;
        quotient = quotient.checked_mul(factor).and_then(|q| q.checked_add(scaled / divisor)).ok_or(WIDE)?;
        magnitude = scaled % divisor;
        left -= step;
    }
    if magnitude >= divisor - magnitude {
        quotient = quotient.checked_add(1).ok_or(WIDE)?;
    }
    let quotient = i128::try_from(quotient).map_err(|_| WIDE)?;
    Ok(if negative { -quotient } else { quotient })
}

/// The same of small numbers, which are most: nine digits at a time have room in 64 bits.
fn divide_narrow(dividend: u64, divisor: u32, digits: u32) -> Result<i128> {
    let divisor = u64::from(divisor);
    let mut quotient = i128::from(dividend / divisor);
    let mut rest = dividend % divisor;
    let mut left = digits;
    while left > 0 {
        let step = left.min(9);
        let factor = 10u64.pow(step);
        let scaled = rest * factor;
        let more = i128::from(scaled / divisor);
        quotient = quotient.checked_mul(i128::from(factor)).and_then(|q| q.checked_add(more)).ok_or(WIDE)?;
        rest = scaled % divisor;
        left -= step;
    }
    Ok(if rest >= divisor - rest { quotient + 1 } else { quotient })
}

/// The square root of `value` x 10^-`scale` at that scale, rounded half up: digit by digit, as on paper, so that no number is wider than the root and a little.
pub fn square_root(value: i128, scale: u16) -> Result<i128> {
    // The root at `scale` digits is that of value x 10^scale as an integer; one digit more decides the rounding.
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

    /// The greatest or least value where the others are numbers, of which there is one or not.
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

    fn decimal(unscaled: i128, scale: u16) -> Decimal {
        Decimal { unscaled, scale, display: scale }
    }

    /// What PostgreSQL 15 says.
    #[test]
    fn averages_are_the_servers() {
        for (sum, count, unscaled, scale) in [
            (decimal(7, 0), 2, 35_000_000_000_000_000i128, 16),
            (decimal(10, 0), 3, 33_333_333_333_333_333, 16),
            (decimal(-10, 0), 3, -33_333_333_333_333_333, 16),
            (decimal(0, 0), 3, 0, 20),
            (decimal(100_000, 0), 3, 33_333_333_333_333_333, 12),
            (decimal(1, 2), 3, 333_333_333_333_333_333, 20),
            (decimal(2, 30), 3, 666_666_666_666_666_667, 48),
        ] {
            assert_eq!(average(sum, count), Ok(decimal(unscaled, scale)), "{sum:?}");
        }
    }

    #[test]
    fn square_roots_round_to_the_nearest() {
        assert_eq!(square_root(4, 0), Ok(2));
        assert_eq!(square_root(2 * 10i128.pow(16), 16), Ok(14_142_135_623_730_950));
        assert_eq!(square_root(30, 1), Ok(17));
        assert_eq!(square_root(3 * 10i128.pow(20), 20), Ok(173_205_080_756_887_729_353));
        assert_eq!(square_root(1, 16), Ok(100_000_000));
        assert_eq!(square_root(0, 5), Ok(0));
    }

    #[test]
    fn division_rounds_half_away_from_zero() {
        assert_eq!(divide(5, 2, 0), Ok(3));
        assert_eq!(divide(-5, 2, 0), Ok(-3));
        assert_eq!(divide(149, 1, -2), Ok(1));
        assert_eq!(divide(150, 1, -2), Ok(2));
        assert_eq!(divide(1, 3, 30), Ok(333_333_333_333_333_333_333_333_333_333));
        assert_eq!(divide(10i128.pow(37), 7, 0), Ok(1_428_571_428_571_428_571_428_571_428_571_428_571));
        assert!(divide(10i128.pow(37), 7, 5).is_err());
        // In 64 bits and in 128 the same.
        for (dividend, divisor) in
            [(1, 3), (7, 1 << 62), (u64::MAX, 3), (12_345_678, 977), (5, u64::MAX), (1, 1)]
        {
            for up in 0..18 {
                let wide = i128::from(dividend) * 10i128.pow(up);
                let half = i128::from(divisor);
                let expected = (2 * wide + half) / (2 * half);
                assert_eq!(
                    divide(dividend.into(), divisor.into(), up as i32),
                    Ok(expected),
                    "{dividend} / {divisor}"
                );
                assert_eq!(divide(-i128::from(dividend), divisor.into(), up as i32), Ok(-expected));
            }
        }
    }
}
