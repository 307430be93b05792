//! A set of integers that lie close together: a bit for each integer from the least to the greatest.
//!
//! Used for lists of IN (`expression/in_list`) and for the keys of a join's kept side, which the probing
//! source asks before it decodes other columns (`operators/join/members`). A few hundred kilobytes of bits
//! stay in a cache where a hash table does not. A set whose range is wide compared with its number of members
//! gets no bits. Its list is hashed then, or the join's own table is asked.
//!
//! `encodings` has a set of its own for lists: it holds integers of 128 bits and says of ranges of any width
//! what is no member. It is not used here, because it searches to find a member. Both sets were measured with
//! 500 scattered members on a busy machine. A hit took more than 140 ns in that set and 4 ns in a hashed one.
//! A miss took at least 8 ns and 3 ns.

use vector::Bitmap;

/// The set.
#[derive(Debug)]
pub struct IntBits {
    min: i64,
    words: Vec<u64>,
}

impl IntBits {
    /// The set of the values that `values` goes over, twice; None where a bit for each integer between them
    /// is more than `most` bits.
    pub fn new<I: Iterator<Item = i64>>(values: impl Fn() -> I, most: u64) -> Option<Self> {
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        values().for_each(|value| (low, high) = (low.min(value), high.max(value)));
        if low > high {
            return Some(Self { min: 0, words: Vec::new() });
        }
        let range = high.abs_diff(low);
        if range >= most {
            return None;
        }
        let mut words: Vec<u64> = Vec::new();
        let length = usize::try_from(range / 64 + 1).ok()?;
        words.try_reserve_exact(length).ok()?;
        words.resize(length, 0);
        for value in values() {
            let offset = value.abs_diff(low);
            if let Some(word) = usize::try_from(offset / 64).ok().and_then(|at| words.get_mut(at)) {
                *word |= 1 << (offset % 64);
            }
        }
        Some(Self { min: low, words })
    }

    /// Whether a value is in the set.
    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        let offset = value.wrapping_sub(self.min).cast_unsigned();
        let word = usize::try_from(offset / 64).ok().and_then(|at| self.words.get(at)).copied().unwrap_or(0);
        word >> (offset % 64) & 1 != 0
    }

    /// Rows whose value is in the set, ascending, found without a branch that depends on it.
    pub fn rows<T: Copy + Into<i64>>(&self, values: &[T], validity: Option<&Bitmap>) -> Vec<u32> {
        let mut rows = vec![0u32; values.len()];
        let mut count = 0;
        for (row, &value) in (0u32..).zip(values) {
            if let Some(place) = rows.get_mut(count) {
                *place = row;
            }
            count += usize::from(self.contains(value.into()));
        }
        rows.truncate(count);
        if let Some(validity) = validity {
            rows.retain(|&row| validity.get(row as usize));
        }
        rows
    }

    /// The same for rows whose values are `first`, `first + 1` and so on.
    pub fn consecutive_rows(&self, first: i64, rows: u32) -> Vec<u32> {
        // The row of the first bit.
        let skipped = i128::from(self.min) - i128::from(first);
        let from = usize::try_from(-skipped / 64).unwrap_or(0);
        let count = rows as usize / 64 + 2;
        let mut found = Vec::new();
        for (at, &word) in self.words.iter().enumerate().skip(from).take(count) {
            let base = skipped + at as i128 * 64;
            let mut word = word;
            while word != 0 {
                let row = u32::try_from(base + i128::from(word.trailing_zeros())).ok();
                found.extend(row.filter(|row| *row < rows));
                word &= word - 1;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Of values that follow each other the same rows are found as when the values are looked at.
        #[test]
        fn consecutive_values_are_found_as_any(
            keys in proptest::collection::vec(-300i64..300, 0..40),
            offset in prop_oneof![
                Just(0i64),
                Just(i64::MAX - 300),
                Just(i64::MIN + 300),
                any::<i32>().prop_map(i64::from),
            ],
            first in -400i64..400,
            rows in 1u32..500,
        ) {
            let keys: Vec<i64> = keys.iter().map(|key| key + offset).collect();
            let first = first.saturating_add(offset).min(i64::MAX - 500);
            let values: Vec<i64> = (0..rows).map(|row| first + i64::from(row)).collect();
            let Some(set) = IntBits::new(|| keys.iter().copied(), 600) else { panic!("the keys are close together") };
            prop_assert!(values.iter().all(|value| set.contains(*value) == keys.contains(value)));
            prop_assert_eq!(set.consecutive_rows(first, rows), set.rows(&values, None));
        }
    }
}
