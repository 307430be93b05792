//! Words at any place of a value: the only way this crate reads numbers out of a value's bytes.
//!
//! The server's formats hold offsets, so their readers go to and fro, which a cursor over the front of the
//! bytes cannot. Invariant: a word that is not wholly inside the bytes is `None`.

/// The two bytes at `at`.
#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk::<2>()?))
}

/// The four bytes at `at`.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk::<4>()?))
}
