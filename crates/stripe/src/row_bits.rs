//! Sets of row numbers as bits: bit `at` of the bytes stands for row number `first + at`, lowest bits first.
//!
//! A host keeps in them which rows of a stripe somebody has deleted. Invariant: bytes that end early are a
//! set that has none of the numbers beyond; no call reads or writes past them.

use std::ops::Range;

/// Whether this bit is set.
pub fn bit(bits: &[u8], at: u64) -> bool {
    byte_of(at).and_then(|byte| bits.get(byte)).is_some_and(|byte| byte & (1 << (at % 8)) != 0)
}

/// Sets this bit, if the bytes have it.
pub fn set_bit(bits: &mut [u8], at: u64) {
    if let Some(byte) = byte_of(at).and_then(|byte| bits.get_mut(byte)) {
        *byte |= 1 << (at % 8);
    }
}

/// How many bits before this one are set.
pub fn set_before(bits: &[u8], at: u64) -> usize {
    let whole = byte_of(at).unwrap_or(usize::MAX);
    let before: u32 = bits.get(..whole).map_or(0, |bytes| bytes.iter().map(|byte| byte.count_ones()).sum());
    let within = bits.get(whole).map_or(0, |byte| (byte & ((1 << (at % 8)) - 1)).count_ones());
    (before + within) as usize
}

/// One past the last number that the bytes reach over.
pub const fn end_row(first_row: u64, bits: &[u8]) -> u64 {
    first_row.saturating_add(bits.len() as u64 * 8)
}

/// The row numbers within `rows` whose bits are set, ascending; the first bit stands for `first_row`.
pub fn rows_in(first_row: u64, bits: &[u8], rows: Range<u64>) -> impl Iterator<Item = u64> + '_ {
    let end = end_row(first_row, bits);
    let rows = rows.start.max(first_row)..rows.end.min(end);
    let from = byte_of(rows.start.saturating_sub(first_row)).unwrap_or(usize::MAX);
    let to = usize::try_from(rows.end.saturating_sub(first_row).div_ceil(8)).unwrap_or(0);
    let bytes = bits.get(from..to.max(from)).unwrap_or_default();
    let base = first_row.saturating_add(from as u64 * 8);
    bytes.iter().zip(0u64..).filter(|(byte, _)| **byte != 0).flat_map(move |(&byte, at)| {
        let rows = rows.clone();
        let of_byte = (0..8u64).filter(move |bit| byte & (1 << bit) != 0).map(move |bit| base + at * 8 + bit);
        of_byte.filter(move |row| rows.contains(row))
    })
}

fn byte_of(at: u64) -> Option<usize> {
    usize::try_from(at / 8).ok()
}

#[cfg(test)]
mod tests {
    use super::{bit, end_row, rows_in, set_before, set_bit};

    #[test]
    fn bits_stand_for_rows() {
        let mut bits = vec![0u8; 4];
        for at in [0, 7, 8, 31] {
            set_bit(&mut bits, at);
        }
        assert!(bit(&bits, 7) && !bit(&bits, 9) && !bit(&bits, 32));
        let all: Vec<u64> = rows_in(100, &bits, 0..u64::MAX).collect();
        assert_eq!(all, [100, 107, 108, 131]);
        assert_eq!(rows_in(100, &bits, 101..131).collect::<Vec<_>>(), [107, 108]);
        assert_eq!(rows_in(100, &bits, 108..109).collect::<Vec<_>>(), [108]);
        assert_eq!(rows_in(100, &bits, 132..900).count(), 0);
        assert_eq!(rows_in(100, &bits, 0..100).count(), 0);
    }

    #[test]
    fn nothing_is_past_the_end() {
        let mut bits = [0xff; 2];
        set_bit(&mut bits, 16);
        set_bit(&mut bits, u64::MAX);
        assert!(bit(&bits, 15) && !bit(&bits, 16) && !bit(&bits, u64::MAX));
        assert_eq!(rows_in(u64::MAX - 8, &bits, 0..u64::MAX).count(), 8);
        assert_eq!((end_row(5, &bits), end_row(u64::MAX - 8, &bits)), (21, u64::MAX));
        assert_eq!(rows_in(7, &[], 0..u64::MAX).count(), 0);
    }

    #[test]
    fn set_bits_are_counted() {
        let bits = [0b1000_0001, 0b10, 0xff];
        let count = |at| (0..at).filter(|&at| bit(&bits, at)).count();
        for at in 0..24 {
            assert_eq!(set_before(&bits, at), count(at), "{at}");
        }
    }
}
