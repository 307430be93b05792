//! Decodes levels. For 64 rows at a time, each level's bits are spread over the rows that the level before
//! left open. A row's value is the number of levels in which its bit is set.

use crate::integers::Lane;

/// The most levels a node has.
const MAX_LEVELS: usize = 15;

/// Appends `rows` values. Bits that are missing read as zero.
pub fn decode<T: Lane>(levels: &[&[[u8; 8]]], rows: usize, base: T, out: &mut Vec<T>) {
    #[cfg(target_arch = "x86_64")]
    if super::has_avx2() {
        // SAFETY: every processor with AVX2 has BMI2 and POPCNT too (all came with Haswell and Zen), and AVX2
        // was just detected.
        unsafe { decode_bmi2(levels, rows, base, out) };
        return;
    }
    decode_body(levels, rows, base, out, spread, bytes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
fn decode_bmi2<T: Lane>(levels: &[&[[u8; 8]]], rows: usize, base: T, out: &mut Vec<T>) {
    use std::arch::x86_64::_pdep_u64;
    decode_body(
        levels,
        rows,
        base,
        out,
        #[inline(always)]
        |bits, mask| _pdep_u64(bits, mask),
        #[inline(always)]
        |bits| _pdep_u64(bits, 0x0101_0101_0101_0101),
    );
}

/// The low bits of `bits`, each moved to a set bit of `mask`.
fn spread(bits: u64, mask: u64) -> u64 {
    let (mut out, mut rest, mut bits) = (0, mask, bits);
    while rest != 0 {
        let lowest = rest & rest.wrapping_neg();
        if bits & 1 == 1 {
            out |= lowest;
        }
        bits >>= 1;
        rest ^= lowest;
    }
    out
}

/// The low eight bits as eight bytes.
const fn bytes(bits: u64) -> u64 {
    // Copies the eight bits into every byte. Each byte keeps its own bit, which is moved to its lowest place.
    let own = bits.wrapping_mul(0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    (own.wrapping_add(0x00_40_60_70_78_7c_7e_7f) >> 7) & 0x0101_0101_0101_0101
}

#[inline(always)]
fn decode_body<T: Lane>(
    levels: &[&[[u8; 8]]],
    rows: usize,
    base: T,
    out: &mut Vec<T>,
    spread: impl Fn(u64, u64) -> u64,
    bytes: impl Fn(u64) -> u64,
) {
    out.reserve(rows);
    let mut at = [0usize; MAX_LEVELS];
    for start in (0..rows).step_by(64) {
        let mut sums = [0u64; 8];
        let mut open = u64::MAX;
        for (level, at) in levels.iter().zip(&mut at) {
            let wanted = open.count_ones() as usize;
            if wanted == 0 {
                break;
            }
            let bits = read(level, *at);
            *at += wanted;
            open = spread(bits, open);
            for (group, sum) in sums.iter_mut().enumerate() {
                *sum += bytes((open >> (group * 8)) & 0xff);
            }
        }
        if rows - start >= 64 {
            let mut values = [base; 64];
            for (values, sum) in values.as_chunks_mut::<8>().0.iter_mut().zip(sums) {
                for (value, level) in values.iter_mut().zip(sum.to_le_bytes()) {
                    *value = base.add32(u32::from(level));
                }
            }
            out.extend_from_slice(&values);
            continue;
        }
        for (index, sum) in sums.iter().enumerate() {
            let left = (rows - start).saturating_sub(index * 8).min(8);
            out.extend(sum.to_le_bytes().into_iter().take(left).map(|value| base.add32(u32::from(value))));
        }
    }
}

/// The 64 bits from bit `at` on.
#[inline(always)]
fn read(words: &[[u8; 8]], at: usize) -> u64 {
    let word = |index: usize| words.get(index).map_or(0, |word| u64::from_le_bytes(*word));
    let (index, shift) = (at / 64, at % 64);
    match shift {
        0 => word(index),
        _ => (word(index) >> shift) | (word(index + 1) << (64 - shift)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portable_parts_do_what_the_instructions_do() {
        for bits in 0..256u64 {
            let want = (0..8).fold(0, |all, bit| all | (((bits >> bit) & 1) << (bit * 8)));
            assert_eq!(bytes(bits), want);
        }
        assert_eq!(spread(0b101, 0b1101_0000), 0b1001_0000);
        assert_eq!(spread(u64::MAX, 0xf0f0), 0xf0f0);
        assert_eq!(spread(u64::MAX, 0), 0);
    }

    #[test]
    fn portable_and_dispatched_decoding_agree() {
        let level: Vec<[u8; 8]> =
            (0..16u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
        let levels: Vec<&[[u8; 8]]> = vec![&level, &level, &level];
        for rows in [0, 1, 63, 64, 65, 1000, 1024] {
            let (mut fast, mut plain): (Vec<i32>, Vec<i32>) = (Vec::new(), Vec::new());
            decode(&levels, rows, -2, &mut fast);
            decode_body(&levels, rows, -2, &mut plain, spread, bytes);
            assert_eq!(fast, plain);
            assert_eq!(fast.len(), rows);
        }
    }
}
