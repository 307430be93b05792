//! Open addressing by hash, for rows whose values are kept elsewhere.
//!
//! Used by `RowSet` for groups and by the table of a join. A slot holds the high half of a row's hash, its
//! tag, and the row's number, so a look-up seldom touches the values of a row that differs. The low bits of
//! the hash are its first place. Numbers count from one; zero marks a free slot. Invariant: some slot is
//! free, so that every search ends.

use super::{prefetch, table_of};
use crate::Result;

/// The slots.
#[derive(Debug, Default)]
pub struct TaggedSlots(Vec<u64>);

/// A slot of this hash with this number.
#[inline]
const fn tagged(hash: u64, number: u32) -> u64 {
    (hash >> 32 << 32) | number as u64
}

impl TaggedSlots {
    /// At least this many free slots, a power of two.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(at_least: usize) -> Result<Self> {
        table_of(at_least.next_power_of_two()).map(Self)
    }

    /// Number of slots.
    pub const fn capacity(&self) -> usize {
        self.0.len()
    }

    /// Memory held, in bytes.
    pub const fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }

    /// The first place of a hash.
    #[inline]
    pub const fn place(&self, hash: u64) -> usize {
        hash as usize & (self.0.len() - 1)
    }

    /// The place after this one.
    #[inline]
    pub const fn after(&self, place: usize) -> usize {
        (place + 1) & (self.0.len() - 1)
    }

    /// True if the slots are too many for the caches near the processor. Callers then ask for some places
    /// before they need them (`prefetch`).
    pub const fn are_far(&self) -> bool {
        self.0.len() * size_of::<u64>() > prefetch::NEAR
    }

    /// Asks for the slot at a place.
    #[inline]
    pub fn prefetch(&self, place: usize) {
        prefetch::prefetch(&self.0, place);
    }

    /// What the first slot of a hash holds, for `next_from`. Callers that look up many rows read all of them
    /// first, so that the loads do not wait for each other.
    #[inline]
    pub fn first(&self, hash: u64) -> u64 {
        self.0.get(self.place(hash)).copied().unwrap_or(0)
    }

    /// The number in the nearest slot at or after `place` with the tag of this hash, and its place; zero and
    /// a free place where there is none.
    #[inline]
    pub fn next(&self, hash: u64, place: usize) -> (u32, usize) {
        self.next_from(hash, place, self.0.get(place).copied().unwrap_or(0))
    }

    /// The same where the slot at `place` was read already.
    #[inline]
    pub fn next_from(&self, hash: u64, mut place: usize, mut slot: u64) -> (u32, usize) {
        loop {
            if slot == 0 {
                return (0, place);
            }
            if (slot ^ hash) >> 32 == 0 {
                return (slot as u32, place);
            }
            place = self.after(place);
            slot = self.0.get(place).copied().unwrap_or(0);
        }
    }

    /// Puts a number into the slot at a place.
    #[inline]
    pub fn set(&mut self, place: usize, hash: u64, number: u32) {
        if let Some(slot) = self.0.get_mut(place) {
            *slot = tagged(hash, number);
        }
    }

    /// Puts a number into the first free slot of its hash: that of a row that equals no other.
    #[inline]
    pub fn add(&mut self, hash: u64, number: u32) {
        let mut place = self.place(hash);
        while self.0.get(place).is_some_and(|slot| *slot != 0) {
            place = self.after(place);
        }
        self.set(place, hash, number);
    }
}
