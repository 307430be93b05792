//! Numerics with their length word <-> a 64-bit integer and its display scale, short form only.
//!
//! Layout: the length word holds four times the number of bytes, itself included. The numeric follows.
//!
//! Called by the template encoding of `encodings`: `parse` for each number of a document that is stored,
//! `write` for each that is read.
//!
//! Invariant: `parse` accepts exactly the byte strings that `write` makes of its result.

use super::{
    BASE, DIGIT_WIDTH, NARROW, POWERS, Parts, SHORT, SHORT_NEGATIVE, SHORT_SCALE_MAX, SHORT_SCALE_SHIFT,
    SHORT_WEIGHT_BITS, digit, narrow,
};

/// Integers of larger magnitude are not parsed: a thousand times the integer must still fit 64 bits.
pub const MAX_MAGNITUDE: u64 = i64::MAX as u64 / 1000;

/// Bytes of the length word.
const LENGTH_BYTES: usize = 4;
/// Bytes of the length word and the header.
const HEADER_BYTES: usize = LENGTH_BYTES + 2;

/// Most digits that `write` makes: five of base 10000 hold 19 decimal digits.
const MAX_DIGITS: usize = 5;
/// Most bytes that `write` makes.
pub const MAX_BYTES: usize = HEADER_BYTES + 2 * MAX_DIGITS;

/// Largest display scale of the short form.
pub const MAX_SCALE: u8 = SHORT_SCALE_MAX as u8;

/// The integer and display scale of a numeric, if it is in short form and small enough.
#[inline]
pub fn parse(bytes: &[u8]) -> Option<(i64, u8)> {
    let (length, payload) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    if u32::from_le_bytes(*length) as usize != bytes.len() << 2 {
        return None;
    }
    let parts = Parts::read(payload).filter(|parts| parts.is_short)?;
    let chunks = parts.chunks().filter(|chunks| chunks.len() <= MAX_DIGITS)?;
    let Parts { negative, weight, display, .. } = parts;
    let scale = u8::try_from(display).ok()?;
    if chunks.is_empty() {
        return (!negative && weight == 0).then_some((0, scale));
    }
    // Digits after the point that `write` would count with, and how many of them are zeros that are not
    // stored.
    let fraction = display.div_ceil(DIGIT_WIDTH);
    let below = i32::from(fraction) - (i32::try_from(chunks.len()).ok()? - 1 - weight);
    if !(0..=4).contains(&below) {
        return None;
    }
    let (first, more) = chunks.split_at(chunks.len().min(NARROW));
    let mut value = narrow(first)?;
    for chunk in more {
        value = value.checked_mul(BASE)?.checked_add(digit(*chunk)?)?;
    }
    for _ in 0..below {
        value = value.checked_mul(BASE)?;
    }
    let surplus = surplus(fraction, display);
    if !value.is_multiple_of(surplus) {
        return None;
    }
    value /= surplus;
    if value > MAX_MAGNITUDE {
        return None;
    }
    let value = value.cast_signed();
    Some((if negative { -value } else { value }, scale))
}

/// What the digits after the point hold beyond the display scale, as a power of ten.
#[inline]
const fn surplus(fraction: u16, scale: u16) -> u64 {
    POWERS[(fraction * DIGIT_WIDTH - scale) as usize & 3]
}

/// Whether `write` may be called with these.
#[inline]
pub const fn writable(value: i64, scale: i64) -> bool {
    value.unsigned_abs() <= MAX_MAGNITUDE && scale >= 0 && scale <= MAX_SCALE as i64
}

/// The bytes of a numeric and how many of them count. Value and scale must be `writable`.
#[inline]
pub fn write(value: i64, scale: u8) -> ([u8; MAX_BYTES], usize) {
    let scale = u16::from(scale & MAX_SCALE);
    let fraction = scale.div_ceil(DIGIT_WIDTH);
    let mut rest = value.unsigned_abs().wrapping_mul(surplus(fraction, scale));
    let mut header = SHORT | scale << SHORT_SCALE_SHIFT;
    // The digits, from the lowest up. Each goes in front of the earlier ones, so the highest is first in
    // memory.
    let (mut digits, mut count, mut total) = (0u128, 0usize, 0u16);
    while rest != 0 {
        let digit = rest % BASE;
        rest /= BASE;
        total += 1;
        if count != 0 || digit != 0 {
            digits = (digits << 16) | u128::from(digit);
            count += 1;
        }
    }
    if total != 0 {
        let weight = total.wrapping_sub(1).wrapping_sub(fraction) & SHORT_WEIGHT_BITS;
        header |= weight | if value < 0 { SHORT_NEGATIVE } else { 0 };
    }
    let len = HEADER_BYTES + 2 * count;
    // All bytes are put together in one register. If they were stored one after the other, a caller that
    // copies them at once would stall.
    let bits = (len as u128) << 2 | u128::from(header) << 32 | digits << 48;
    (bits.to_le_bytes(), len)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn bytes(value: i64, scale: u8) -> Vec<u8> {
        let (bytes, len) = write(value, scale);
        bytes[..len].to_vec()
    }

    #[test]
    fn known_numerics_have_the_servers_bytes() {
        // 12.34: digits 12 and 3400, weight 0, display scale 2.
        assert_eq!(bytes(1234, 2), [40, 0, 0, 0, 0x00, 0x81, 12, 0, 0x48, 0x0D]);
        // 0: no digits; 0.00 keeps its display scale.
        assert_eq!(bytes(0, 0), [24, 0, 0, 0, 0x00, 0x80]);
        assert_eq!(bytes(0, 2), [24, 0, 0, 0, 0x00, 0x81]);
        // 10000: one digit of weight 1; -0.05: weight -1.
        assert_eq!(bytes(10_000, 0), [32, 0, 0, 0, 0x01, 0x80, 1, 0]);
        assert_eq!(bytes(-5, 2), [32, 0, 0, 0, 0x7F, 0xA1, 0xF4, 0x01]);
    }

    #[test]
    fn what_is_written_is_parsed_to_the_same() {
        let mut seed = 1u64;
        for round in 0..200_000u32 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = ((seed % (MAX_MAGNITUDE + 1)) >> (round % 53)).cast_signed();
            let value = if round % 3 == 0 { -value } else { value };
            let scale = (seed >> 20) as u8 % 20;
            assert_eq!(parse(&bytes(value, scale)), Some((value, scale)), "{value} {scale}");
        }
        for value in [0, 1, -1, 9999, 10_000, 99_999_999, 100_000_000, MAX_MAGNITUDE as i64] {
            for scale in 0..=20 {
                assert_eq!(parse(&bytes(value, scale)), Some((value, scale)));
            }
        }
    }

    #[test]
    fn what_is_parsed_is_written_to_the_same_bytes() {
        // Every change of one or two bytes either is refused or comes back exactly.
        for (value, scale) in [(1234, 2), (0, 0), (-5, 2), (10_000, 0), (123_456_789_012, 7)] {
            let good = bytes(value, scale);
            for place in 0..good.len() {
                for byte in 0..=255u8 {
                    let mut changed = good.clone();
                    changed[place] = byte;
                    if let Some((value, scale)) = parse(&changed) {
                        assert_eq!(bytes(value, scale), changed);
                    }
                }
            }
            for len in 0..good.len() {
                assert!(parse(&good[..len]).is_none());
            }
        }
    }
}
