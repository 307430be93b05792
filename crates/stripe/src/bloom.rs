//! Bloom filters of one column chunk, for point look-ups on values that bounds cannot tell apart (random
//! keys).
//!
//! These are split-block filters (Putze, Sanders, Singler 2007): a sequence of 256-bit blocks. The high half
//! of a hash picks the block. The low half times eight odd constants picks one bit in each of the block's
//! eight 32-bit words. So a look-up touches one cache line.
//!
//! A filter is stored as its blocks, little-endian. The column footer has its place and checksum.

use vector::{LogicalType, Scalar};

use crate::distinct::{hash_bytes, hash_int};

const BLOCK_WORDS: usize = 8;
const BLOCK_BYTES: usize = BLOCK_WORDS * 4;
/// Bits per distinct value: about one false positive in a hundred.
const BITS_PER_VALUE: usize = 11;
/// The most blocks of a filter, however many values there are.
const MAX_BLOCKS: usize = 1 << 14;

/// The multipliers of the eight words, odd and unrelated.
const SALTS: [u32; BLOCK_WORDS] =
    [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f, 0x1656_67b1, 0xd3a2_646d, 0xfd70_46c5, 0xb55a_4f09];

/// The hash that a filter keeps of a value of this type. `None` for types whose equality is not that of their
/// bytes.
pub fn hash_scalar(logical: LogicalType, value: &Scalar) -> Option<u64> {
    match (logical, value) {
        (
            LogicalType::Int16
            | LogicalType::Int32
            | LogicalType::Int64
            | LogicalType::Date
            | LogicalType::Timestamp
            | LogicalType::UInt64,
            Scalar::Int(value),
        ) => Some(hash_int(*value)),
        (
            LogicalType::Uuid | LogicalType::Text | LogicalType::FixedBytes(_) | LogicalType::Bytes,
            Scalar::Bytes(bytes),
        ) => Some(hash_bytes(bytes)),
        _ => None,
    }
}

/// True for the types that can have a filter.
pub const fn supports(logical: LogicalType) -> bool {
    !matches!(logical, LogicalType::Bool | LogicalType::Float32 | LogicalType::Float64 | LogicalType::Numeric)
}

/// Builds the bytes of a filter over these hashes, about `distinct` of which differ.
pub fn build(hashes: impl Iterator<Item = u64>, distinct: u32) -> Vec<u8> {
    let blocks = (distinct as usize * BITS_PER_VALUE).div_ceil(BLOCK_BYTES * 8).clamp(1, MAX_BLOCKS);
    let mut words = vec![0u32; blocks * BLOCK_WORDS];
    for hash in hashes {
        let block = block_of(hash, blocks) * BLOCK_WORDS;
        if let Some(block) = words.get_mut(block..block + BLOCK_WORDS) {
            for (word, bit) in block.iter_mut().zip(bits_of(hash)) {
                *word |= bit;
            }
        }
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// False if no value with this hash was added. A filter without blocks, or one that is cut short, says true.
pub fn may_contain(filter: &[u8], hash: u64) -> bool {
    let blocks = filter.len() / BLOCK_BYTES;
    if blocks == 0 {
        return true;
    }
    let start = block_of(hash, blocks) * BLOCK_BYTES;
    let Some(block) = filter.get(start..start + BLOCK_BYTES) else { return true };
    block.chunks_exact(4).zip(bits_of(hash)).all(|(word, bit)| match word.try_into() {
        Ok(word) => u32::from_le_bytes(word) & bit != 0,
        Err(_) => true,
    })
}

/// Maps the high half of the hash onto `0..blocks` evenly.
#[inline]
fn block_of(hash: u64, blocks: usize) -> usize {
    usize::try_from(((hash >> 32) * blocks as u64) >> 32).unwrap_or(0)
}

#[inline]
fn bits_of(hash: u64) -> [u32; BLOCK_WORDS] {
    #[allow(clippy::cast_possible_truncation)]
    let low = hash as u32;
    SALTS.map(|salt| 1u32 << (low.wrapping_mul(salt) >> 27))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_added_and_little_else() {
        let filter = build((0..10_000).map(hash_int), 10_000);
        assert!(filter.len() <= 10_000 * 12 / 8);
        assert!((0..10_000).all(|value| may_contain(&filter, hash_int(value))));
        let wrong = (10_000..110_000).filter(|&value| may_contain(&filter, hash_int(value))).count();
        assert!(wrong < 3_000, "{wrong} false positives of 100000");
    }

    #[test]
    fn a_filter_of_nothing_says_no_and_no_filter_says_maybe() {
        let filter = build(std::iter::empty(), 0);
        assert!(!may_contain(&filter, hash_int(1)));
        assert!(may_contain(&[], hash_int(1)));
        assert!(may_contain(&[0; 31], hash_int(1)));
    }
}
