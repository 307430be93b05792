//! Hexadecimal text to half as many bytes and back, 16 or 32 characters a step.
//!
//! Called by the hex and uuid encodings, always for the packed bytes of many rows end to end. Rows have an
//! even length, so row boundaries do not matter here. Packing subtracts a base that a comparison chooses, and
//! joins nibble pairs with a multiply-add. Unpacking spreads nibbles and looks up their characters with a
//! byte shuffle. (Only the ideas are taken from W. Mula, "hex encoding with SIMD", and D. Lemire, "parsing
//! hex numbers with validation", 2023.)
//!
//! Invariant: `unpack(pack(text)) == text` for every text that `pack` accepts. `pack` accepts one case only.

/// Which letters a hexadecimal text uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HexCase {
    /// `0-9a-f`
    Lower,
    /// `0-9A-F`
    Upper,
}

impl HexCase {
    const fn letter(self) -> u8 {
        match self {
            Self::Lower => b'a',
            Self::Upper => b'A',
        }
    }

    const fn digits(self) -> &'static [u8; 16] {
        match self {
            Self::Lower => b"0123456789abcdef",
            Self::Upper => b"0123456789ABCDEF",
        }
    }
}

#[inline]
fn nibble(character: u8, letter: u8) -> Option<u8> {
    let digit = character.wrapping_sub(b'0');
    if digit < 10 {
        return Some(digit);
    }
    let digit = character.wrapping_sub(letter);
    (digit < 6).then(|| digit + 10)
}

fn pack_scalar(text: &[u8], case: HexCase, out: &mut [u8]) -> bool {
    let letter = case.letter();
    text.chunks_exact(2).zip(out).all(|(pair, out)| match pair {
        &[high, low] => match (nibble(high, letter), nibble(low, letter)) {
            (Some(high), Some(low)) => {
                *out = high << 4 | low;
                true
            }
            _ => false,
        },
        _ => false,
    })
}

fn unpack_scalar(bytes: &[u8], case: HexCase, out: &mut [u8]) {
    let digits = case.digits();
    for (&byte, out) in bytes.iter().zip(out.chunks_exact_mut(2)) {
        if let [high, low] = out {
            *high = digits[usize::from(byte >> 4)];
            *low = digits[usize::from(byte & 15)];
        }
    }
}

/// Packs `text` (of even length) into `out`, half as long. False, with `out` undefined, if a character is no
/// hexadecimal digit of this case, or if the lengths do not fit.
pub fn pack(text: &[u8], case: HexCase, out: &mut [u8]) -> bool {
    if !text.len().is_multiple_of(2) || out.len() != text.len() / 2 {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2; lengths were checked above.
        return unsafe { x86::pack_avx2(text, case, out) };
    }
    pack_scalar(text, case, out)
}

/// Unpacks `bytes` into `out`, twice as long. A surplus on either side is left alone.
pub fn unpack(bytes: &[u8], case: HexCase, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2; the kernel clips to the shorter side.
        unsafe { x86::unpack_avx2(bytes, case, out) };
        return;
    }
    unpack_scalar(bytes, case, out);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{HexCase, pack_scalar, unpack_scalar};

    /// # Safety
    /// Needs AVX2. `out` must be half as long as `text`.
    #[target_feature(enable = "avx2")]
    pub unsafe fn pack_avx2(text: &[u8], case: HexCase, out: &mut [u8]) -> bool {
        let blocks = (text.len() / 32).min(out.len() / 16);
        let zero = _mm256_set1_epi8(b'0'.cast_signed());
        let letter = _mm256_set1_epi8(case.letter().cast_signed());
        let nine = _mm256_set1_epi8(9);
        let five = _mm256_set1_epi8(5);
        let ten = _mm256_set1_epi8(10);
        let weights = _mm256_set1_epi16(0x0110);
        let mut bad = _mm256_setzero_si256();
        for block in 0..blocks {
            // SAFETY: block < text.len() / 32, so 32 bytes are there.
            let chars = unsafe { _mm256_loadu_si256(text.as_ptr().add(block * 32).cast()) };
            let digit = _mm256_sub_epi8(chars, zero);
            let is_digit = _mm256_cmpeq_epi8(_mm256_min_epu8(digit, nine), digit);
            let alpha = _mm256_sub_epi8(chars, letter);
            let is_alpha = _mm256_cmpeq_epi8(_mm256_min_epu8(alpha, five), alpha);
            bad = _mm256_or_si256(
                bad,
                _mm256_cmpeq_epi8(_mm256_or_si256(is_digit, is_alpha), _mm256_setzero_si256()),
            );
            let value = _mm256_blendv_epi8(_mm256_add_epi8(alpha, ten), digit, is_digit);
            let joined = _mm256_maddubs_epi16(value, weights);
            let packed =
                _mm_packus_epi16(_mm256_castsi256_si128(joined), _mm256_extracti128_si256::<1>(joined));
            // SAFETY: block < out.len() / 16, so 16 bytes are there.
            unsafe { _mm_storeu_si128(out.as_mut_ptr().add(block * 16).cast(), packed) };
        }
        if _mm256_testz_si256(bad, bad) == 0 {
            return false;
        }
        match (text.get(blocks * 32..), out.get_mut(blocks * 16..)) {
            (Some(text), Some(out)) => pack_scalar(text, case, out),
            _ => true,
        }
    }

    /// # Safety
    /// Needs AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn unpack_avx2(bytes: &[u8], case: HexCase, out: &mut [u8]) {
        let blocks = (bytes.len() / 16).min(out.len() / 32);
        // SAFETY: the table is 16 bytes long.
        let digits = _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(case.digits().as_ptr().cast()) });
        let low_nibbles = _mm256_set1_epi8(15);
        for block in 0..blocks {
            // SAFETY: block < bytes.len() / 16, so 16 bytes are there.
            let packed = unsafe { _mm_loadu_si128(bytes.as_ptr().add(block * 16).cast()) };
            let wide = _mm256_cvtepu8_epi16(packed);
            // Each 16-bit lane holds one byte: its high nibble belongs first in memory.
            let spread = _mm256_or_si256(_mm256_srli_epi16::<4>(wide), _mm256_slli_epi16::<8>(wide));
            let text = _mm256_shuffle_epi8(digits, _mm256_and_si256(spread, low_nibbles));
            // SAFETY: block < out.len() / 32, so 32 bytes are there.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().add(block * 32).cast(), text) };
        }
        if let (Some(bytes), Some(out)) = (bytes.get(blocks * 16..), out.get_mut(blocks * 32..)) {
            unpack_scalar(bytes, case, out);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 167 + i / 7 * 31) as u8).collect()
    }

    #[test]
    fn every_length_goes_round_in_both_cases() {
        for case in [HexCase::Lower, HexCase::Upper] {
            for len in 0..200 {
                let raw = bytes(len);
                let mut text = vec![0; len * 2];
                unpack(&raw, case, &mut text);
                let expected: String = raw
                    .iter()
                    .map(|b| match case {
                        HexCase::Lower => format!("{b:02x}"),
                        HexCase::Upper => format!("{b:02X}"),
                    })
                    .collect();
                assert_eq!(text, expected.as_bytes());
                let mut back = vec![0; len];
                assert!(pack(&text, case, &mut back));
                assert_eq!(back, raw);
            }
        }
    }

    #[test]
    fn every_other_character_is_refused_at_every_place() {
        for case in [HexCase::Lower, HexCase::Upper] {
            for place in [0, 1, 17, 31, 32, 63, 64, 65] {
                for character in 0..=255u8 {
                    let mut text = vec![b'0'; 66];
                    text[place] = character;
                    let good = case.digits().contains(&character);
                    let mut out = vec![0; 33];
                    assert_eq!(pack(&text, case, &mut out), good, "{character} at {place}");
                    let mut scalar = vec![0; 33];
                    assert_eq!(pack_scalar(&text, case, &mut scalar), good);
                    if good {
                        assert_eq!(out, scalar);
                    }
                }
            }
        }
    }

    #[test]
    fn odd_and_mismatched_lengths_are_refused() {
        assert!(!pack(b"abc", HexCase::Lower, &mut [0; 1]));
        assert!(!pack(b"abcd", HexCase::Lower, &mut [0; 1]));
    }
}
