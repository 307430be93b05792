//! Element-wise loops over one or two lanes, with or without a flag that says whether any element failed.
//! Called by the functions of `expression`.

use super::{Lane, dispatch};

/// Rows that are checked before the first failure ends it.
const CHUNK: usize = 1_024;

dispatch! {
    /// `f` of each value.
    pub(crate) fn map[T: Copy, U, F: Fn(T) -> U](values: &[T], f: F) -> Vec<U> = map_body
}

#[inline(always)]
fn map_body<T: Copy, U, F: Fn(T) -> U>(values: &[T], f: F) -> Vec<U> {
    values.iter().map(|&value| f(value)).collect()
}

dispatch! {
    fn map_two[A: Copy, B: Copy, U, F: Fn(A, B) -> U](a: &[A], b: &[B], f: F) -> Vec<U> = map_two_body
}

#[inline(always)]
fn map_two_body<A: Copy, B: Copy, U, F: Fn(A, B) -> U>(a: &[A], b: &[B], f: F) -> Vec<U> {
    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
}

/// `f` of both lanes' values, `rows` of them where both are constants.
#[inline]
pub(crate) fn zip<A: Copy, B: Copy, U: Clone>(
    a: Lane<'_, A>,
    b: Lane<'_, B>,
    rows: usize,
    f: impl Fn(A, B) -> U,
) -> Vec<U> {
    match (a, b) {
        (Lane::Many(a), Lane::Many(b)) => map_two(a, b, f),
        (Lane::Many(a), Lane::One(b)) => map(a, |a| f(a, b)),
        (Lane::One(a), Lane::Many(b)) => map(b, |b| f(a, b)),
        (Lane::One(a), Lane::One(b)) => vec![f(a, b); rows],
    }
}

dispatch! {
    fn check_one[T: Copy, U, F: Fn(T) -> (U, bool)](values: &[T], f: F) -> (Vec<U>, bool) = check_one_body
}

#[inline(always)]
fn check_one_body<T: Copy, U, F: Fn(T) -> (U, bool)>(values: &[T], f: F) -> (Vec<U>, bool) {
    let results = values.iter().map(|&value| f(value).0).collect();
    // A loop of its own, without a store: both become vector instructions, which one loop for both often does
    // not.
    let failed = values
        .chunks(CHUNK)
        .any(|values| values.iter().fold(0u64, |failed, &value| failed | u64::from(f(value).1)) != 0);
    (results, failed)
}

dispatch! {
    fn check_two[A: Copy, B: Copy, U, F: Fn(A, B) -> (U, bool)](a: &[A], b: &[B], f: F) -> (Vec<U>, bool) = check_two_body
}

#[inline(always)]
fn check_two_body<A: Copy, B: Copy, U, F: Fn(A, B) -> (U, bool)>(a: &[A], b: &[B], f: F) -> (Vec<U>, bool) {
    let results = a.iter().zip(b).map(|(&a, &b)| f(a, b).0).collect();
    let failed = a
        .chunks(CHUNK)
        .zip(b.chunks(CHUNK))
        .any(|(a, b)| a.iter().zip(b).fold(0u64, |failed, (&a, &b)| failed | u64::from(f(a, b).1)) != 0);
    (results, failed)
}

/// `f` of each value, and whether it flagged any. It may flag a NULL row, so the caller checks the rows
/// again.
#[inline]
pub(crate) fn map_checked<T: Copy, U: Clone>(
    a: Lane<'_, T>,
    rows: usize,
    f: impl Fn(T) -> (U, bool),
) -> (Vec<U>, bool) {
    match a {
        Lane::Many(a) => check_one(a, f),
        Lane::One(a) => {
            let (result, bad) = f(a);
            (vec![result; rows], bad)
        }
    }
}

/// As `zip`, with `map_checked`'s flag.
#[inline]
pub(crate) fn zip_checked<A: Copy, B: Copy, U: Clone>(
    a: Lane<'_, A>,
    b: Lane<'_, B>,
    rows: usize,
    f: impl Fn(A, B) -> (U, bool),
) -> (Vec<U>, bool) {
    match (a, b) {
        (Lane::Many(a), Lane::Many(b)) => check_two(a, b, f),
        (Lane::Many(a), Lane::One(b)) => check_one(a, |a| f(a, b)),
        (Lane::One(a), Lane::Many(b)) => check_one(b, |b| f(a, b)),
        (Lane::One(a), Lane::One(b)) => {
            let (result, bad) = f(a, b);
            (vec![result; rows], bad)
        }
    }
}

dispatch! {
    /// Least and greatest value; None of no values.
    pub(crate) fn extremes[T: Copy + Ord](values: &[T]) -> Option<(T, T)> = extremes_body
}

#[inline(always)]
fn extremes_body<T: Copy + Ord>(values: &[T]) -> Option<(T, T)> {
    let first = *values.first()?;
    Some(values.iter().fold((first, first), |(low, high), &value| (low.min(value), high.max(value))))
}
