//! Byte strings in Arrow's view layout: 16 bytes a value. Short values are inline. Longer ones have a
//! four-byte prefix and a place in a shared buffer.
//!
//! Most comparisons are settled by the prefixes, without touching the buffer. Taking or filtering rows copies
//! only views.

use std::ops::Range;
use std::sync::Arc;

/// The longest value that is stored inside its view, in bytes.
pub const INLINE_BYTES: usize = 12;

/// Bytes after which a builder starts another buffer, so that growing never copies much.
const BUFFER_BYTES: usize = 1 << 20;

/// One value: length, then twelve inline bytes, or four prefix bytes, buffer number and offset
/// (little-endian).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByteView {
    /// One array, so that a view is made in registers and stored at once. If it were put together field by
    /// field, it would be stored in pieces, and the next copy of it would stall.
    bytes: [u8; 16],
}

impl ByteView {
    /// A view of a value that is at most `INLINE_BYTES` long. `None` if it is longer.
    ///
    /// It is put together from two loads that may overlap. A copy of a length that is known only at run time
    /// costs ten times as much.
    #[inline]
    pub fn inline(value: &[u8]) -> Option<Self> {
        let len = u32::try_from(value.len()).ok()?;
        let bits = if let (Some(first), Some(last)) = (value.first_chunk::<8>(), value.last_chunk::<4>()) {
            if value.len() > INLINE_BYTES {
                return None;
            }
            u128::from(u64::from_le_bytes(*first))
                | (u128::from(u32::from_le_bytes(*last)) << (8 * (value.len() - 4)))
        } else if let (Some(first), Some(last)) = (value.first_chunk::<4>(), value.last_chunk::<4>()) {
            let last = u64::from(u32::from_le_bytes(*last)) << (8 * (value.len() - 4));
            u128::from(u64::from(u32::from_le_bytes(*first)) | last)
        } else {
            value.iter().rev().fold(0, |bits, &byte| (bits << 8) | u128::from(byte))
        };
        Some(Self::inline_bits(len, bits))
    }

    /// A view of the `len` lowest bytes of `bits`, for computed values: no memory is touched. `len` is at
    /// most `INLINE_BYTES`; a longer one is cut.
    #[inline]
    pub fn inline_bits(len: u32, bits: u128) -> Self {
        let len = if len as usize > INLINE_BYTES { INLINE_BYTES as u32 } else { len };
        let bits = bits & ((1u128 << (8 * len)) - 1);
        Self { bytes: (u128::from(len) | (bits << 32)).to_le_bytes() }
    }

    /// A view of `len` bytes at `offset` of buffer `buffer`, whose first four bytes are `prefix`.
    #[inline]
    pub fn reference(len: u32, prefix: [u8; 4], buffer: u32, offset: u32) -> Self {
        let low = u64::from(len) | (u64::from(u32::from_le_bytes(prefix)) << 32);
        let high = u64::from(buffer) | (u64::from(offset) << 32);
        Self { bytes: (u128::from(low) | (u128::from(high) << 64)).to_le_bytes() }
    }

    /// Length of the value in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> usize {
        let [a, b, c, d, ..] = self.bytes;
        u32::from_le_bytes([a, b, c, d]) as usize
    }

    /// The first four bytes, zero-padded.
    #[inline]
    pub const fn prefix(&self) -> [u8; 4] {
        let [_, _, _, _, a, b, c, d, ..] = self.bytes;
        [a, b, c, d]
    }

    /// For inline values: a number with the same order as their bytes. It has the bytes, and then the length,
    /// because a shorter value is padded.
    #[inline]
    pub fn inline_key(&self) -> u128 {
        let bits = u128::from_le_bytes(self.bytes);
        let len = bits & u128::from(u32::MAX);
        ((bits ^ len).swap_bytes() << 32) | len
    }

    /// Buffer number and offset of a value that is not inline.
    #[inline]
    pub fn place(&self) -> Option<(u32, u32)> {
        let [_, _, _, _, _, _, _, _, a, b, c, d, e, f, g, h] = self.bytes;
        (self.len() > INLINE_BYTES)
            .then(|| (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])))
    }
}

/// A sequence of byte strings.
#[derive(Debug, Clone, Default)]
pub struct ByteViews {
    pub(crate) views: Vec<ByteView>,
    pub(crate) buffers: Vec<Arc<Vec<u8>>>,
    open: Vec<u8>,
}

impl ByteViews {
    /// No values.
    pub const fn new() -> Self {
        Self { views: Vec::new(), buffers: Vec::new(), open: Vec::new() }
    }

    /// Takes over views and the buffers that they point into. A view that points outside reads as an empty
    /// value, so decoders check views before.
    pub fn from_parts(views: Vec<ByteView>, buffers: Vec<Arc<Vec<u8>>>) -> Self {
        Self { views, buffers, open: Vec::new() }
    }

    /// Views of consecutive values in one buffer: value i is `data[offsets[i]..offsets[i + 1]]`.
    /// `None` when offsets are not ascending within `data`.
    pub fn from_offsets(offsets: &[u32], data: Vec<u8>) -> Option<Self> {
        let ascending = offsets.windows(2).all(|pair| matches!(pair, [start, end] if start <= end));
        if !ascending || offsets.last().is_some_and(|&end| end as usize > data.len()) {
            return None;
        }
        let starts = offsets.iter().zip(offsets.get(1..).unwrap_or(&[]));
        let views = starts.map(|(&start, &end)| Self::view_at(&data, start, end - start)).collect();
        Some(Self::from_parts(views, vec![Arc::new(data)]))
    }

    /// The view of `len` bytes at `start` of `data`, which is or becomes buffer 0. Decoders that write their
    /// values end to end into one buffer make their views with this. A place outside `data` gives an empty
    /// value.
    #[inline]
    pub fn view_at(data: &[u8], start: u32, len: u32) -> ByteView {
        let at = start as usize;
        // One load for any length, as long as sixteen bytes can be loaded.
        if let Some(bytes) = data.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
            let bits = u128::from_le_bytes(*bytes);
            if len as usize <= INLINE_BYTES {
                return ByteView::inline_bits(len, bits);
            }
            if let (true, Some(prefix)) = (at + len as usize <= data.len(), bytes.first_chunk::<4>()) {
                return ByteView::reference(len, *prefix, 0, start);
            }
        }
        let value = data.get(at..at.saturating_add(len as usize)).unwrap_or(&[]);
        Self::view_of(value, 0, start).unwrap_or_default()
    }

    #[inline]
    fn view_of(value: &[u8], buffer: u32, offset: u32) -> Option<ByteView> {
        if let Some(view) = ByteView::inline(value) {
            return Some(view);
        }
        let prefix = *value.first_chunk::<4>()?;
        Some(ByteView::reference(u32::try_from(value.len()).ok()?, prefix, buffer, offset))
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// True when there is no value.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// The views, for kernels that compare lengths and prefixes.
    pub fn views(&self) -> &[ByteView] {
        &self.views
    }

    /// The value at `index`; empty past the end.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        let Some(view) = self.views.get(index) else { return &[] };
        match view.place() {
            None => view.bytes.get(4..4 + view.len()).unwrap_or(&[]),
            Some((buffer, offset)) => {
                let buffer = self.buffers.get(buffer as usize).map_or(self.open.as_slice(), |b| b.as_slice());
                buffer.get(offset as usize..offset as usize + view.len()).unwrap_or(&[])
            }
        }
    }

    /// All values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Appends a value of at most 4 GiB. False: it is longer, and was not added.
    #[inline]
    pub fn push(&mut self, value: &[u8]) -> bool {
        if let Some(view) = ByteView::inline(value) {
            self.views.push(view);
            return true;
        }
        if u32::try_from(value.len()).is_err() {
            return false;
        }
        if !self.open.is_empty() && self.open.len() + value.len() > BUFFER_BYTES {
            self.buffers.push(Arc::new(std::mem::take(&mut self.open)));
        }
        let buffer = u32::try_from(self.buffers.len()).unwrap_or(u32::MAX);
        let offset = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        self.open.extend_from_slice(value);
        if let Some(view) = Self::view_of(value, buffer, offset) {
            self.views.push(view);
        }
        true
    }

    /// Total length of all values in bytes.
    pub fn total_bytes(&self) -> usize {
        self.views.iter().map(ByteView::len).sum()
    }

    /// Values `start..start + len`, clipped. Closed buffers are shared and not copied.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Self {
        let end = (start + len).min(self.len());
        let views = self.views.get(start.min(end)..end).unwrap_or(&[]).to_vec();
        Self { views, buffers: self.shared_buffers(), open: Vec::new() }
    }

    /// The values at `positions`, in that order (empty where a position is past the end).
    #[must_use]
    pub fn take(&self, positions: &[u32]) -> Self {
        let views =
            positions.iter().map(|&p| self.views.get(p as usize).copied().unwrap_or_default()).collect();
        Self { views, buffers: self.shared_buffers(), open: Vec::new() }
    }

    /// A part of each value: `part` returns the range of its bytes for the value at an index, which is
    /// clipped. Closed buffers are shared and not copied.
    #[must_use]
    pub fn parts(&self, mut part: impl FnMut(usize, &[u8]) -> Range<usize>) -> Self {
        let cut = |(index, view): (usize, &ByteView)| {
            let value = self.get(index);
            let Range { start, end } = part(index, value);
            let end = end.min(value.len());
            let start = start.min(end);
            let bytes = value.get(start..end).unwrap_or(&[]);
            match (view.place(), u32::try_from(start)) {
                (Some((buffer, offset)), Ok(start)) => {
                    Self::view_of(bytes, buffer, offset.saturating_add(start)).unwrap_or_default()
                }
                _ => ByteView::inline(bytes).unwrap_or_default(),
            }
        };
        let views = self.views.iter().enumerate().map(cut).collect();
        Self { views, buffers: self.shared_buffers(), open: Vec::new() }
    }

    pub(crate) fn shared_buffers(&self) -> Vec<Arc<Vec<u8>>> {
        let mut buffers = self.buffers.clone();
        if !self.open.is_empty() {
            buffers.push(Arc::new(self.open.clone()));
        }
        buffers
    }

    /// Closes the open buffer so that slices and takes share it instead of copying it.
    pub fn seal(&mut self) {
        if !self.open.is_empty() {
            self.buffers.push(Arc::new(std::mem::take(&mut self.open)));
        }
    }
}

impl PartialEq for ByteViews {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'a> FromIterator<&'a [u8]> for ByteViews {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(values: I) -> Self {
        let mut views = Self::new();
        for value in values {
            views.push(value);
        }
        views.seal();
        views
    }
}
