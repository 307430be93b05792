//! Codes for the integers of a key column. A row of several keys becomes one integer, of which each column
//! has some bits.
//!
//! Groups widen the codes while rows come (`cover`, in `key_codes`). Joins know all values of the kept side
//! before they look up others (`of`, in `operators/join/keys`), so their codes never change, and a value
//! without a code equals no key. The code of a value is its distance from `base`, plus one; 0 is left for
//! NULL. Invariant: different values have different codes, also where `base` plus a code would overflow.

use vector::Bitmap;

/// The code of a row with a value that has no code: all bits are set, and stay set whatever is added. With
/// `add_known` codes of rows must have fewer than 64 bits.
pub const NO_CODE: u64 = u64::MAX;

/// The codes of one column.
#[derive(Debug, Clone, Copy, Default)]
pub struct IntCodes {
    base: i64,
    /// How many values have a code, from `base` on.
    values: u64,
}

impl IntCodes {
    /// Codes for these integers, and no bits more than they take. None where 64 bits are not enough.
    pub fn of(values: &[i64], valid: Option<&Bitmap>) -> Option<Self> {
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        match valid {
            None => values.iter().for_each(|&value| (low, high) = (low.min(value), high.max(value))),
            Some(valid) => valid.ones().filter_map(|row| values.get(row)).for_each(|&value| {
                (low, high) = (low.min(value), high.max(value));
            }),
        }
        if low > high {
            return Some(Self::default());
        }
        Some(Self { base: low, values: high.abs_diff(low).checked_add(1)? })
    }

    /// How many values may have a code.
    pub const fn values(self) -> u64 {
        self.values
    }

    /// Bits of a code.
    pub const fn bits(self) -> u32 {
        u64::BITS - self.values.leading_zeros()
    }

    /// The code of a value. What has none gets a number that is no code.
    #[inline]
    pub const fn code(self, value: i64) -> u64 {
        value.wrapping_sub(self.base).wrapping_add(1).cast_unsigned()
    }

    #[inline]
    const fn has(self, value: i64) -> bool {
        value.wrapping_sub(self.base).cast_unsigned() < self.values
    }

    /// Sees to it that all integers from `least` to `greatest` have codes, of at most `room` bits. True where
    /// the codes of other values changed; None where the bits are not enough.
    pub fn cover(&mut self, least: i64, greatest: i64, room: u32) -> Option<bool> {
        // Codes may go on beyond the greatest integer and begin again at the least one.
        if least >= self.base && self.has(greatest) {
            return Some(false);
        }
        let first = self.values == 0;
        let (low, high) = if first {
            (least, greatest)
        } else {
            let end = self.base.checked_add_unsigned(self.values - 1)?;
            (least.min(self.base), greatest.max(end))
        };
        let span = high.checked_sub(low)?.checked_add(2)?;
        let bits = 64 - span.leading_zeros();
        if bits > room {
            return None;
        }
        let spare = (1i64 << bits) - 2;
        // If values went below the base, the spare room goes there, too.
        self.base = if !first && low < self.base { high.saturating_sub(spare) } else { low };
        self.values = (1 << bits) - 1;
        Some(true)
    }

    /// Adds the codes of values to those of their rows, `shift` bits up. All values of valid rows have codes.
    pub fn add<T: Copy + Into<i64>>(
        self,
        values: &[T],
        valid: Option<&Bitmap>,
        shift: u32,
        codes: &mut [u64],
    ) {
        add_codes(codes, shift, valid, values.iter().map(|&value| self.code(value.into())));
    }

    /// The same where values may have no code: those rows get `NO_CODE`.
    pub fn add_known(self, values: &[i64], shift: u32, codes: &mut [u64]) {
        for (code, &value) in codes.iter_mut().zip(values) {
            *code |= if self.has(value) { self.code(value) << shift } else { NO_CODE };
        }
    }
}

/// Adds a code to that of each row that is valid.
pub fn add_codes(codes: &mut [u64], shift: u32, valid: Option<&Bitmap>, values: impl Iterator<Item = u64>) {
    match valid {
        None => codes.iter_mut().zip(values).for_each(|(code, value)| *code |= value << shift),
        Some(valid) => {
            for (row, (code, value)) in codes.iter_mut().zip(values).enumerate() {
                if valid.get(row) {
                    *code |= value << shift;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of integers at the ends of their range, widened step by step: one for each value, and none lost.
    #[test]
    fn codes_tell_values_apart_at_the_ends_of_the_range() {
        let (low, high) = (i64::MIN, i64::MAX);
        let mut codes = IntCodes::default();
        assert_eq!(codes.cover(high, high, 62), Some(true));
        assert_eq!((codes.code(high), codes.bits()), (1, 2));
        assert_eq!(codes.cover(low, high, 62), None);
        assert_eq!(codes.cover(high - 9, high, 62), None);
        let mut codes = IntCodes::default();
        assert_eq!(codes.cover(low, low + 5, 62), Some(true));
        assert_eq!(codes.cover(low + 2, low + 3, 62), Some(false));
        assert_eq!(codes.cover(low, low + 100, 62), Some(true));
        assert_eq!(codes.cover(low, low + 1_000, 8), None);
        assert_eq!((codes.code(low), codes.code(low + 100), codes.bits()), (1, 101, 7));
    }

    /// What is known before has the codes of its range, and nothing else has one.
    #[test]
    fn a_value_beyond_the_known_ones_has_no_code() {
        let known = IntCodes::of(&[5, -3, 5], None);
        let mut codes = vec![0; 5];
        let Some(known) = known else { panic!("three values have codes") };
        known.add_known(&[-3, 5, 6, -4, i64::MIN], 3, &mut codes);
        assert_eq!(codes, [1 << 3, 9 << 3, NO_CODE, NO_CODE, NO_CODE]);
        assert_eq!((known.values(), known.bits()), (9, 4));
        assert!(IntCodes::of(&[i64::MIN, i64::MAX], None).is_none());
        let none = Some(Bitmap::filled(1, false));
        assert_eq!(IntCodes::of(&[7], none.as_ref()).map(|codes| codes.bits()), Some(0));
    }
}
