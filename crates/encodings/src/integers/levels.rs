//! Levels: small numbers as one bitmap for each level. Level j has a bit for each value that is at least j.
//! It says whether the value is greater. So a value v costs v + 1 bits, and the largest value one bit less.
//! This beats packing if small numbers are by far the most frequent. (It is a wavelet tree of the unary code:
//! Grossi, Gupta, Vitter, SODA 2003.)
//!
//! Payload: base (zigzag), number of levels (1-15), then per level its bits in 64-bit words. Level 0 has a
//! bit for every row. Each further level has a bit for every one-bit of the level before. Row i is found by
//! counting bits, without decoding.

use vector::{Error, Result};

use super::Lane;
use crate::cursor::{Reader, Writer, zigzag};
use crate::kernels::levels;
use crate::options::EncodingId;

/// The most levels. A value is at most this much above the base.
pub(super) const MAX_LEVELS: usize = 15;

/// How many bytes a node of levels would take. `None` if the values are spread too far.
pub(super) fn bytes(values: &[i64]) -> Option<usize> {
    let low = values.iter().copied().min()?;
    let high = values.iter().copied().max()?;
    let range =
        usize::try_from(high.checked_sub(low)?).ok().filter(|range| (1..=MAX_LEVELS).contains(range))?;
    let mut counts = [0usize; MAX_LEVELS + 1];
    for &value in values {
        if let Some(count) = usize::try_from(value - low).ok().and_then(|value| counts.get_mut(value)) {
            *count += 1;
        }
    }
    let mut left = values.len();
    let mut bytes = 2 + (64 - zigzag(low).leading_zeros() as usize).div_ceil(7).max(1);
    for count in counts.iter().take(range) {
        bytes += left.div_ceil(64) * 8;
        left -= count;
    }
    Some(bytes)
}

/// Appends a node. `bytes` must have accepted the values.
pub(super) fn write(values: &[i64], out: &mut Writer) {
    let low = values.iter().copied().min().unwrap_or(0);
    let high = values.iter().copied().max().unwrap_or(0);
    let range = usize::try_from(high.wrapping_sub(low)).unwrap_or(0).min(MAX_LEVELS);
    out.u8(EncodingId::Levels.tag());
    out.zigzag(low);
    out.u8(u8::try_from(range).unwrap_or(0));
    let above = |value: &i64| u8::try_from(value.wrapping_sub(low)).unwrap_or(u8::MAX);
    let mut open: Vec<u8> = values.iter().map(above).collect();
    for level in (0u8..).take(range) {
        let mut words = vec![0u64; open.len().div_ceil(64)];
        for (word, values) in words.iter_mut().zip(open.chunks(64)) {
            for (bit, &value) in values.iter().enumerate() {
                *word |= u64::from(value > level) << bit;
            }
        }
        words.iter().for_each(|&word| out.u64(word));
        // With random values, half of the branches of `retain` would be mispredicted. So each value is
        // written, and the place advances or not.
        let mut kept = 0;
        for at in 0..open.len() {
            let value = open.get(at).copied().unwrap_or(0);
            if let Some(slot) = open.get_mut(kept) {
                *slot = value;
            }
            kept += usize::from(value > level);
        }
        open.truncate(kept);
    }
}

/// A node of levels over its bytes.
#[derive(Debug)]
pub(super) struct Levels<'a> {
    base: i64,
    rows: usize,
    levels: Vec<&'a [[u8; 8]]>,
}

impl<'a> Levels<'a> {
    pub(super) fn open(reader: &mut Reader<'a>, rows: usize) -> Result<Self> {
        let base = reader.zigzag()?;
        let count = usize::from(reader.u8()?);
        if !(1..=MAX_LEVELS).contains(&count) {
            return Err(Error::corrupt(format!("{count} levels")));
        }
        let mut levels = Vec::with_capacity(count);
        let mut left = rows;
        for _ in 0..count {
            let (words, _) = reader.take(left.div_ceil(64) * 8)?.as_chunks::<8>();
            levels.push(words);
            let ones: usize = words.iter().map(|word| u64::from_le_bytes(*word).count_ones() as usize).sum();
            if ones > left {
                return Err(Error::corrupt("bits past the end of a level"));
            }
            left = ones;
        }
        Ok(Self { base, rows, levels })
    }

    pub(super) fn decode_into<T: Lane>(&self, out: &mut Vec<T>) {
        levels::decode(&self.levels, self.rows, T::wrap(self.base), out);
    }

    pub(super) fn get(&self, row: usize) -> i64 {
        let mut at = row;
        for (level, words) in (0i64..).zip(&self.levels) {
            let word = words.get(at / 64).map_or(0, |word| u64::from_le_bytes(*word));
            if (word >> (at % 64)) & 1 == 0 {
                return self.base.wrapping_add(level);
            }
            let before: usize =
                words.iter().take(at / 64).map(|word| u64::from_le_bytes(*word).count_ones() as usize).sum();
            at = before + (word & ((1 << (at % 64)) - 1)).count_ones() as usize;
        }
        self.base.wrapping_add(i64::try_from(self.levels.len()).unwrap_or(0))
    }
}
