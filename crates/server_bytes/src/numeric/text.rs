//! Numerics as text, and whether two are the same value.
//!
//! Called by `jsonb` and by the hosts' code that writes decimals as text. Numerics in documents are neither
//! NaN nor infinite, so these are `Corrupt` like damaged bytes.

use vector::{Error, Result};

use super::Parts;
use crate::words::u16_at;

#[cold]
fn damaged() -> Error {
    Error::corrupt("a numeric that ends before its header or is no number")
}

/// Whether two numerics have the same value, however many digits they show.
pub fn is_same(a: &[u8], b: &[u8]) -> Result<bool> {
    let (a, b) = (Parts::read(a).ok_or_else(damaged)?, Parts::read(b).ok_or_else(damaged)?);
    // Zero has no digits. The server strips leading and trailing zero digits of all other values.
    let both_zero = a.digits.is_empty() && b.digits.is_empty();
    Ok(both_zero || (a.negative == b.negative && a.weight == b.weight && a.digits == b.digits))
}

/// Appends a numeric as the server's output function writes it.
pub fn write_text(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Parts { negative, weight, display, digits, .. } = Parts::read(payload).ok_or_else(damaged)?;
    let digit = |at: i32| {
        let at = usize::try_from(at).ok().and_then(|at| at.checked_mul(2));
        at.and_then(|at| u16_at(digits, at)).unwrap_or(0)
    };
    let four = |digit: u16| [digit / 1000 % 10, digit / 100 % 10, digit / 10 % 10, digit % 10];
    let ascii = |decimal: u16| b'0' + u8::try_from(decimal).unwrap_or(0);
    if negative {
        out.push(b'-');
    }
    let start = out.len();
    for at in 0..=weight {
        for decimal in four(digit(at)) {
            if decimal != 0 || out.len() > start {
                out.push(ascii(decimal));
            }
        }
    }
    if out.len() == start {
        out.push(b'0');
    }
    if display > 0 {
        out.push(b'.');
        let decimals =
            (0..).flat_map(|at| four(if weight + 1 + at < 0 { 0 } else { digit(weight + 1 + at) }));
        out.extend(decimals.take(usize::from(display)).map(ascii));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{is_same, write_text};
    use crate::numeric::to_side;

    fn text(unscaled: i128, scale: u16, display: u16) -> String {
        let mut out = Vec::new();
        write_text(&to_side(unscaled, scale, display), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_are_those_of_the_output_function() {
        assert_eq!(text(12_345, 2, 2), "123.45");
        assert_eq!(text(5, 3, 3), "0.005");
        assert_eq!(text(-5, 9, 10), "-0.0000000050");
        assert_eq!(text(0, 0, 0), "0");
        assert_eq!(text(0, 0, 2), "0.00");
        assert_eq!(text(-1_200_000_000, 0, 0), "-1200000000");
        assert_eq!(text(1, 0, 3), "1.000");
        assert_eq!(text(10_000, 0, 0), "10000");
        assert_eq!(text(100_000_001, 4, 4), "10000.0001");
    }

    #[test]
    fn values_are_the_same_whatever_they_show() {
        let same = |a: (i128, u16, u16), b: (i128, u16, u16)| {
            is_same(&to_side(a.0, a.1, a.2), &to_side(b.0, b.1, b.2)).unwrap()
        };
        assert!(same((10, 1, 1), (1, 0, 0)));
        assert!(same((0, 0, 0), (0, 0, 3)));
        assert!(!same((1, 0, 0), (-1, 0, 0)));
        assert!(!same((1, 0, 0), (10_000, 0, 0)));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for payload in [&[][..], &[0x80], &[0, 0xC0], &[0, 0xD0], &[0, 0xF0], &[0, 0x00], &[0, 0, 1]] {
            assert!(write_text(payload, &mut Vec::new()).is_err());
            assert!(is_same(payload, &[0, 0x80]).is_err());
        }
    }
}
