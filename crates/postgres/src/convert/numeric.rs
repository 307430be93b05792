//! The server's `numeric` bytes to and from scaled integers, digit by digit.
//!
//! Called by `from_datum` and `to_datum` for every numeric value. So it works on plain bytes, without a call
//! into the server. The layout (see the header comment of the server's numeric.c):
//! - a 16-bit header. In the short form it holds sign, display scale and weight. In the long form it holds
//!   sign and display scale, and a 16-bit weight follows.
//! - base-10000 digits, most significant first. The first one is worth 10000^weight.
//!
//! Invariant: [`decode`] answers only for bytes that [`encode`] gives back exactly. For everything else it
//! returns `None`, and the caller keeps the bytes themselves. Such values are NaN, infinities, more than 38
//! digits, and digits that another writer left in an unusual form.

use vector::{Decimal, power_of_ten};

/// The largest magnitude that is kept as an integer, which is what `vector`'s builder accepts.
const MAX_UNSCALED: i128 = 10i128.pow(38) - 1;
/// Base of the stored digits.
const BASE: i128 = 10_000;
/// Decimal digits in one stored digit.
const DIGIT_WIDTH: i32 = 4;
/// Display scales up to this one stay the value's own scale, so that a column's scale does not change with
/// its values. Above it, trailing zeros would only cost width.
const COMMON_SCALE: u16 = 6;

const SIGN_MASK: u16 = 0xC000;
const NEGATIVE: u16 = 0x4000;
const SHORT: u16 = 0x8000;
const SPECIAL: u16 = 0xC000;
const SHORT_NEGATIVE: u16 = 0x2000;
const SHORT_SCALE_SHIFT: u32 = 7;
const SHORT_SCALE_MAX: u16 = 0x3F;
const SHORT_WEIGHT_BITS: u16 = 0x7F;
const LONG_SCALE_MASK: u16 = 0x3FFF;

/// Most bytes [`encode`] writes: a long header and the digits of 38 + 3 decimals on both sides of a digit
/// border.
pub const MAX_ENCODED: usize = 4 + 2 * 12;

struct Parts<'a> {
    negative: bool,
    weight: i32,
    display: u16,
    digits: &'a [u8],
}

#[inline]
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk::<2>()?))
}

#[inline]
fn parts(payload: &[u8]) -> Option<Parts<'_>> {
    let header = half(payload, 0)?;
    match header & SIGN_MASK {
        SPECIAL => None,
        SHORT => {
            // Seven bits of weight in two's complement.
            let bits = header & SHORT_WEIGHT_BITS;
            let weight = i32::from(bits) - if bits & 0x40 != 0 { 0x80 } else { 0 };
            Some(Parts {
                negative: header & SHORT_NEGATIVE != 0,
                weight,
                display: (header >> SHORT_SCALE_SHIFT) & SHORT_SCALE_MAX,
                digits: payload.get(2..)?,
            })
        }
        sign => {
            let weight = i32::from(half(payload, 2)?.cast_signed());
            let display = header & LONG_SCALE_MASK;
            // The server writes the short form whenever it can. A long form in its place would not come back
            // as it was.
            let short_form = display <= SHORT_SCALE_MAX && (-64..=63).contains(&weight);
            (!short_form).then_some(Parts {
                negative: sign == NEGATIVE,
                weight,
                display,
                digits: payload.get(4..)?,
            })
        }
    }
}

/// The parts of any numeric except NaN and infinities, in whichever form.
fn any_parts(payload: &[u8]) -> Option<Parts<'_>> {
    let header = half(payload, 0)?;
    match header & SIGN_MASK {
        SPECIAL => None,
        SHORT => parts(payload),
        sign => Some(Parts {
            negative: sign == NEGATIVE,
            weight: i32::from(half(payload, 2)?.cast_signed()),
            display: header & LONG_SCALE_MASK,
            digits: payload.get(4..)?,
        }),
    }
}

/// Whether two numerics have the same value, however many digits they show. None for damaged bytes, NaN and
/// infinities.
pub fn is_same(a: &[u8], b: &[u8]) -> Option<bool> {
    let (a, b) = (any_parts(a)?, any_parts(b)?);
    // Zero has no digits. The server strips leading and trailing zero digits of all other values.
    let both_zero = a.digits.is_empty() && b.digits.is_empty();
    Some(both_zero || (a.negative == b.negative && a.weight == b.weight && a.digits == b.digits))
}

/// Appends a numeric as the server's output function writes it. None for damaged bytes, NaN and infinities.
pub fn write_text(payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let Parts { negative, weight, display, digits } = any_parts(payload)?;
    let digit = |at: i32| {
        let at = usize::try_from(at).ok().and_then(|at| at.checked_mul(2));
        at.and_then(|at| half(digits, at)).unwrap_or(0)
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
    Some(())
}

/// The decimal that a numeric's payload (without its length word) stands for, if it has at most 38 digits and
/// the form that the server itself would write.
#[inline]
pub fn decode(payload: &[u8]) -> Option<Decimal> {
    let Parts { negative, weight, display, digits } = parts(payload)?;
    let (chunks, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() || chunks.len() > 10 {
        return None;
    }
    let Some((first, last)) = chunks.first().zip(chunks.last()) else {
        let scale = display.min(COMMON_SCALE);
        return (!negative && weight == 0).then_some(Decimal { unscaled: 0, scale, display });
    };
    if *first == [0, 0] || *last == [0, 0] {
        return None;
    }
    let mut number = 0i128;
    if chunks.len() <= 4 {
        let mut small = 0i64;
        for digit in chunks {
            let digit = u16::from_ne_bytes(*digit);
            if i128::from(digit) >= BASE {
                return None;
            }
            small = small * 10_000 + i64::from(digit);
        }
        number = i128::from(small);
    } else {
        for digit in chunks {
            let digit = i128::from(u16::from_ne_bytes(*digit));
            if digit >= BASE {
                return None;
            }
            number = number.checked_mul(BASE)?.checked_add(digit)?;
        }
    }
    let count = i32::try_from(chunks.len()).ok()?;
    // The value is number x 10^-fraction. `fraction` is negative for values like 10000, whose zeros are not
    // stored.
    let mut fraction = (count - 1 - weight).checked_mul(DIGIT_WIDTH)?;
    let mut scale = i32::from(display);
    if display > COMMON_SCALE {
        let mut zeros = 0;
        while zeros < DIGIT_WIDTH - 1 && number % 10 == 0 {
            number /= 10;
            fraction -= 1;
            zeros += 1;
        }
        scale = fraction.max(i32::from(COMMON_SCALE)).min(scale);
    }
    let shift = scale - fraction;
    let narrow = i64::try_from(number).ok().zip(usize::try_from(shift.unsigned_abs()).ok());
    let unscaled = match (narrow, u32::try_from(shift)) {
        // Nearly all values come here, because 128-bit divisions take many times as long.
        (Some((number, down @ 0..4)), Err(_)) => {
            let down = [1, 10, 100, 1_000][down];
            if number % down != 0 {
                return None;
            }
            i128::from(number / down)
        }
        (_, Ok(up)) => number.checked_mul(power_of_ten(up)?)?,
        (_, Err(_)) => {
            let down = power_of_ten(shift.unsigned_abs())?;
            if number % down != 0 {
                return None;
            }
            number / down
        }
    };
    if unscaled > MAX_UNSCALED {
        return None;
    }
    let unscaled = if negative { -unscaled } else { unscaled };
    Some(Decimal { unscaled, scale: u16::try_from(scale).ok()?, display })
}

/// Writes the payload of a numeric into `out` and returns its length in bytes, at most [`MAX_ENCODED`].
#[inline]
pub fn encode(decimal: Decimal, out: &mut [u8; MAX_ENCODED]) -> usize {
    let Decimal { unscaled, scale, display } = decimal;
    // The digits, least significant first. The decimal point is between two of them.
    let mut digits = [0u16; 12];
    let mut count = 0usize;
    let padding = (4 - scale % 4) % 4;
    let fraction_digits = i32::from((scale + padding) / 4);
    let magnitude = unscaled.unsigned_abs();
    match u64::try_from(magnitude).ok().and_then(|m| m.checked_mul([1, 10, 100, 1000][usize::from(padding)]))
    {
        Some(mut rest) => {
            while rest != 0 {
                digits[count] = (rest % 10_000) as u16;
                rest /= 10_000;
                count += 1;
            }
        }
        None => {
            // The lowest stored digit takes 4 - padding decimals, so that nothing is multiplied past 128
            // bits.
            let mut rest = magnitude;
            let low = 10u128.pow(u32::from(4 - padding));
            digits[0] = (rest % low) as u16 * 10u16.pow(u32::from(padding));
            rest /= low;
            count = 1;
            while rest != 0 {
                digits[count] = (rest % 10_000) as u16;
                rest /= 10_000;
                count += 1;
            }
        }
    }
    while count > 0 && digits[count - 1] == 0 {
        count -= 1;
    }
    let zeros = digits[..count].iter().take_while(|&&digit| digit == 0).count();
    let weight = if count == 0 { 0 } else { count as i32 - 1 - fraction_digits };
    let mut at;
    if display <= SHORT_SCALE_MAX && (-64..=63).contains(&weight) {
        let sign = if unscaled < 0 { SHORT_NEGATIVE } else { 0 };
        let header = SHORT | sign | (display << SHORT_SCALE_SHIFT) | (weight as u16 & SHORT_WEIGHT_BITS);
        out[..2].copy_from_slice(&header.to_ne_bytes());
        at = 2;
    } else {
        let sign = if unscaled < 0 { NEGATIVE } else { 0 };
        out[..2].copy_from_slice(&(sign | (display & LONG_SCALE_MASK)).to_ne_bytes());
        out[2..4].copy_from_slice(&(weight as i16).to_ne_bytes());
        at = 4;
    }
    for digit in digits[zeros..count].iter().rev() {
        out[at..at + 2].copy_from_slice(&digit.to_ne_bytes());
        at += 2;
    }
    at
}

/// The payload as owned bytes. `vector`'s builder asks for it if a value does not fit its column's common
/// scale.
pub fn to_side(unscaled: i128, scale: u16, display: u16) -> Box<[u8]> {
    let mut out = [0; MAX_ENCODED];
    let len = encode(Decimal { unscaled, scale, display }, &mut out);
    out[..len].into()
}

#[cfg(test)]
mod tests {
    use super::{is_same, to_side, write_text};

    fn text(unscaled: i128, scale: u16, display: u16) -> String {
        let mut out = Vec::new();
        write_text(&to_side(unscaled, scale, display), &mut out);
        String::from_utf8(out).unwrap_or_default()
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
            is_same(&to_side(a.0, a.1, a.2), &to_side(b.0, b.1, b.2))
        };
        assert_eq!(same((10, 1, 1), (1, 0, 0)), Some(true));
        assert_eq!(same((0, 0, 0), (0, 0, 3)), Some(true));
        assert_eq!(same((1, 0, 0), (-1, 0, 0)), Some(false));
        assert_eq!(same((1, 0, 0), (10_000, 0, 0)), Some(false));
    }
}
