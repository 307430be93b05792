//! Compares unpacked values with a range: one bit a value.

/// Sets bit i of `words` if `values[i] - low <= span` (wrapping), so if the value is in `low..=low + span`.
/// `words` must hold a bit for every value. Its bits are overwritten.
pub fn in_range32(values: &[u32], low: u32, span: u32, words: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if super::has_avx2() {
        // SAFETY: AVX2 was just detected.
        unsafe { in_range32_avx2(values, low, span, words) };
        return;
    }
    in_range32_body(values, low, span, words);
}

#[inline(always)]
fn in_range32_body(values: &[u32], low: u32, span: u32, words: &mut [u64]) {
    for (word, values) in words.iter_mut().zip(values.chunks(64)) {
        *word = 0;
        for (bit, value) in values.iter().enumerate() {
            *word |= u64::from(value.wrapping_sub(low) <= span) << bit;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]
fn in_range32_avx2(values: &[u32], low: u32, span: u32, words: &mut [u64]) {
    use std::arch::x86_64::{
        __m256i, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_loadu_si256, _mm256_min_epu32,
        _mm256_movemask_ps, _mm256_set1_epi32, _mm256_sub_epi32,
    };
    let lows = _mm256_set1_epi32(low.cast_signed());
    let spans = _mm256_set1_epi32(span.cast_signed());
    let (full, tail) = values.as_chunks::<64>();
    let (head, rest) = words.split_at_mut(full.len().min(words.len()));
    for (word, values) in head.iter_mut().zip(full) {
        *word = 0;
        for (group, eight) in values.as_chunks::<8>().0.iter().enumerate() {
            let pointer: *const __m256i = eight.as_ptr().cast();
            // SAFETY: `eight` is 32 readable bytes; the load needs no alignment.
            let value = unsafe { _mm256_loadu_si256(pointer) };
            let above = _mm256_sub_epi32(value, lows);
            // Unsigned a <= b is min(a, b) == a.
            let inside = _mm256_cmpeq_epi32(_mm256_min_epu32(above, spans), above);
            let bits = _mm256_movemask_ps(_mm256_castsi256_ps(inside)).cast_unsigned();
            *word |= u64::from(bits) << (group * 8);
        }
    }
    in_range32_body(tail, low, span, rest);
}

super::dispatch! {
    /// The same for 64-bit values.
    pub(crate) fn in_range64[](values: &[u64], low: u64, span: u64, words: &mut [u64]) = in_range64_body
}

#[inline(always)]
fn in_range64_body(values: &[u64], low: u64, span: u64, words: &mut [u64]) {
    for (word, values) in words.iter_mut().zip(values.chunks(64)) {
        *word = 0;
        for (bit, value) in values.iter().enumerate() {
            *word |= u64::from(value.wrapping_sub(low) <= span) << bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_agree_with_the_plain_loop() {
        for len in [0usize, 1, 63, 64, 65, 200, 1024] {
            let values: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
            for (low, span) in [(0, 0), (0, u32::MAX), (1 << 31, 1 << 30), (u32::MAX, 5), (77, 1 << 31)] {
                let (mut fast, mut plain) = (vec![u64::MAX; len.div_ceil(64)], vec![0; len.div_ceil(64)]);
                in_range32(&values, low, span, &mut fast);
                in_range32_body(&values, low, span, &mut plain);
                assert_eq!(fast, plain, "{len} {low} {span}");
                let wide: Vec<u64> = values.iter().map(|&v| v.into()).collect();
                if let Some(high) = low.checked_add(span) {
                    let mut words = vec![0; len.div_ceil(64)];
                    in_range64(&wide, low.into(), (high - low).into(), &mut words);
                    assert_eq!(words, plain);
                }
            }
        }
    }
}
