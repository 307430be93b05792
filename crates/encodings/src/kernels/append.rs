//! Appends many short pieces to a byte vector whose memory is not cleared first.
//!
//! Called by the template encoding for every step of every row. A short piece is stored as a whole slot of 16
//! bytes, of which only the first ones count. The next piece overwrites the others. Each operation checks
//! that it has space (one comparison). So callers need no `unsafe`, and wrong lengths from stored bytes end
//! in `None`.
//!
//! Invariant: bytes before `at` are initialised; nothing is written at or past `capacity`.

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 16;

/// Appends to a vector. `finish` makes the appended bytes visible.
pub struct Appender {
    out: Vec<u8>,
    at: usize,
}

impl Appender {
    /// An appender to this vector.
    pub fn over(out: Vec<u8>) -> Self {
        let at = out.len();
        Self { out, at }
    }

    /// Bytes appended so far.
    #[inline]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Makes room for `bytes` more, growing by at least half.
    pub fn reserve(&mut self, bytes: usize) {
        if self.out.capacity() - self.at < bytes {
            // SAFETY: bytes before `at` are initialised and `at` is within the capacity.
            unsafe { self.out.set_len(self.at) };
            self.out.reserve(bytes.max(self.at / 2));
        }
    }

    #[inline]
    fn room(&self, bytes: usize) -> Option<()> {
        (self.out.capacity() - self.at >= bytes).then_some(())
    }

    /// Appends the first `len` bytes of a slot.
    #[inline]
    pub fn slot(&mut self, slot: &[u8; SLOT_BYTES], len: usize) -> Option<()> {
        self.room(SLOT_BYTES)?;
        // SAFETY: a slot fits behind `at`.
        unsafe { self.out.as_mut_ptr().add(self.at).cast::<[u8; SLOT_BYTES]>().write_unaligned(*slot) };
        self.at += len.min(SLOT_BYTES);
        Some(())
    }

    /// Appends a piece of any length.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.room(bytes.len())?;
        // SAFETY: the bytes fit behind `at`; a piece never lies in the vector that is written.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.out.as_mut_ptr().add(self.at), bytes.len());
        }
        self.at += bytes.len();
        Some(())
    }

    /// Appends zeros up to a multiple of four counted from `start`, which is at most `at`.
    #[inline]
    pub fn pad(&mut self, start: usize) -> Option<()> {
        self.room(4)?;
        // SAFETY: four bytes fit behind `at`.
        unsafe { self.out.as_mut_ptr().add(self.at).cast::<[u8; 4]>().write_unaligned([0; 4]) };
        self.at += start.wrapping_sub(self.at) & 3;
        Some(())
    }

    /// Adds to the little-endian word at `place`. All its bytes were appended before.
    #[inline]
    pub fn add_to_word(&mut self, place: usize, add: u32) -> Option<()> {
        if self.at.checked_sub(4)? < place {
            return None;
        }
        // SAFETY: four initialised bytes begin at `place`.
        unsafe {
            let word = self.out.as_mut_ptr().add(place).cast::<u32>();
            let sum = u32::from_le(word.read_unaligned()).wrapping_add(add);
            word.write_unaligned(sum.to_le());
        }
        Some(())
    }

    /// The vector with the appended bytes.
    pub fn finish(mut self) -> Vec<u8> {
        // SAFETY: bytes before `at` are initialised and `at` is within the capacity.
        unsafe { self.out.set_len(self.at) };
        self.out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn pieces_lie_end_to_end() {
        let mut out = Appender::over(Vec::with_capacity(64));
        out.bytes(b"abc").unwrap();
        out.slot(b"0123456789abcdef", 5).unwrap();
        out.pad(0).unwrap();
        assert_eq!(out.at(), 8);
        out.pad(0).unwrap();
        out.slot(b"x000000000000000", 1).unwrap();
        out.pad(0).unwrap();
        out.pad(1).unwrap();
        out.add_to_word(9, 0x0201).unwrap();
        assert_eq!(out.finish(), b"abc01234x\x01\x02\x00\x00");
    }

    #[test]
    fn nothing_is_written_without_room() {
        let mut out = Appender::over(Vec::with_capacity(20));
        assert!(out.bytes(&[1; 21]).is_none());
        out.bytes(&[1; 5]).unwrap();
        assert!(out.slot(&[2; 16], 1).is_none(), "a slot reaches further than what counts");
        out.reserve(16);
        assert!(out.slot(&[2; 16], 1).is_some());
        assert!(out.add_to_word(3, 1).is_none(), "not all of the word was appended");
        assert!(out.add_to_word(usize::MAX, 1).is_none());
        assert!(Appender::over(Vec::with_capacity(8)).add_to_word(0, 1).is_none());
        assert_eq!(out.finish(), [1, 1, 1, 1, 1, 2]);
    }
}
