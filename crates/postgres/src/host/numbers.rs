//! Hash maps whose keys are numbers that no attacker chooses: storage ids, row numbers, addresses.
//!
//! Used by caches that live from one look-up of a row to the next. There the standard library's hash would be
//! a good part of the work. A number is multiplied by the golden ratio (Knuth, The Art of Computer
//! Programming 3, 6.4). The halves of the last product are joined, because the maps look at bits of both.
//!
//! Invariant: keys are made of integers only.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are integers, or tuples of them.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Hashes integers.
#[derive(Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0.rotate_right(32)
    }
}

#[cfg(test)]
mod tests {
    use super::NumberMap;

    #[test]
    fn keys_that_follow_each_other_are_told_apart() {
        let mut map = NumberMap::default();
        for first in 0..50u64 {
            for column in 0..50u32 {
                map.insert((first * 150_000, column), first + u64::from(column));
            }
        }
        assert_eq!(map.len(), 2500);
        assert_eq!(map.get(&(150_000 * 7, 8)), Some(&15));
        assert_eq!(map.get(&(8, 7)), None);
    }
}
