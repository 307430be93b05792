//! Tests integers block by block: ranges of the packed domain become bits.

use vector::{Bitmap, Selection};

use crate::filter::IntCondition;
use crate::kernels::bitpack::BLOCK;
use crate::kernels::compare;

/// An IN list of up to this many values is compared value by value, with all rows at once. A longer one is
/// searched.
const MAX_RANGES: usize = 8;

const BLOCK_WORDS: usize = BLOCK / 64;

/// The test as a few disjoint ranges of 64-bit values. `None` if it has too many.
pub(super) fn ranges(test: &IntCondition) -> Option<Vec<(i128, i128)>> {
    match test {
        IntCondition::Never => Some(Vec::new()),
        IntCondition::Range { low, high, outside: false } => Some(vec![(*low, *high)]),
        IntCondition::Range { low, high, outside: true } => {
            let mut ranges = Vec::with_capacity(2);
            ranges.extend(low.checked_sub(1).map(|below| (i128::MIN, below)));
            ranges.extend(high.checked_add(1).map(|above| (above, i128::MAX)));
            Some(ranges)
        }
        IntCondition::Set(set) if set.values().len() <= MAX_RANGES => {
            Some(set.values().iter().map(|&value| (value, value)).collect())
        }
        IntCondition::Set(_) => None,
    }
}

/// True when a row of block `at` is selected.
pub(super) fn touches(selection: &Selection, at: usize) -> bool {
    match selection {
        Selection::All(_) => true,
        Selection::Rows(rows) => {
            let first = rows.partition_point(|&row| (row as usize) < at * BLOCK);
            rows.get(first).is_some_and(|&row| (row as usize) < (at + 1) * BLOCK)
        }
    }
}

/// Room for one unpacked block.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) narrow: Vec<u32>,
    pub(super) wide: Vec<i64>,
}

/// The bits of a chunk, handed out block by block.
pub(super) struct Words {
    words: Vec<u64>,
    rows: usize,
}

impl Words {
    pub(super) fn new(rows: usize) -> Self {
        Self { words: vec![0; rows.div_ceil(64)], rows }
    }

    pub(super) fn block(&mut self, at: usize) -> &mut [u64] {
        let end = ((at + 1) * BLOCK_WORDS).min(self.words.len());
        self.words.get_mut((at * BLOCK_WORDS).min(end)..end).unwrap_or(&mut [])
    }

    pub(super) fn finish(self) -> Bitmap {
        Bitmap::from_words(self.words, self.rows)
    }
}

/// Sets the first `count` bits.
pub(super) fn set_all(words: &mut [u64], count: usize) {
    crate::validity::fill(words, 0, count);
}

/// Sets or clears one bit.
pub(super) fn set(words: &mut [u64], at: usize, value: bool) {
    if let Some(word) = words.get_mut(at / 64) {
        *word = (*word & !(1 << (at % 64))) | (u64::from(value) << (at % 64));
    }
}

/// Sets the bits of 32-bit offsets within one of the ranges.
pub(super) fn mark_narrow(values: &[u32], ranges: &[(u64, u64)], words: &mut [u64]) {
    let mut more = [0u64; BLOCK_WORDS];
    for &(low, high) in ranges {
        // Ranges were cut to the block's width, which is at most 32 bits here.
        let (Ok(low), Ok(high)) = (u32::try_from(low), u32::try_from(high)) else { continue };
        compare::in_range32(values, low, high - low, &mut more);
        words.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
    }
}

/// Sets the bits of 64-bit offsets within one of the ranges.
pub(super) fn mark_wide(values: &[i64], ranges: &[(u64, u64)], words: &mut [u64]) {
    let mut more = [0u64; BLOCK_WORDS];
    let mut offsets = [0u64; BLOCK];
    for (offset, value) in offsets.iter_mut().zip(values) {
        *offset = value.cast_unsigned();
    }
    for &(low, high) in ranges {
        compare::in_range64(offsets.get(..values.len()).unwrap_or(&offsets), low, high - low, &mut more);
        words.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
    }
}

/// Sets the bits of values that pass, with a test for each value.
pub(super) fn mark_each(values: &[i64], test: &IntCondition, words: &mut [u64]) {
    for (word, values) in words.iter_mut().zip(values.chunks(64)) {
        for (bit, &value) in values.iter().enumerate() {
            *word |= u64::from(test.passes(i128::from(value))) << bit;
        }
    }
}

/// Sets the bits of decoded values that pass.
pub(super) fn mark_values(values: &[i64], test: &IntCondition, words: &mut [u64]) {
    let Some(ranges) = ranges(test) else { return mark_each(values, test, words) };
    // A shift of the domain by 2^63 turns signed order into unsigned order.
    let shift = 1i128 << 63;
    let shifted: Vec<(u64, u64)> = ranges
        .iter()
        .map(|&(low, high)| (low.clamp(-shift, shift) + shift, high.min(shift - 1).max(-shift - 1) + shift))
        .filter_map(|(low, high)| Some((u64::try_from(low).ok()?, u64::try_from(high).ok()?)))
        .filter(|(low, high)| low <= high)
        .collect();
    let mut offsets = [0u64; BLOCK];
    for (offset, value) in offsets.iter_mut().zip(values) {
        *offset = value.cast_unsigned() ^ (1 << 63);
    }
    let mut more = [0u64; BLOCK_WORDS];
    for (low, high) in shifted {
        compare::in_range64(offsets.get(..values.len()).unwrap_or(&offsets), low, high - low, &mut more);
        words.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
    }
}
