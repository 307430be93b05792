//! Comparisons to bits: 64 verdicts of one byte each, packed into a word. Called by the functions of
//! `expression`.

use super::{Lane, dispatch};

/// Packs 64 bytes that are 0 or 1 into a word, first byte to the lowest bit.
#[inline(always)]
pub(super) fn pack(bytes: &[u8; 64]) -> u64 {
    // Each multiplication gathers the lowest bits of eight bytes in the topmost byte.
    let (groups, _) = bytes.as_chunks::<8>();
    groups.iter().rev().fold(0, |word, group| {
        let bits = u64::from_le_bytes(*group).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        (word << 8) | bits
    })
}

dispatch! {
    fn test_one[T: Copy, F: Fn(T) -> bool](values: &[T], f: F) -> Vec<u64> = test_one_body
}

#[inline(always)]
fn test_one_body<T: Copy, F: Fn(T) -> bool>(values: &[T], f: F) -> Vec<u64> {
    let mut words = Vec::with_capacity(values.len().div_ceil(64));
    let (chunks, tail) = values.as_chunks::<64>();
    for chunk in chunks {
        let mut bytes = [0u8; 64];
        for (byte, &value) in bytes.iter_mut().zip(chunk) {
            *byte = u8::from(f(value));
        }
        words.push(pack(&bytes));
    }
    if !tail.is_empty() {
        let bits = tail.iter().rev().fold(0, |word, &value| (word << 1) | u64::from(f(value)));
        words.push(bits);
    }
    words
}

dispatch! {
    fn test_two[A: Copy, B: Copy, F: Fn(A, B) -> bool](a: &[A], b: &[B], f: F) -> Vec<u64> = test_two_body
}

#[inline(always)]
fn test_two_body<A: Copy, B: Copy, F: Fn(A, B) -> bool>(a: &[A], b: &[B], f: F) -> Vec<u64> {
    let mut words = Vec::with_capacity(a.len().div_ceil(64));
    let ((a_chunks, a_tail), (b_chunks, b_tail)) = (a.as_chunks::<64>(), b.as_chunks::<64>());
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        let mut bytes = [0u8; 64];
        for ((byte, &a), &b) in bytes.iter_mut().zip(a).zip(b) {
            *byte = u8::from(f(a, b));
        }
        words.push(pack(&bytes));
    }
    if !a_tail.is_empty() {
        let verdicts = a_tail.iter().zip(b_tail).map(|(&a, &b)| f(a, b));
        words.push(verdicts.zip(0..).fold(0, |word, (verdict, bit)| word | (u64::from(verdict) << bit)));
    }
    words
}

/// One bit for each row: what `f` says of its values. `rows` counts where both are constants; bits past the
/// end are unspecified.
#[inline]
pub(crate) fn test<A: Copy, B: Copy>(
    a: Lane<'_, A>,
    b: Lane<'_, B>,
    rows: usize,
    f: impl Fn(A, B) -> bool,
) -> Vec<u64> {
    match (a, b) {
        (Lane::Many(a), Lane::Many(b)) => test_two(a, b, f),
        (Lane::Many(a), Lane::One(b)) => test_one(a, |a| f(a, b)),
        (Lane::One(a), Lane::Many(b)) => test_one(b, |b| f(a, b)),
        (Lane::One(a), Lane::One(b)) => vec![if f(a, b) { u64::MAX } else { 0 }; rows.div_ceil(64)],
    }
}

/// One bit for each value: what `f` says of it.
#[inline]
pub(crate) fn test_each<T: Copy>(values: &[T], f: impl Fn(T) -> bool) -> Vec<u64> {
    test_one(values, f)
}
