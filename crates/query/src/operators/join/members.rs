//! Which values of a key the kept side has, asked row by row by the probing source before it decodes the
//! other columns.
//!
//! `build` makes a set for each key that is a column of that source, `Join::prepare` hands them over.
//! Integers whose range is not too wide are bits: a few hundred kilobytes stay in a cache where the join's
//! table does not. Other keys ask the join's own table, or one of theirs alone where the join has several.
//! Invariant: a row that matches is never left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vector::{Bitmap, Values, Vector};

use super::build::BuildSink;
use super::table::{Scratch, Table};
use crate::{Members, Result};

/// A set of bits has at most this many for each kept row,
const SPARSE: u64 = 256;
/// or at most this many.
const SMALL: u64 = 1 << 23;
/// Kept rows for which one of several keys gets a table of its own: more take longer to put there than they
/// may save.
const TABLED: usize = 1 << 17;

/// The values of one key.
pub enum KeySet {
    /// Integers from `min` on, one bit each.
    Bits { min: i64, words: Vec<u64> },
    /// A table of this key alone.
    Own(Table),
    /// What the join's table has, whose only key it is.
    Joined,
}

impl KeySet {
    /// The values of a flat key vector; `only` when the join has no other key. None where it would cost more
    /// than it may save.
    pub fn new(key: &Vector, only: bool) -> Result<Option<Self>> {
        let bits = match &key.values {
            Values::Int16(values) => bits(values, key.validity.as_ref()),
            Values::Int32(values) => bits(values, key.validity.as_ref()),
            Values::Int64(values) => bits(values, key.validity.as_ref()),
            _ => None,
        };
        Ok(match bits {
            Some(bits) => Some(bits),
            None if only => Some(Self::Joined),
            None if key.len() <= TABLED => {
                Some(Self::Own(Table::new(std::slice::from_ref(key), key.len(), false)?))
            }
            None => None,
        })
    }

    /// Rows of a column whose value is in the set, ascending.
    fn rows(&self, column: &Vector, joined: &Table) -> Option<Vec<u32>> {
        let table = match self {
            Self::Bits { min, words } => match &column.values {
                Values::Int16(values) => return Some(found(values, column.validity.as_ref(), *min, words)),
                Values::Int32(values) => return Some(found(values, column.validity.as_ref(), *min, words)),
                Values::Int64(values) => return Some(found(values, column.validity.as_ref(), *min, words)),
                _ => return self.rows(&flat(column)?, joined),
            },
            Self::Own(table) => table,
            Self::Joined => joined,
        };
        let mut heads = Vec::new();
        table.find(&[column], column.len(), &mut Scratch::default(), &mut heads).ok()?;
        let mut rows = Vec::with_capacity(heads.len());
        rows.extend((0u32..).zip(&heads).filter(|(_, head)| **head != 0).map(|(row, _)| row));
        Some(rows)
    }
}

/// The column flat; None where it is so already.
fn flat(column: &Vector) -> Option<Vector> {
    let encoded =
        matches!(column.values, Values::Constant(..) | Values::Dictionary { .. } | Values::Runs { .. });
    encoded.then(|| column.clone().flatten())
}

fn bits<T: Copy + Into<i64>>(values: &[T], validity: Option<&Bitmap>) -> Option<KeySet> {
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    let valid = |row: usize| validity.is_none_or(|validity| validity.get(row));
    for (_, &value) in values.iter().enumerate().filter(|(row, _)| valid(*row)) {
        let value = value.into();
        (low, high) = (low.min(value), high.max(value));
    }
    if low > high {
        return Some(KeySet::Bits { min: 0, words: Vec::new() });
    }
    let range = high.abs_diff(low);
    if range >= (values.len() as u64).saturating_mul(SPARSE).max(SMALL) {
        return None;
    }
    let mut words: Vec<u64> = Vec::new();
    let length = usize::try_from(range / 64 + 1).ok()?;
    words.try_reserve_exact(length).ok()?;
    words.resize(length, 0);
    for (_, &value) in values.iter().enumerate().filter(|(row, _)| valid(*row)) {
        let offset = value.into().abs_diff(low);
        if let Some(word) = usize::try_from(offset / 64).ok().and_then(|at| words.get_mut(at)) {
            *word |= 1 << (offset % 64);
        }
    }
    Some(KeySet::Bits { min: low, words })
}

/// Rows whose bit is set, without a branch that depends on it.
fn found<T: Copy + Into<i64>>(values: &[T], validity: Option<&Bitmap>, min: i64, words: &[u64]) -> Vec<u32> {
    let mut rows = vec![0u32; values.len()];
    let mut count = 0;
    for (row, &value) in (0u32..).zip(values) {
        let offset = value.into().wrapping_sub(min).cast_unsigned();
        let word = usize::try_from(offset / 64).ok().and_then(|at| words.get(at)).copied().unwrap_or(0);
        if let Some(place) = rows.get_mut(count) {
            *place = row;
        }
        count += usize::from(word >> (offset % 64) & 1 != 0);
    }
    rows.truncate(count);
    if let Some(validity) = validity {
        rows.retain(|&row| validity.get(row as usize));
    }
    rows
}

/// Rows whose bit is set, of rows whose values are `first`, `first + 1` and so on.
fn found_consecutive(first: i64, rows: u32, min: i64, words: &[u64]) -> Vec<u32> {
    // The row of the first bit.
    let skipped = i128::from(min) - i128::from(first);
    let from = usize::try_from(-skipped / 64).unwrap_or(0);
    let count = rows as usize / 64 + 2;
    let mut found = Vec::new();
    for (at, &word) in words.iter().enumerate().skip(from).take(count) {
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

/// Asks one of the sets of a sink, and stops asking where nearly every row passes.
pub struct KeyMembers {
    sink: Arc<BuildSink>,
    /// Which of `Built::members`.
    of: usize,
    seen: AtomicU64,
    passed: AtomicU64,
}

/// Rows after which it is known whether asking pays.
const TRIED: u64 = 50_000;

impl KeyMembers {
    /// Members of what this sink has gathered.
    pub const fn new(sink: Arc<BuildSink>, of: usize) -> Self {
        Self { sink, of, seen: AtomicU64::new(0), passed: AtomicU64::new(0) }
    }

    /// Rows that pass, unless nearly all have: `asked` of the set and its join's table.
    fn ask(&self, rows: usize, asked: impl Fn(&KeySet, &Table) -> Option<Vec<u32>>) -> Option<Vec<u32>> {
        let (seen, passed) = (self.seen.load(Ordering::Relaxed), self.passed.load(Ordering::Relaxed));
        if seen > TRIED && passed > seen / 4 * 3 {
            return None;
        }
        let built = self.sink.built().ok()?;
        let (_, set) = built.members.get(self.of)?;
        let found = asked(set, &built.table)?;
        self.seen.fetch_add(rows as u64, Ordering::Relaxed);
        self.passed.fetch_add(found.len() as u64, Ordering::Relaxed);
        Some(found)
    }
}

impl Members for KeyMembers {
    fn select(&self, column: &Vector) -> Option<Vec<u32>> {
        let rows = self.ask(column.len(), |set, joined| set.rows(column, joined))?;
        (rows.len() < column.len()).then_some(rows)
    }

    fn select_consecutive(&self, first: i64, rows: u32) -> Option<Vec<u32>> {
        self.ask(rows as usize, |set, _| match set {
            KeySet::Bits { min, words } => Some(found_consecutive(first, rows, *min, words)),
            KeySet::Own(_) | KeySet::Joined => None,
        })
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
            offset in prop_oneof![Just(0i64), Just(i64::MAX - 300), Just(i64::MIN + 300), any::<i32>().prop_map(i64::from)],
            first in -400i64..400,
            rows in 1u32..500,
        ) {
            let keys: Vec<i64> = keys.iter().map(|key| key + offset).collect();
            let first = first.saturating_add(offset).min(i64::MAX - 500);
            let values: Vec<i64> = (0..rows).map(|row| first + i64::from(row)).collect();
            let Some(KeySet::Bits { min, words }) = bits(&keys, None) else { panic!("the keys are close together") };
            let expected = found(&values, None, min, &words);
            prop_assert_eq!(found_consecutive(first, rows, min, &words), expected);
        }
    }
}
