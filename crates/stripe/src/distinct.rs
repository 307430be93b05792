//! Stable hashes of values and a sketch that estimates how many of them differ.
//!
//! The sketch is HyperLogLog (Flajolet et al. 2007) with linear counting for small numbers. The top bits of a
//! hash pick a register, which keeps the longest run of leading zeros of the other bits. Only the estimate is
//! stored, never the sketch.
//!
//! Invariant: the hashes never change within a format version, because bloom filters store them.

use xxhash_rust::xxh3::xxh3_64;

const REGISTER_BITS: u32 = 10;
const REGISTERS: usize = 1 << REGISTER_BITS;

/// Hash of an integer, date or timestamp (and of a truth value as 0 or 1): the 64-bit finaliser of
/// MurmurHash3.
#[inline]
pub const fn hash_int(value: i64) -> u64 {
    let mut hash = value.cast_unsigned();
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Hash of a byte string.
#[inline]
pub fn hash_bytes(value: &[u8]) -> u64 {
    xxh3_64(value)
}

/// Hash of a float under its type's equality: one zero, one NaN.
#[inline]
pub fn hash_float(value: f64) -> u64 {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() };
    hash_int(bits.cast_signed())
}

/// A quick hash of sixteen bytes, for sketches only: it is never stored.
#[inline]
pub fn hash_wide(value: u128) -> u64 {
    let [low, high] =
        [value, value >> 64].map(|half| u64::try_from(half & u128::from(u64::MAX)).unwrap_or(0));
    hash_int((low ^ high.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)).cast_signed())
}

/// A sketch of a set of hashes.
#[derive(Clone)]
pub struct Sketch {
    registers: Box<[u8; REGISTERS]>,
}

impl Sketch {
    /// The sketch of the empty set.
    pub fn new() -> Self {
        Self { registers: Box::new([0; REGISTERS]) }
    }

    /// Adds one hash.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        let at = usize::try_from(hash >> (64 - REGISTER_BITS)).unwrap_or(0);
        // The bit that is set at the end bounds the run, so the rank fits a byte.
        let rest = (hash << REGISTER_BITS) | (1 << (REGISTER_BITS - 1));
        let rank = u8::try_from(rest.leading_zeros() + 1).unwrap_or(u8::MAX);
        if let Some(register) = self.registers.get_mut(at) {
            *register = rank.max(*register);
        }
    }

    /// Adds another set and empties it.
    pub fn absorb(&mut self, other: &mut Self) {
        for (mine, theirs) in self.registers.iter_mut().zip(other.registers.iter_mut()) {
            *mine = (*mine).max(*theirs);
            *theirs = 0;
        }
    }

    /// Estimated number of distinct hashes, within about 3 percent.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn estimate(&self) -> u32 {
        let count = REGISTERS as f64;
        let (mut harmonic, mut empty) = (0.0f64, 0usize);
        for &register in self.registers.iter() {
            // 2 to the power of minus the register, made from the exponent's bits. Registers are at most 64.
            harmonic += f64::from_bits((1023 - u64::from(register)) << 52);
            empty += usize::from(register == 0);
        }
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / harmonic;
        let estimate =
            if empty > 0 && raw <= 2.5 * count { count * (count / empty as f64).ln() } else { raw };
        estimate.round() as u32
    }
}

impl Default for Sketch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_close() {
        for wanted in [0u32, 1, 2, 10, 100, 1000, 5000, 150_000] {
            let mut sketch = Sketch::new();
            for _ in 0..2 {
                for value in 0..wanted {
                    sketch.add(hash_int(i64::from(value) * 7919 - 3));
                }
            }
            let error = (f64::from(sketch.estimate()) - f64::from(wanted)).abs();
            assert!(error <= f64::from(wanted) * 0.1, "{wanted}: {}", sketch.estimate());
        }
    }

    #[test]
    fn floats_hash_as_they_compare() {
        assert_eq!(hash_float(0.0), hash_float(-0.0));
        assert_eq!(hash_float(f64::NAN), hash_float(-f64::NAN));
        assert_ne!(hash_float(1.0), hash_float(2.0));
    }

    #[test]
    fn stored_hashes_never_change() {
        assert_eq!(hash_int(0), 0);
        assert_eq!(hash_int(1), 0xb456_bcfc_34c2_cb2c);
        assert_eq!(hash_bytes(b""), 0x2d06_8005_38d3_94c2);
    }
}
