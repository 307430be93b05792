//! Bit-packing in blocks of up to 1,024 values: the interleaved layout of FastLanes (Afroozeh and Boncz, "The
//! FastLanes Compression Layout", VLDB 2023), without its reordering of rows.
//!
//! A block is seen as rows of one machine word for each lane: 32 lanes of 32-bit words for widths up to 32,
//! and 16 lanes of 64-bit words above. Value i is in lane `i % lanes` at row `i / lanes`. Each lane packs its
//! values end to end, low bits first, and word k of all lanes is stored together.
//!
//! So unpacking one row of values is the same shift and mask over one run of words. The compiler vectorises
//! it, lanes do not depend on each other, and value i is found with one division. Blocks of fewer than
//! [`STREAM_BELOW`] values are one stream of bits instead, because whole rows of lanes would waste more than
//! they save.

use std::mem::MaybeUninit;

use super::dispatch;
use crate::integers::Lane;

/// Values in a full block.
pub const BLOCK: usize = 1024;

/// Blocks with fewer values are a plain bit stream.
pub const STREAM_BELOW: usize = 128;

const LANES32: usize = 32;
const LANES64: usize = 16;
/// Bytes of one word of all lanes, for both widths.
const ROW_BYTES: usize = 128;

/// Bytes that `count` values of `width` bits take.
pub const fn packed_bytes(count: usize, width: u8) -> usize {
    let width = width as usize;
    if count < STREAM_BELOW {
        (count * width).div_ceil(8)
    } else if width <= 32 {
        (count.div_ceil(LANES32) * width).div_ceil(32) * ROW_BYTES
    } else {
        (count.div_ceil(LANES64) * width).div_ceil(64) * ROW_BYTES
    }
}

/// The low `width` bits set.
#[inline]
const fn mask(width: u8) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// Appends `values` (each of at most `width` bits; higher bits are dropped) to `out`.
pub fn pack(values: &[u64], width: u8, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + packed_bytes(values.len(), width), 0);
    let Some(bytes) = out.get_mut(start..) else { return };
    if width == 0 {
    } else if values.len() < STREAM_BELOW {
        pack_stream(values, width, bytes);
    } else if width <= 32 {
        pack_rows32(values, width, bytes);
    } else {
        pack_rows64(values, width, bytes);
    }
}

fn pack_stream(values: &[u64], width: u8, bytes: &mut [u8]) {
    let mut buffer = 0u128;
    let mut held = 0u32;
    let mut out = bytes.iter_mut();
    for value in values {
        buffer |= u128::from(value & mask(width)) << held;
        held += u32::from(width);
        while held >= 8 {
            if let (Some(byte), [low, ..]) = (out.next(), buffer.to_le_bytes()) {
                *byte = low;
            }
            buffer >>= 8;
            held -= 8;
        }
    }
    if let (Some(byte), [low, ..]) = (out.next(), buffer.to_le_bytes()) {
        *byte = low;
    }
}

dispatch! {
    pub(crate) fn pack_rows32[](values: &[u64], width: u8, bytes: &mut [u8]) = pack_rows32_body
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn pack_rows32_body(values: &[u64], width: u8, bytes: &mut [u8]) {
    let keep = mask(width);
    let (words, _) = bytes.as_chunks_mut::<4>();
    let mut bit = 0usize;
    for row in values.chunks(LANES32) {
        let (word, shift) = (bit / 32, bit % 32);
        // A value of up to 32 bits, shifted by up to 31, spans two words. Both halves are built at once.
        let mut wide = [0u64; LANES32];
        for (wide, value) in wide.iter_mut().zip(row) {
            *wide = (value & keep) << shift;
        }
        let (current, next) = (word * LANES32, (word + 1) * LANES32);
        if let Some(words) = words.get_mut(current..next) {
            for (word, wide) in words.iter_mut().zip(wide) {
                *word = (u32::from_le_bytes(*word) | wide as u32).to_le_bytes();
            }
        }
        if shift + usize::from(width) > 32
            && let Some(words) = words.get_mut(next..next + LANES32)
        {
            for (word, wide) in words.iter_mut().zip(wide) {
                *word = ((wide >> 32) as u32).to_le_bytes();
            }
        }
        bit += usize::from(width);
    }
}

fn pack_rows64(values: &[u64], width: u8, bytes: &mut [u8]) {
    let keep = mask(width);
    let (words, _) = bytes.as_chunks_mut::<8>();
    let mut bit = 0usize;
    for row in values.chunks(LANES64) {
        let (word, shift) = (bit / 64, bit % 64);
        let (current, next) = (word * LANES64, (word + 1) * LANES64);
        if let Some(words) = words.get_mut(current..next) {
            for (word, value) in words.iter_mut().zip(row) {
                *word = (u64::from_le_bytes(*word) | ((value & keep) << shift)).to_le_bytes();
            }
        }
        if shift + usize::from(width) > 64
            && let Some(words) = words.get_mut(next..next + LANES64)
        {
            for (word, value) in words.iter_mut().zip(row) {
                *word = ((value & keep) >> (64 - shift)).to_le_bytes();
            }
        }
        bit += usize::from(width);
    }
}

/// Appends `count` values of `width` bits with `base` added, wrapping in the lane's width. `bytes` must hold
/// `packed_bytes(count, width)` bytes. If it is shorter, returns false and appends nothing.
#[must_use]
pub fn unpack<T: Lane>(bytes: &[u8], count: usize, width: u8, base: i64, out: &mut Vec<T>) -> bool {
    if bytes.len() < packed_bytes(count, width) || width > 64 {
        return false;
    }
    let base = T::wrap(base);
    if width == 0 {
        out.resize(out.len() + count, base);
        return true;
    }
    if count < STREAM_BELOW {
        out.extend((0..count).map(|i| base.add(stream_value(bytes, i, width))));
        return true;
    }
    let lanes = if width <= 32 { LANES32 } else { LANES64 };
    let written = count.div_ceil(lanes) * lanes;
    let len = out.len();
    out.reserve(written);
    let Some(spare) = out.spare_capacity_mut().get_mut(..written) else { return false };
    if width <= 32 {
        unpack_rows32(bytes, width, base, spare);
    } else {
        unpack_rows64(bytes, width, base, spare);
    }
    // SAFETY: `written` >= `count` values of capacity were reserved, and the kernels write every value of the
    // slice they are given (its length is a whole number of rows).
    unsafe { out.set_len(len + count) };
    true
}

dispatch! {
    pub(crate) fn unpack_rows32[T: Lane](bytes: &[u8], width: u8, base: T, out: &mut [MaybeUninit<T>]) = unpack_rows32_body
}

dispatch! {
    pub(crate) fn unpack_rows64[T: Lane](bytes: &[u8], width: u8, base: T, out: &mut [MaybeUninit<T>]) = unpack_rows64_body
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn unpack_rows32_body<T: Lane>(bytes: &[u8], width: u8, base: T, out: &mut [MaybeUninit<T>]) {
    const EMPTY: [[u8; 4]; LANES32] = [[0; 4]; LANES32];
    let keep = mask(width) as u32;
    let (rows, _) = bytes.as_chunks::<4>().0.as_chunks::<LANES32>();
    let mut bit = 0usize;
    for out in out.as_chunks_mut::<LANES32>().0 {
        let (row, shift) = (bit / 32, (bit % 32) as u32);
        let current = rows.get(row).unwrap_or(&EMPTY);
        if shift + u32::from(width) <= 32 {
            for (out, word) in out.iter_mut().zip(current) {
                out.write(base.add32((u32::from_le_bytes(*word) >> shift) & keep));
            }
        } else {
            let next = rows.get(row + 1).unwrap_or(&EMPTY);
            for ((out, word), next) in out.iter_mut().zip(current).zip(next) {
                let low = u32::from_le_bytes(*word) >> shift;
                let high = u32::from_le_bytes(*next) << (32 - shift);
                out.write(base.add32((low | high) & keep));
            }
        }
        bit += usize::from(width);
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn unpack_rows64_body<T: Lane>(bytes: &[u8], width: u8, base: T, out: &mut [MaybeUninit<T>]) {
    const EMPTY: [[u8; 8]; LANES64] = [[0; 8]; LANES64];
    let keep = mask(width);
    let (rows, _) = bytes.as_chunks::<8>().0.as_chunks::<LANES64>();
    let mut bit = 0usize;
    for out in out.as_chunks_mut::<LANES64>().0 {
        let (row, shift) = (bit / 64, (bit % 64) as u32);
        let current = rows.get(row).unwrap_or(&EMPTY);
        if shift + u32::from(width) <= 64 {
            for (out, word) in out.iter_mut().zip(current) {
                out.write(base.add((u64::from_le_bytes(*word) >> shift) & keep));
            }
        } else {
            let next = rows.get(row + 1).unwrap_or(&EMPTY);
            for ((out, word), next) in out.iter_mut().zip(current).zip(next) {
                let low = u64::from_le_bytes(*word) >> shift;
                let high = u64::from_le_bytes(*next) << (64 - shift);
                out.write(base.add((low | high) & keep));
            }
        }
        bit += usize::from(width);
    }
}

/// The value at `index` of a block of `count` values. `None` if the bytes are too short.
#[inline]
pub fn get(bytes: &[u8], count: usize, width: u8, index: usize) -> Option<u64> {
    if width == 0 {
        return Some(0);
    }
    let width_bits = usize::from(width);
    if count < STREAM_BELOW {
        return (bytes.len() >= packed_bytes(count, width)).then(|| stream_value(bytes, index, width));
    }
    if width <= 32 {
        let (bit, lane) = ((index / LANES32) * width_bits, index % LANES32);
        let (word, shift) = (bit / 32, bit % 32);
        let (words, _) = bytes.as_chunks::<4>();
        let low = u64::from(u32::from_le_bytes(*words.get(word * LANES32 + lane)?));
        let high = match shift + width_bits > 32 {
            true => u64::from(u32::from_le_bytes(*words.get((word + 1) * LANES32 + lane)?)),
            false => 0,
        };
        Some(((low | (high << 32)) >> shift) & mask(width))
    } else {
        let (bit, lane) = ((index / LANES64) * width_bits, index % LANES64);
        let (word, shift) = (bit / 64, bit % 64);
        let (words, _) = bytes.as_chunks::<8>();
        let low = u64::from_le_bytes(*words.get(word * LANES64 + lane)?);
        let high = match shift + width_bits > 64 {
            true => u64::from_le_bytes(*words.get((word + 1) * LANES64 + lane)?) << (64 - shift),
            false => 0,
        };
        Some(((low >> shift) | high) & mask(width))
    }
}

/// Value `index` of a bit stream. Bits past its end read as zero.
#[inline]
fn stream_value(bytes: &[u8], index: usize, width: u8) -> u64 {
    let bit = index * usize::from(width);
    let (byte, shift) = (bit / 8, bit % 8);
    let window = bytes.get(byte..).unwrap_or(&[]);
    let mut held = [0u8; 16];
    let len = window.len().min(9);
    if let (Some(held), Some(window)) = (held.get_mut(..len), window.get(..len)) {
        held.copy_from_slice(window);
    }
    #[allow(clippy::cast_possible_truncation)]
    let value = (u128::from_le_bytes(held) >> shift) as u64;
    value & mask(width)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_width_and_length_comes_back() {
        for width in 0..=64u8 {
            for count in [0, 1, 5, 127, 128, 129, 500, 1000, 1023, 1024] {
                let mut state = u64::from(width) + 1;
                let values: Vec<u64> = (0..count)
                    .map(|_| {
                        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                        (state ^ (state >> 31)) & mask(width)
                    })
                    .collect();
                let mut bytes = Vec::new();
                pack(&values, width, &mut bytes);
                assert_eq!(bytes.len(), packed_bytes(count, width));
                let mut out: Vec<i64> = vec![9];
                assert!(unpack(&bytes, count, width, -7, &mut out));
                let want: Vec<i64> = values.iter().map(|v| v.cast_signed().wrapping_sub(7)).collect();
                assert_eq!(out.get(1..).unwrap(), want, "width {width}, {count} values");
                for (i, value) in values.iter().enumerate() {
                    assert_eq!(get(&bytes, count, width, i), Some(*value));
                }
                if width <= 16 {
                    let mut out: Vec<i16> = Vec::new();
                    assert!(unpack(&bytes, count, width, 5, &mut out));
                    let want: Vec<i16> = values.iter().map(|v| i16::wrap(v.cast_signed() + 5)).collect();
                    assert_eq!(out, want);
                }
                if width > 0 && count > 0 {
                    let short = bytes.get(..bytes.len() - 1).unwrap();
                    assert!(!unpack(short, count, width, 0, &mut out));
                }
            }
        }
    }

    #[test]
    fn the_portable_body_agrees_with_the_dispatched_one() {
        let values: Vec<u64> = (0..1024).map(|i| i * 37 % 8191).collect();
        let mut bytes = Vec::new();
        pack(&values, 13, &mut bytes);
        let mut portable = vec![0u8; bytes.len()];
        pack_rows32_body(&values, 13, &mut portable);
        assert_eq!(bytes, portable);
        let mut out: Vec<MaybeUninit<u32>> = vec![MaybeUninit::new(0); 1024];
        unpack_rows32_body(&bytes, 13, 0u32, &mut out);
        let mut want: Vec<u32> = Vec::new();
        assert!(unpack(&bytes, 1024, 13, 0, &mut want));
        // SAFETY: every element was initialised when the vector was made.
        assert!(out.iter().zip(&want).all(|(a, b)| unsafe { a.assume_init() } == *b));
    }
}
