//! Filling: running sums, arithmetic sequences and runs.

use super::dispatch;
use crate::integers::Lane;

/// Turns differences into values: each becomes the sum of those before it and itself, starting from `first` for the first one
/// (whose own difference is ignored). Wraps in the lane's width.
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

/// Appends each value as often as its run is long: run i ends at `ends[i]`, counted from where `out` stands. Ends that do not
/// ascend add nothing.
pub fn runs<T: Lane>(ends: &[u32], values: &[T], out: &mut Vec<T>) {
    let start = out.len();
    if let Some(&end) = ends.last() {
        out.reserve(end as usize);
    }
    for (&end, &value) in ends.iter().zip(values) {
        let end = start + end as usize;
        if end > out.len() {
            out.resize(end, value);
        }
    }
}
