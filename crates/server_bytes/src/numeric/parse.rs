//! Numbers of JSON as numerics, as the server's input function makes them.
//!
//! Called by `jsonb::parse`. The value has the digits after the point that the text has, so `1.50` keeps two.

use super::{
    BASE, DIGIT_WIDTH, LONG_SCALE_MASK, NEGATIVE, SHORT, SHORT_NEGATIVE, SHORT_SCALE_SHIFT,
    SHORT_WEIGHT_BITS, fits_short,
};

/// Appends the numeric, without a length word. False, and nothing was appended: it is past those of the type.
///
/// `text` is a number as JSON writes it; other bytes give any number.
pub fn append(text: &[u8], out: &mut Vec<u8>) -> bool {
    let (negative, text) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
    let split = |text: &[u8], at: Option<usize>| match at {
        Some(at) => {
            (text.get(..at).unwrap_or_default().to_vec(), text.get(at + 1..).unwrap_or_default().to_vec())
        }
        None => (text.to_vec(), Vec::new()),
    };
    let (mantissa, exponent) = split(text, text.iter().position(|byte| matches!(byte, b'e' | b'E')));
    let (whole, fraction) = split(&mantissa, mantissa.iter().position(|&byte| byte == b'.'));
    let exponent = exponent_of(&exponent);
    // As the server has it, also of zero.
    if exponent.abs() >= i64::from(i32::MAX / 2) {
        return false;
    }
    let length = |digits: &[u8]| i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let scale = length(&fraction).saturating_sub(exponent).max(0);
    // How many places before the point the first digit is, from zero on.
    let first = (length(&whole) - 1).saturating_add(exponent);
    let width = i64::from(DIGIT_WIDTH);
    let mut weight = first.div_euclid(width);
    let padding = usize::try_from(width - 1 - first.rem_euclid(width)).unwrap_or(0);
    let places =
        std::iter::repeat_n(0, padding).chain(whole.iter().chain(&fraction).map(|digit| digit - b'0'));
    let mut digits = Vec::with_capacity((whole.len() + fraction.len()) / 4 + 2);
    for (at, place) in places.enumerate() {
        if at.is_multiple_of(usize::from(DIGIT_WIDTH)) {
            digits.push(0u16);
        }
        if let Some(last) = digits.last_mut() {
            *last = *last * 10 + u16::from(place);
        }
    }
    // The last one may lack places.
    let lacking = (padding + whole.len() + fraction.len()).wrapping_neg() % usize::from(DIGIT_WIDTH);
    if let Some(last) = digits.last_mut() {
        *last = (0..lacking).fold(*last, |digit, _| digit * 10);
    }
    let zeros = digits.iter().take_while(|&&digit| digit == 0).count();
    weight -= i64::try_from(zeros).unwrap_or(i64::MAX);
    let end = digits.iter().rposition(|&digit| digit != 0).map_or(zeros, |last| last + 1);
    let digits = digits.get(zeros..end).unwrap_or_default();
    if digits.is_empty() {
        weight = 0;
    }
    let negative = negative && !digits.is_empty();
    let (Ok(scale), Ok(weight)) = (u16::try_from(scale), i16::try_from(weight)) else { return false };
    if scale > LONG_SCALE_MASK {
        return false;
    }
    debug_assert!(digits.iter().all(|&digit| u64::from(digit) < BASE), "digits of one place each");
    let mut word = |word: u16| out.extend_from_slice(&word.to_le_bytes());
    if fits_short(scale, weight.into()) {
        let sign = if negative { SHORT_NEGATIVE } else { 0 };
        word(SHORT | sign | scale << SHORT_SCALE_SHIFT | (weight.cast_unsigned() & SHORT_WEIGHT_BITS));
    } else {
        word(if negative { NEGATIVE } else { 0 } | scale);
        word(weight.cast_unsigned());
    }
    digits.iter().copied().for_each(word);
    true
}

/// An exponent with its sign. Those that no numeric has become one that none has, either.
fn exponent_of(text: &[u8]) -> i64 {
    const MOST: i64 = 1 << 40;
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let size = digits.iter().fold(0, |size: i64, digit| (size * 10 + i64::from(digit - b'0')).min(MOST));
    if negative { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::append;
    use crate::numeric::write_text;

    #[test]
    fn numbers_of_json_keep_their_digits() {
        for (text, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.00", "0.00"),
            ("1", "1"),
            ("10000", "10000"),
            ("123456789.000100", "123456789.000100"),
            ("0.00001", "0.00001"),
            ("1e5", "100000"),
            ("1.50e1", "15.0"),
            ("1.5E+3", "1500"),
            ("-12.5e-7", "-0.00000125"),
            ("0e10", "0"),
            ("0.0e-3", "0.0000"),
            ("99999999999999999999999999999999999999999.5", "99999999999999999999999999999999999999999.5"),
        ] {
            let (mut bytes, mut shown) = (Vec::new(), Vec::new());
            assert!(append(text.as_bytes(), &mut bytes));
            write_text(&bytes, &mut shown).unwrap();
            assert_eq!(String::from_utf8(shown).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn the_form_is_the_servers() {
        for (text, words) in [
            // Short: sign, scale, weight.
            ("0", vec![0x8000u16]),
            ("-1.5", vec![0x8000 | 0x2000 | 1 << 7, 1, 5000]),
            ("0.0001", vec![0x8000 | 4 << 7 | 0x7f, 1]),
            ("10000", vec![0x8001, 1]),
            // Long: sign and scale, then the weight.
            ("1e256", vec![0, 64, 1]),
            ("-1e-64", vec![0x4000 | 64, (-16i16).cast_unsigned(), 1]),
        ] {
            let mut bytes = Vec::new();
            assert!(append(text.as_bytes(), &mut bytes));
            let expected: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(bytes, expected, "{text}");
        }
        for text in
            ["1e131072", "1e-16384", "1e999999999999999999999", "1e-999999999999999999999", "0e2000000000"]
        {
            let mut bytes = Vec::new();
            assert!(!append(text.as_bytes(), &mut bytes), "{text}");
            assert!(bytes.is_empty());
        }
        assert!(append(b"1e131071", &mut Vec::new()));
        assert!(append(b"1e-16383", &mut Vec::new()));
    }

    #[test]
    fn what_is_sound_may_be_given_to_a_server() {
        use crate::numeric::is_sound;
        let mut bytes = Vec::new();
        assert!(append(b"-123456.75", &mut bytes) && is_sound(&bytes));
        assert!(is_sound(&0xc000u16.to_le_bytes()), "NaN");
        // Half a digit, a digit past the base, a long header without its weight, more than a special value
        // has.
        let longer = [bytes.as_slice(), &[1]].concat();
        for wrong in [longer.as_slice(), &[0, 0x80, 0x10, 0x27], &[0, 0], &[], &[7], &[0, 0xc0, 1, 0]] {
            assert!(!is_sound(wrong), "{wrong:?}");
        }
    }
}
