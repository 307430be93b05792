//! Views over byte strings that lie end to end in one buffer.

use std::sync::Arc;

use vector::{ByteView, ByteViews, Error, INLINE_BYTES, Result};

/// Views of consecutive values of one buffer: value i is `data[offsets[i]..offsets[i + 1]]`. `Corrupt` when an offset is out of
/// order or outside.
pub fn views_of(offsets: &[u32], data: Vec<u8>) -> Result<ByteViews> {
    let mut views = Vec::with_capacity(offsets.len().saturating_sub(1));
    let wrong = || Error::corrupt("places of byte strings");
    let mut starts = offsets.iter().copied();
    let mut start = starts.next().unwrap_or(0);
    for end in starts {
        let value = data.get(start as usize..end as usize).ok_or_else(wrong)?;
        views.push(view(value, start).ok_or_else(wrong)?);
        start = end;
    }
    Ok(ByteViews::from_parts(views, vec![Arc::new(data)]))
}

/// The view of a value at `offset` of the first buffer.
#[inline]
pub fn view(value: &[u8], offset: u32) -> Option<ByteView> {
    if value.len() <= INLINE_BYTES {
        return ByteView::inline(value);
    }
    Some(ByteView::reference(u32::try_from(value.len()).ok()?, *value.first_chunk::<4>()?, 0, offset))
}
