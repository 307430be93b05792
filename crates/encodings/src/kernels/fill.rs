//! Fills vectors: running sums, arithmetic sequences and runs.

use super::dispatch;
use crate::integers::Lane;

/// Turns differences into values: each becomes the sum of those before it and itself. The first value is
/// `first`, and its own difference is ignored. Wraps in the lane's width.
#[inline]
pub fn running_sum<T: Lane>(first: T, values: &mut [T]) {
    let mut sum = first;
    let mut rest = values.iter_mut();
    if let Some(value) = rest.next() {
        *value = first;
    }
    for value in rest {
        sum = sum.plus(*value);
        *value = sum;
    }
}

dispatch! {
    /// Writes `first`, `first + step`, ... over the slice, wrapping.
    pub(crate) fn sequence[T: Lane](first: i64, step: i64, values: &mut [T]) = sequence_body
}

#[inline(always)]
fn sequence_body<T: Lane>(first: i64, step: i64, values: &mut [T]) {
    for (index, value) in (0i64..).zip(values) {
        *value = T::wrap(first.wrapping_add(step.wrapping_mul(index)));
    }
}

dispatch! {
    /// Turns each value into itself times `factor` plus `base`, wrapping.
    pub(crate) fn scale[T: Lane](values: &mut [T], factor: T, base: T) = scale_body
}

#[inline(always)]
fn scale_body<T: Lane>(values: &mut [T], factor: T, base: T) {
    for value in values {
        *value = value.times(factor).plus(base);
    }
}

/// Runs up to this long are written as one store of fixed length.
const SHORT: usize = 8;

/// Appends each value as often as its run is long. Run i ends at `ends[i]`, counted from the present end of
/// `out`. Ends that do not ascend add nothing.
pub fn runs<T: Lane>(ends: &[u32], values: &[T], out: &mut Vec<T>) {
    let start = out.len();
    let rows = ends.last().map_or(0, |&end| end as usize);
    out.resize(start + rows, T::default());
    let Some(out) = out.get_mut(start..) else { return };
    let mut at = 0;
    for (&end, &value) in ends.iter().zip(values) {
        let end = end as usize;
        // Writing past the end of a short run does no harm, as the next run overwrites it.
        match out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<SHORT>()) {
            Some(short) if end <= at + SHORT => *short = [value; SHORT],
            _ => {
                if let Some(run) = out.get_mut(at..end) {
                    run.fill(value);
                }
            }
        }
        at = at.max(end);
    }
}
