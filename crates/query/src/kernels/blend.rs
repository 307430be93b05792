//! Putting values where a mask says so. Called by CASE and COALESCE.

use super::{Lane, dispatch};

dispatch! {
    fn put_many[T: Copy, U: Copy, F: Fn(T) -> U](out: &mut [U], mask: &[u64], values: &[T], convert: F) = put_many_body
}

#[inline(always)]
fn put_many_body<T: Copy, U: Copy, F: Fn(T) -> U>(out: &mut [U], mask: &[u64], values: &[T], convert: F) {
    for ((out, values), &word) in out.chunks_mut(64).zip(values.chunks(64)).zip(mask) {
        match word {
            0 => {}
            u64::MAX => out.iter_mut().zip(values).for_each(|(out, &value)| *out = convert(value)),
            _ => {
                for ((out, &value), bit) in out.iter_mut().zip(values).zip(0u64..) {
                    let value = convert(value);
                    *out = if (word >> bit) & 1 == 1 { value } else { *out };
                }
            }
        }
    }
}

dispatch! {
    fn put_one[U: Copy](out: &mut [U], mask: &[u64], value: U) = put_one_body
}

#[inline(always)]
fn put_one_body<U: Copy>(out: &mut [U], mask: &[u64], value: U) {
    for (out, &word) in out.chunks_mut(64).zip(mask) {
        for (out, bit) in out.iter_mut().zip(0u64..) {
            *out = if (word >> bit) & 1 == 1 { value } else { *out };
        }
    }
}

/// Overwrites `out` with the lane's values, converted, where the mask has a one.
#[inline]
pub(crate) fn put<T: Copy, U: Copy>(
    out: &mut [U],
    mask: &[u64],
    values: Lane<'_, T>,
    convert: impl Fn(T) -> U,
) {
    match values {
        Lane::One(value) => put_one(out, mask, convert(value)),
        Lane::Many(values) => put_many(out, mask, values, convert),
    }
}
