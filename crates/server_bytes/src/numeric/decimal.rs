//! Numerics to and from decimals: scaled integers of up to 38 digits.
//!
//! Called by the host's conversions for every numeric value. So it works digit by digit, without a call into
//! the server.
//!
//! Invariant: [`decode`] answers only for bytes that [`encode`] gives back exactly. For everything else it
//! returns `None`, and the caller keeps the bytes themselves. Such values are NaN, infinities, more than 38
//! digits, and digits that another writer left in an unusual form.

use vector::{Decimal, power_of_ten};

use super::{
    BASE, DIGIT_WIDTH, LONG_SCALE_MASK, NARROW, NEGATIVE, POWERS, Parts, SHORT, SHORT_NEGATIVE,
    SHORT_SCALE_SHIFT, SHORT_WEIGHT_BITS, digit, fits_short, narrow,
};

/// The largest magnitude that is kept as an integer, which is what `vector`'s builder accepts.
const MAX_UNSCALED: i128 = 10i128.pow(38) - 1;
/// Display scales up to this one stay the value's own scale, so that a column's scale does not change with
/// its values. Above it, trailing zeros would only cost width.
const COMMON_SCALE: u16 = 6;

/// Most bytes [`encode`] writes: a long header and the digits of 38 + 3 decimals on both sides of a digit
/// border.
pub const MAX_ENCODED: usize = 4 + 2 * 12;

/// The decimal that a numeric's payload (without its length word) stands for, if it has at most 38 digits and
/// the form that the server itself would write.
#[inline]
pub fn decode(payload: &[u8]) -> Option<Decimal> {
    let parts = Parts::read(payload)?;
    let chunks = parts.chunks().filter(|chunks| chunks.len() <= 10)?;
    let Parts { is_short, negative, weight, display, .. } = parts;
    // A long form for which the server writes the short form would not come back as it was.
    if !is_short && fits_short(display, weight) {
        return None;
    }
    if chunks.is_empty() {
        let scale = display.min(COMMON_SCALE);
        return (!negative && weight == 0).then_some(Decimal { unscaled: 0, scale, display });
    }
    let mut number = 0i128;
    if chunks.len() <= NARROW {
        number = i128::from(narrow(chunks)?);
    } else {
        for chunk in chunks {
            number = number.checked_mul(i128::from(BASE))?.checked_add(i128::from(digit(*chunk)?))?;
        }
    }
    let count = i32::try_from(chunks.len()).ok()?;
    // The value is number x 10^-fraction. `fraction` is negative for values like 10000, whose zeros are not
    // stored.
    let mut fraction = (count - 1 - weight).checked_mul(i32::from(DIGIT_WIDTH))?;
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
    let narrow = u64::try_from(number).ok().zip(usize::try_from(shift.unsigned_abs()).ok());
    let unscaled = match (narrow, u32::try_from(shift)) {
        // Nearly all values come here, because 128-bit divisions take many times as long.
        (Some((number, down @ 0..4)), Err(_)) => {
            let down = POWERS[down];
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
    let padding = (DIGIT_WIDTH - scale % DIGIT_WIDTH) % DIGIT_WIDTH;
    let fraction_digits = i32::from((scale + padding) / DIGIT_WIDTH);
    let magnitude = unscaled.unsigned_abs();
    match u64::try_from(magnitude).ok().and_then(|m| m.checked_mul(POWERS[usize::from(padding)])) {
        Some(mut rest) => {
            while rest != 0 {
                digits[count] = (rest % BASE) as u16;
                rest /= BASE;
                count += 1;
            }
        }
        None => {
            // The lowest stored digit takes 4 - padding decimals, so that nothing is multiplied past 128
            // bits.
            let mut rest = magnitude;
            let low = 10u128.pow(u32::from(DIGIT_WIDTH - padding));
            digits[0] = (rest % low) as u16 * 10u16.pow(u32::from(padding));
            rest /= low;
            count = 1;
            while rest != 0 {
                digits[count] = (rest % u128::from(BASE)) as u16;
                rest /= u128::from(BASE);
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
    if fits_short(display, weight) {
        let sign = if unscaled < 0 { SHORT_NEGATIVE } else { 0 };
        let header = SHORT | sign | (display << SHORT_SCALE_SHIFT) | (weight as u16 & SHORT_WEIGHT_BITS);
        out[..2].copy_from_slice(&header.to_le_bytes());
        at = 2;
    } else {
        let sign = if unscaled < 0 { NEGATIVE } else { 0 };
        out[..2].copy_from_slice(&(sign | (display & LONG_SCALE_MASK)).to_le_bytes());
        out[2..4].copy_from_slice(&(weight as i16).to_le_bytes());
        at = 4;
    }
    for digit in digits[zeros..count].iter().rev() {
        out[at..at + 2].copy_from_slice(&digit.to_le_bytes());
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
    use proptest::prelude::*;

    use super::*;

    fn bytes(decimal: Decimal) -> Vec<u8> {
        to_side(decimal.unscaled, decimal.scale, decimal.display).into()
    }

    /// What the bytes of a decimal are read as: the same value, whatever its scale.
    fn scaled(decimal: Decimal, scale: u16) -> Option<i128> {
        decimal.unscaled.checked_mul(power_of_ten(scale.checked_sub(decimal.scale)?)?)
    }

    proptest! {
        #[test]
        fn decimals_come_back(digits in 0u32..=38, part in any::<u128>(), negative: bool, scale in 0u16..80,
                              extra in 0u16..80) {
            let magnitude = (part % 10u128.pow(digits)).cast_signed();
            let unscaled = if negative { -magnitude } else { magnitude };
            let written = Decimal { unscaled, scale, display: scale + extra };
            let read = decode(&bytes(written));
            // A column's common scale may need more than 38 digits: then the bytes are kept as they are.
            prop_assume!(read.is_some());
            let read = read.unwrap_or(written);
            prop_assert_eq!(read.display, written.display);
            let widest = read.scale.max(scale);
            let (found, wanted) = (scaled(read, widest), scaled(written, widest));
            prop_assert!(found == wanted || found.is_none() || wanted.is_none(), "{:?} {:?}", read, written);
            prop_assert_eq!(bytes(read), bytes(written));
        }

        #[test]
        fn decimals_of_common_scales_are_all_read(part in any::<i128>(), digits in 0u32..=30,
                                                  scale in 0u16..=6) {
            let unscaled = part % 10i128.pow(digits);
            let written = Decimal { unscaled, scale, display: scale };
            prop_assert_eq!(decode(&bytes(written)), Some(written));
        }

        #[test]
        fn what_is_read_is_written_to_the_same_bytes(payload in proptest::collection::vec(any::<u8>(), 0..30),
                                                     short: bool) {
            let mut payload = payload;
            // Digits of any two bytes would hardly ever be valid.
            for digit in payload.iter_mut().skip(1).step_by(2) {
                *digit %= 39;
            }
            if short && let Some(high) = payload.get_mut(1) {
                *high |= 0x80;
            }
            if let Some(decimal) = decode(&payload) {
                prop_assert_eq!(bytes(decimal), payload);
            }
        }
    }
}
