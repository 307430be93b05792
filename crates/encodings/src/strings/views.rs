//! Views over byte strings that are end to end in one buffer.

use vector::{ByteView, ByteViews, Error, INLINE_BYTES, Result};

/// Views of consecutive values of one buffer: value i is `data[offsets[i]..offsets[i + 1]]`. `Corrupt` if an
/// offset is out of order or outside.
pub fn views_of(offsets: &[u32], data: Vec<u8>) -> Result<ByteViews> {
    ByteViews::from_offsets(offsets, data).ok_or_else(|| Error::corrupt("places of byte strings"))
}

/// The view of a value at `offset` of the first buffer.
#[inline]
pub fn view(value: &[u8], offset: u32) -> Option<ByteView> {
    if value.len() <= INLINE_BYTES {
        return ByteView::inline(value);
    }
    Some(ByteView::reference(u32::try_from(value.len()).ok()?, *value.first_chunk::<4>()?, 0, offset))
}
