//! Hashes of join keys, a column at a time.
//!
//! Called by `table`. A folded multiplication mixes each word (the idea is wyhash's); the low bits choose a
//! slot, the high ones are the tag kept in it.

use vector::ByteViews;

use super::keys::{KeyColumn, KeyValues};

const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0xd6e8_feb8_6659_fd93;

/// Mixes a word.
#[inline]
pub fn mix(word: u64) -> u64 {
    fold(word ^ FIRST, SECOND)
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
fn wide(value: u128) -> u64 {
    fold((value as u64) ^ FIRST, ((value >> 64) as u64) ^ SECOND)
}

fn bytes(value: &[u8]) -> u64 {
    let mut hash = (value.len() as u64).wrapping_mul(FIRST);
    let (words, rest) = value.as_chunks::<8>();
    for word in words {
        hash = fold(hash ^ u64::from_le_bytes(*word), SECOND);
    }
    let last = rest.iter().fold(0, |word, &byte| (word << 8) | u64::from(byte));
    fold(hash ^ last, SECOND ^ FIRST)
}

#[inline]
fn view(views: &ByteViews, row: usize) -> u64 {
    match views.views().get(row) {
        Some(view) if view.len() <= vector::INLINE_BYTES => wide(view.inline_key()),
        _ => bytes(views.get(row)),
    }
}

/// The hash of each row over all columns.
pub fn hash(columns: &[KeyColumn], rows: usize, hashes: &mut Vec<u64>) {
    hashes.clear();
    for (at, column) in columns.iter().enumerate() {
        if at == 0 {
            match &column.values {
                KeyValues::Int(values) => hashes.extend(values.iter().map(|&v| mix(v.cast_unsigned()))),
                KeyValues::Wide(values) => hashes.extend(values.iter().map(|&v| wide(v.cast_unsigned()))),
                KeyValues::Bytes(views) => hashes.extend((0..views.len()).map(|row| view(views, row))),
                KeyValues::Fixed(fixed) => hashes.extend((0..fixed.len()).map(|row| bytes(fixed.get(row)))),
            }
            continue;
        }
        let add = |hash: &mut u64, other: u64| *hash = fold(*hash ^ FIRST, other ^ SECOND);
        match &column.values {
            KeyValues::Int(values) => {
                hashes.iter_mut().zip(values).for_each(|(hash, &v)| add(hash, v.cast_unsigned()));
            }
            KeyValues::Wide(values) => {
                hashes.iter_mut().zip(values).for_each(|(hash, &v)| add(hash, wide(v.cast_unsigned())));
            }
            KeyValues::Bytes(views) => {
                hashes.iter_mut().enumerate().for_each(|(row, hash)| add(hash, view(views, row)));
            }
            KeyValues::Fixed(fixed) => {
                hashes.iter_mut().enumerate().for_each(|(row, hash)| add(hash, bytes(fixed.get(row))));
            }
        }
    }
    hashes.resize(rows, 0);
}
