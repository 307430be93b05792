//! Quotients of decimals as the server computes them, for expressions and aggregates: its choice of scale,
//! and long division in 128 bits.
//!
//! After `select_div_scale` of PostgreSQL: the quotient gets at least 16 significant digits, counted in
//! digits of base 10,000, and no fewer decimals than either operand shows.

use vector::{Decimal, power_of_ten};

use crate::{Error, Result};

const WIDE: Error = Error::Decline("numeric outside 128 bits");

/// Significant digits of a quotient.
const SIGNIFICANT: i32 = 16;

/// Decimal digits in one of the server's digits.
const GROUP: i32 = 4;

/// The greatest power of ten that is below 2^`bits`, for up to 128 bits: log10(2) is a little more than 1233
/// / 4096.
const fn digits_below(bits: u32) -> u32 {
    (bits * 1233) >> 12
}

/// The logarithm to base ten, rounded down; of a table, as that of the standard library divides.
fn log10(value: u128) -> Option<u32> {
    let digits = digits_below(u128::BITS - value.leading_zeros());
    let power = power_of_ten(digits)?.unsigned_abs();
    (value > 0).then(|| digits - u32::from(value < power))
}

/// Weight (power of 10,000) and value of the server's first digit of a number; zeros for zero.
fn first_digit(number: Decimal) -> (i32, u128) {
    let value = number.unscaled.unsigned_abs();
    let Some(log) = log10(value) else { return (0, 0) };
    let weight = (log.cast_signed() - i32::from(number.scale)).div_euclid(GROUP);
    let shift = i32::from(number.scale) + GROUP * weight;
    // Between -3 and the logarithm.
    let power = power_of_ten(shift.unsigned_abs()).map_or(1, i128::unsigned_abs);
    let first = match (u64::try_from(value), u64::try_from(power)) {
        _ if shift < 0 => value * power,
        (Ok(value), Ok(power)) => u128::from(value / power),
        _ => value / power,
    };
    (weight, first)
}

/// Decimals of a quotient.
pub fn division_scale(dividend: Decimal, divisor: Decimal) -> u16 {
    let ((weight, first), (divisor_weight, divisor_first)) = (first_digit(dividend), first_digit(divisor));
    let quotient = weight - divisor_weight - i32::from(first <= divisor_first);
    let scale =
        (SIGNIFICANT - quotient * GROUP).max(i32::from(dividend.display)).max(i32::from(divisor.display));
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

/// `dividend` x 10^`up` / `divisor`, rounded half away from zero. `up` may be negative; the divisor is not
/// zero.
///
/// # Errors
/// `Decline` where the quotient has no room in 128 bits.
pub fn divide(dividend: i128, divisor: i128, up: i32) -> Result<i128> {
    let negative = (dividend < 0) != (divisor < 0);
    let (dividend, divisor) = (dividend.unsigned_abs(), divisor.unsigned_abs());
    let quotient = match (u64::try_from(dividend), u32::try_from(divisor), u32::try_from(up)) {
        (Ok(dividend), Ok(divisor), Ok(digits)) => divide_narrow(dividend, divisor, digits)?,
        (_, _, Ok(digits)) => divide_wide(dividend, divisor, digits)?,
        (_, _, Err(_)) => {
            let power = power_of_ten(up.unsigned_abs()).ok_or(WIDE)?.unsigned_abs();
            divide_wide(dividend, divisor.checked_mul(power).ok_or(WIDE)?, 0)?
        }
    };
    let quotient = i128::try_from(quotient).map_err(|_| WIDE)?;
    Ok(if negative { -quotient } else { quotient })
}

/// Long division as on paper, but with as many digits at once as the remainder has room for.
fn divide_wide(dividend: u128, divisor: u128, digits: u32) -> Result<u128> {
    let (mut quotient, mut rest) = (dividend / divisor, dividend % divisor);
    let mut left = digits;
    while left > 0 {
        let step = left.min(digits_below(rest.leading_zeros()).max(1));
        let factor = power_of_ten(step).ok_or(WIDE)?.unsigned_abs();
        let scaled = rest.checked_mul(factor).ok_or(WIDE)?;
        quotient = quotient.checked_mul(factor).and_then(|q| q.checked_add(scaled / divisor)).ok_or(WIDE)?;
        rest = scaled % divisor;
        left -= step;
    }
    if rest >= divisor - rest { quotient.checked_add(1).ok_or(WIDE) } else { Ok(quotient) }
}

/// The same of small numbers, which are most: nine digits at a time have room in 64 bits.
fn divide_narrow(dividend: u64, divisor: u32, digits: u32) -> Result<u128> {
    let divisor = u64::from(divisor);
    let mut quotient = u128::from(dividend / divisor);
    let mut rest = dividend % divisor;
    let mut left = digits;
    while left > 0 {
        let step = left.min(9);
        let factor = 10u64.pow(step);
        let scaled = rest * factor;
        let more = u128::from(scaled / divisor);
        quotient = quotient.checked_mul(u128::from(factor)).and_then(|q| q.checked_add(more)).ok_or(WIDE)?;
        rest = scaled % divisor;
        left -= step;
    }
    if rest >= divisor - rest { quotient.checked_add(1).ok_or(WIDE) } else { Ok(quotient) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(unscaled: i128, scale: u16) -> Decimal {
        Decimal { unscaled, scale, display: scale }
    }

    #[test]
    fn logarithms_change_at_powers_of_ten() {
        assert_eq!(log10(0), None);
        for exponent in 0..39u32 {
            let power = 10u128.pow(exponent);
            assert_eq!(log10(power), Some(exponent));
            assert_eq!(log10(power - 1), exponent.checked_sub(1));
        }
        assert_eq!(log10(u128::MAX), Some(38));
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
