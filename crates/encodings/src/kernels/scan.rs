//! Passes over values that an encoder makes to choose: limits, counts, differences.

use super::dispatch;

dispatch! {
    /// The smallest and the largest of `first` and the values.
    pub(crate) fn limits[](values: &[i64], first: i64) -> (i64, i64) = limits_body
}

#[inline(always)]
fn limits_body(values: &[i64], first: i64) -> (i64, i64) {
    values.iter().fold((first, first), |(low, high), &value| (low.min(value), high.max(value)))
}

dispatch! {
    /// How many values are less than `limit` above `from` or, if `down`, below it.
    pub(crate) fn count_below[](values: &[i64], from: i64, down: bool, limit: u64) -> usize = count_below_body
}

#[inline(always)]
fn count_below_body(values: &[i64], from: i64, down: bool, limit: u64) -> usize {
    let near = |distance: i64| u64::from(distance.cast_unsigned() < limit);
    let count: u64 = if down {
        values.iter().map(|&value| near(from.wrapping_sub(value))).sum()
    } else {
        values.iter().map(|&value| near(value.wrapping_sub(from))).sum()
    };
    usize::try_from(count).unwrap_or(usize::MAX)
}

dispatch! {
    /// How many values differ from the one before them.
    pub(crate) fn changes[](values: &[i64]) -> usize = changes_body
}

#[inline(always)]
fn changes_body(values: &[i64]) -> usize {
    let next = values.get(1..).unwrap_or(&[]);
    let count: u64 = values.iter().zip(next).map(|(a, b)| u64::from(a != b)).sum();
    usize::try_from(count).unwrap_or(usize::MAX)
}

dispatch! {
    /// Appends the wrapped difference of each value to the one before it, with 0 for the first.
    pub(crate) fn differences[](values: &[i64], out: &mut Vec<i64>) = differences_body
}

#[inline(always)]
fn differences_body(values: &[i64], out: &mut Vec<i64>) {
    if !values.is_empty() {
        out.push(0);
    }
    let next = values.get(1..).unwrap_or(&[]);
    out.extend(values.iter().zip(next).map(|(a, b)| b.wrapping_sub(*a)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_count_what_they_say() {
        let values = [5, 5, i64::MIN, i64::MAX, 7];
        assert_eq!(limits(&values, 5), (i64::MIN, i64::MAX));
        assert_eq!(changes(&values), 3);
        assert_eq!(count_below(&values, 5, false, 3), 3, "5, 5 and 7");
        assert_eq!(count_below(&values, 7, true, 3), 3);
        let mut out = Vec::new();
        differences(&values, &mut out);
        assert_eq!(out, [0, 0, i64::MIN.wrapping_sub(5), -1, i64::MIN + 8]);
        differences(&[], &mut out);
        assert_eq!(out.len(), 5);
    }
}
