//! Builds many rows side by side: a piece for each of them, then the next piece for each.
//!
//! Called by the template encoding for runs of rows of one template. Every row has a stretch of `stride`
//! bytes of its own. So a loop over rows does the same to all of them, without waiting for the length of the
//! row before. There may be gaps between rows, because views do not mind them. Short pieces are stored as
//! whole slots of 16 bytes, and literals in blocks of 32. Bytes that reach too far stay in the row's stretch,
//! and the next piece overwrites them.
//!
//! Invariant: each operation checks that it stays within the row's own stretch. So callers need no `unsafe`,
//! and wrong lengths from stored bytes end in `None`. `finish` leaves no byte uninitialised.

/// Most rows side by side.
pub const BATCH: usize = 64;

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 16;

/// Bytes copied at once from a literal.
const BLOCK_BYTES: usize = 32;

/// How many bytes a stretch must have beyond those of its row.
pub const SLACK: usize = BLOCK_BYTES;

/// A position for each row of a batch.
pub type Places = [usize; BATCH];

/// Rows being built.
pub struct Rows {
    out: Vec<u8>,
    /// Start of the batch. All bytes before it are initialised.
    first: usize,
    stride: usize,
    count: usize,
    at: Places,
}

impl Rows {
    /// Rows that are appended to this vector.
    pub fn over(out: Vec<u8>) -> Self {
        Self { out, first: 0, stride: 0, count: 0, at: [0; BATCH] }
    }

    /// Starts a batch of `count` rows (at most [`BATCH`]) of at most `stride` bytes each, [`SLACK`] included.
    pub fn begin(&mut self, count: usize, stride: usize) {
        self.first = self.out.len();
        (self.count, self.stride) = (count.min(BATCH), stride);
        let bytes = self.count * stride;
        if self.out.capacity() - self.first < bytes {
            self.out.reserve(bytes.max(self.first / 2));
        }
        for (row, at) in self.at.iter_mut().enumerate() {
            *at = self.first + row * stride;
        }
    }

    /// The present end of each row.
    pub const fn at(&self) -> &Places {
        &self.at
    }

    /// Appends the same bytes to every row.
    pub fn literal(&mut self, literal: &[u8]) -> Option<()> {
        let (blocks, tail) = literal.as_chunks::<BLOCK_BYTES>();
        let mut last = [0u8; BLOCK_BYTES];
        last.get_mut(..tail.len())?.copy_from_slice(tail);
        let reach = literal.len() + BLOCK_BYTES - tail.len();
        let mut end = self.first;
        for at in self.at.iter_mut().take(self.count) {
            end += self.stride;
            if end - *at < reach {
                return None;
            }
            // SAFETY: `reach` bytes from `at` lie in the row's stretch, which is in the capacity.
            unsafe {
                let mut to = self.out.as_mut_ptr().add(*at).cast::<[u8; BLOCK_BYTES]>();
                for block in blocks {
                    to.write_unaligned(*block);
                    to = to.add(1);
                }
                to.write_unaligned(last);
            }
            *at += literal.len();
        }
        Some(())
    }

    /// Appends zeros to every row up to a multiple of four counted from its start.
    pub fn pad(&mut self) -> Option<()> {
        let mut start = self.first;
        for at in self.at.iter_mut().take(self.count) {
            let end = start + self.stride;
            if end - *at < 4 {
                return None;
            }
            // SAFETY: four bytes from `at` lie in the row's stretch.
            unsafe { self.out.as_mut_ptr().add(*at).cast::<[u8; 4]>().write_unaligned([0; 4]) };
            *at += start.wrapping_sub(*at) & 3;
            start = end;
        }
        Some(())
    }

    /// Appends to each row the first bytes of a slot. `slots` gives the slots in order, and how many bytes of
    /// each count.
    #[inline]
    pub fn slots<'s>(
        &mut self,
        slots: impl Iterator<Item = Option<(&'s [u8; SLOT_BYTES], usize)>>,
    ) -> Option<()> {
        let out = self.out.as_mut_ptr();
        let (stride, mut end, mut done) = (self.stride, self.first, 0);
        for (at, slot) in self.at.iter_mut().take(self.count).zip(slots) {
            let (bytes, len) = slot?;
            end += stride;
            if end - *at < SLOT_BYTES {
                return None;
            }
            // SAFETY: a slot at `at` lies in the row's stretch.
            unsafe { out.add(*at).cast::<[u8; SLOT_BYTES]>().write_unaligned(*bytes) };
            *at += len.min(SLOT_BYTES);
            done += 1;
        }
        (done == self.count).then_some(())
    }

    /// The same for slots that are made on the way.
    #[inline]
    pub fn made(&mut self, slots: impl Iterator<Item = Option<([u8; SLOT_BYTES], usize)>>) -> Option<()> {
        let out = self.out.as_mut_ptr();
        let (stride, mut end, mut done) = (self.stride, self.first, 0);
        for (at, slot) in self.at.iter_mut().take(self.count).zip(slots) {
            let (bytes, len) = slot?;
            end += stride;
            if end - *at < SLOT_BYTES {
                return None;
            }
            // SAFETY: a slot at `at` lies in the row's stretch.
            unsafe { out.add(*at).cast::<[u8; SLOT_BYTES]>().write_unaligned(bytes) };
            *at += len.min(SLOT_BYTES);
            done += 1;
        }
        (done == self.count).then_some(())
    }

    /// Appends to each row a piece of any length.
    #[inline]
    pub fn pieces<'p>(&mut self, pieces: impl Iterator<Item = Option<&'p [u8]>>) -> Option<()> {
        let out = self.out.as_mut_ptr();
        let (stride, mut end, mut done) = (self.stride, self.first, 0);
        for (at, piece) in self.at.iter_mut().take(self.count).zip(pieces) {
            let bytes = piece?;
            end += stride;
            if end - *at < bytes.len() {
                return None;
            }
            // SAFETY: the piece lies in the row's stretch and never in the vector that is written.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.add(*at), bytes.len()) };
            *at += bytes.len();
            done += 1;
        }
        (done == self.count).then_some(())
    }

    /// Stores in each row, `offset` bytes after `starts`, the little-endian word `base` + the distance from
    /// `from` to the row's position + what `add` gives. The word must have been appended before.
    #[inline]
    pub fn words(
        &mut self,
        starts: &Places,
        offset: usize,
        base: u32,
        from: &Places,
        add: impl Fn(usize) -> u32,
    ) -> Option<()> {
        let out = self.out.as_mut_ptr();
        let (stride, mut start) = (self.stride, self.first);
        for (row, ((&at, first), from)) in self.at.iter().zip(starts).zip(from).take(self.count).enumerate() {
            let place = first + offset;
            if place < start || place + 4 > at {
                return None;
            }
            let word = base.wrapping_add(at.wrapping_sub(*from) as u32).wrapping_add(add(row));
            // SAFETY: the word lies between the row's start and what was appended to it.
            unsafe { out.add(place).cast::<[u8; 4]>().write_unaligned(word.to_le_bytes()) };
            start += stride;
        }
        Some(())
    }

    /// Ends the batch. `row` is told the offset and bytes of each row.
    #[inline]
    pub fn end(&mut self, mut row: impl FnMut(usize, &[u8])) {
        let mut start = self.first;
        for &at in self.at.iter().take(self.count) {
            let end = start + self.stride;
            // SAFETY: `at..end` lies in the row's stretch; the bytes before `at` were written.
            let bytes = unsafe {
                let out = self.out.as_mut_ptr();
                let mut gap = at;
                while end - gap >= SLOT_BYTES {
                    out.add(gap).cast::<[u8; SLOT_BYTES]>().write_unaligned([0; SLOT_BYTES]);
                    gap += SLOT_BYTES;
                }
                if end - at >= SLOT_BYTES {
                    // The rest is written again, with the slot that ends there.
                    out.add(end - SLOT_BYTES).cast::<[u8; SLOT_BYTES]>().write_unaligned([0; SLOT_BYTES]);
                } else {
                    out.add(gap).write_bytes(0, end - gap);
                }
                std::slice::from_raw_parts(out.add(start), at - start)
            };
            row(start, bytes);
            start = end;
        }
        // SAFETY: every stretch up to here was filled.
        unsafe { self.out.set_len(start) };
        self.count = 0;
    }

    /// The vector: all rows with the gaps between them.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn rows_grow_side_by_side() {
        let mut rows = Rows::over(Vec::new());
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for round in 0..3usize {
            rows.begin(5, 100);
            let starts = *rows.at();
            rows.literal(b"....head").unwrap();
            let before = *rows.at();
            rows.made((0..5).map(|row| Some(([b'a' + row as u8; 16], row + round)))).unwrap();
            rows.words(&starts, 0, 0x100, &before, |_| 0).unwrap();
            rows.pad().unwrap();
            rows.pieces((0..5).map(|row| Some(&b"0123456789012345678901234"[..row * 6]))).unwrap();
            rows.end(|_, bytes| seen.push(bytes.to_vec()));
        }
        assert_eq!(rows.finish().len(), 1500);
        for (i, bytes) in seen.iter().enumerate() {
            let (row, len) = (i % 5, i % 5 + i / 5);
            let mut want = vec![len as u8, 1, 0, 0];
            want.extend_from_slice(b"head");
            want.extend(std::iter::repeat_n(b'a' + row as u8, len));
            want.resize(want.len().next_multiple_of(4), 0);
            want.extend_from_slice(&b"0123456789012345678901234"[..row * 6]);
            assert_eq!(*bytes, want);
        }
    }

    #[test]
    fn no_row_leaves_its_stretch() {
        let mut rows = Rows::over(Vec::new());
        let mut full = |op: &mut dyn FnMut(&mut Rows) -> Option<()>| {
            rows.begin(2, 40);
            rows.literal(b"12345678").unwrap();
            assert!(op(&mut rows).is_none());
        };
        full(&mut |rows| rows.literal(&[0; 32]));
        full(&mut |rows| rows.pieces((0..1).map(|_| Some(&[][..]))));
        full(&mut |rows| rows.pieces((0..2).map(|row| Some(&[0u8; 40][..32 + row]))));
        full(&mut |rows| {
            rows.slots((0..2).map(|_| Some((&[1; 16], 16))))
                .and_then(|()| rows.slots((0..2).map(|_| Some((&[1; 16], 1)))))
                .and_then(|()| rows.slots((0..2).map(|_| Some((&[1; 16], 1)))))
        });
        full(&mut |rows| {
            let at = *rows.at();
            rows.words(&at, 0, 0, &at, |_| 0)
        });
        full(&mut |rows| {
            let mut starts = *rows.at();
            starts[0] -= 8;
            starts[1] -= 12;
            rows.words(&starts, 0, 0, &starts, |_| 0)
        });
    }
}
