//! One block of up to 1,024 integers as frame of reference. It has a base, the distances of values from the
//! base (packed in a fixed number of bits), and patches for the few values that need more bits. Bit-packed
//! and delta nodes consist of such blocks. (Zukowski et al., "Super-Scalar RAM-CPU Cache Compression", ICDE
//! 2006.)
//!
//! Header: width in bits, plus 128 when there are patches; base (zigzag); with patches their number (varint)
//! and the bytes of each one (1, 2, 4 or 8). Data: packed values, patch positions (16 bits each, ascending),
//! patches (zigzag of value - base). The base is the smallest value. If the outliers are small values, it is
//! the base with which the largest value still fits.

use vector::{Error, Result};

use crate::cursor::{Reader, Writer, unzigzag, zigzag};
use crate::integers::Lane;
use crate::kernels::bitpack::{self, BLOCK, packed_bytes};
use crate::kernels::scan as kernels;

const HAS_PATCHES: u8 = 0x80;

/// At most one value in this many is a patch.
const MAX_PATCHES: usize = 4;

/// How to pack a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    width: u8,
    base: i64,
    patches: usize,
    patch_bytes: u8,
    /// Bytes of header and data together.
    pub(super) bytes: usize,
}

/// Bits that a number needs.
#[allow(clippy::cast_possible_truncation)]
const fn bits(value: u64) -> u8 {
    (64 - value.leading_zeros()) as u8
}

const fn patch_bytes(width: u8) -> u8 {
    match width {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

/// The cheapest packing of a block.
pub(super) fn plan(values: &[i64]) -> Plan {
    let (Some(&first), count) = (values.first(), values.len()) else {
        return Plan { width: 0, base: 0, patches: 0, patch_bytes: 0, bytes: 2 };
    };
    let (low, high) = kernels::limits(values, first);
    let range = high.wrapping_sub(low).cast_unsigned();
    let full = bits(range);
    if full == 0 {
        return finish(count, 0, low, 0, 0);
    }
    let mut best = if low >= 0 && bits(high.cast_unsigned()) == full {
        // A base of zero costs nothing to add and less to store.
        finish(count, full, 0, 0, 0)
    } else {
        finish(count, full, low, 0, 0)
    };
    let size = patch_bytes(full + 1);
    for from_top in [false, true] {
        // Patches pay only if most values need fewer bits than the range has. One cheap pass rules out most
        // blocks.
        let half = 1u64 << (full - 1);
        let near = if from_top {
            kernels::count_below(values, high, true, half)
        } else {
            kernels::count_below(values, low, false, half)
        };
        if (count - near) * MAX_PATCHES > count {
            continue;
        }
        let counts = widths(values, if from_top { high } else { low }, from_top);
        let mut patches = 0usize;
        for width in (0..full).rev() {
            patches += usize::from(counts.get(usize::from(width) + 1).copied().unwrap_or(0));
            if patches * MAX_PATCHES > count {
                break;
            }
            // A base below the smallest integer would wrap, and tests in the packed domain could not see it.
            let frame = (1u64 << width) - 1;
            let Some(base) = (if from_top { high.checked_sub_unsigned(frame) } else { Some(low) }) else {
                continue;
            };
            let candidate = finish(count, width, base, patches, size);
            if candidate.bytes < best.bytes {
                best = candidate;
            }
        }
    }
    best
}

/// How many values need each width, counted up from the smallest or down from the largest.
fn widths(values: &[i64], from: i64, down: bool) -> [u16; 65] {
    let mut counts = [0u16; 65];
    for &value in values {
        let distance = if down { from.wrapping_sub(value) } else { value.wrapping_sub(from) };
        if let Some(count) = counts.get_mut(usize::from(bits(distance.cast_unsigned()))) {
            *count += 1;
        }
    }
    counts
}

fn finish(count: usize, width: u8, base: i64, patches: usize, patch_bytes: u8) -> Plan {
    let header = 1 + usize::from(bits(zigzag(base))).div_ceil(7).max(1) + if patches > 0 { 3 } else { 0 };
    let data = packed_bytes(count, width) + patches * (2 + usize::from(patch_bytes));
    Plan { width, base, patches, patch_bytes, bytes: header + data }
}

/// Appends header and data of a block to their two writers.
pub(super) fn write(values: &[i64], plan: &Plan, header: &mut Writer, data: &mut Vec<u8>) {
    header.u8(plan.width | if plan.patches > 0 { HAS_PATCHES } else { 0 });
    header.zigzag(plan.base);
    let mut offsets = [0u64; bitpack::BLOCK];
    let Some(offsets) = offsets.get_mut(..values.len()) else { return };
    for (offset, value) in offsets.iter_mut().zip(values) {
        *offset = value.wrapping_sub(plan.base).cast_unsigned();
    }
    if plan.patches == 0 {
        bitpack::pack(offsets, plan.width, data);
        return;
    }
    let limit = if plan.width >= 64 { u64::MAX } else { (1u64 << plan.width) - 1 };
    let (mut positions, mut patches) = (Vec::new(), Vec::new());
    for (position, offset) in (0u16..).zip(offsets.iter_mut()) {
        if *offset > limit {
            positions.extend_from_slice(&position.to_le_bytes());
            let patch = zigzag(offset.cast_signed()).to_le_bytes();
            patches.extend_from_slice(patch.get(..usize::from(plan.patch_bytes)).unwrap_or(&patch));
            *offset = 0;
        }
    }
    header.count(positions.len() / 2);
    header.u8(plan.patch_bytes);
    bitpack::pack(offsets, plan.width, data);
    data.extend_from_slice(&positions);
    data.extend_from_slice(&patches);
}

/// A block over its stored bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'a> {
    count: usize,
    width: u8,
    base: i64,
    packed: &'a [u8],
    positions: &'a [[u8; 2]],
    patches: &'a [u8],
    patch_bytes: usize,
}

/// What a header says. The data is cut out once all headers are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    width: u8,
    base: i64,
    patches: usize,
    patch_bytes: usize,
}

impl Header {
    pub(super) fn read(reader: &mut Reader<'_>, count: usize) -> Result<Self> {
        let tag = reader.u8()?;
        let width = tag & !HAS_PATCHES;
        if width > 64 {
            return Err(Error::corrupt(format!("integers of {width} bits")));
        }
        let base = reader.zigzag()?;
        let (mut patches, mut patch_bytes) = (0, 0);
        if tag & HAS_PATCHES != 0 {
            patches = reader.count(count, "patches")?;
            patch_bytes = usize::from(reader.u8()?);
            if !matches!(patch_bytes, 1 | 2 | 4 | 8) {
                return Err(Error::corrupt(format!("patches of {patch_bytes} bytes")));
            }
        }
        Ok(Self { width, base, patches, patch_bytes })
    }
}

impl<'a> Block<'a> {
    pub(super) fn cut(header: &Header, data: &mut Reader<'a>, count: usize) -> Result<Self> {
        let packed = data.take(packed_bytes(count, header.width))?;
        let (positions, _) = data.take(header.patches * 2)?.as_chunks();
        let patches = data.take(header.patches * header.patch_bytes)?;
        let (width, base, patch_bytes) = (header.width, header.base, header.patch_bytes);
        Ok(Self { count, width, base, packed, positions, patches, patch_bytes })
    }

    /// Number of values.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// The value of all rows except patched ones, if no bits are stored.
    pub(super) fn uniform(&self) -> Option<i64> {
        (self.width == 0 && self.positions.is_empty()).then_some(self.base)
    }

    pub(super) const fn base(&self) -> i64 {
        self.base
    }

    /// Bits of each value above the base, apart from patches.
    pub(super) const fn width(&self) -> u8 {
        self.width
    }

    /// The packed offsets without base and patches.
    pub(super) fn offsets<T: Lane>(&self, out: &mut Vec<T>) -> Result<()> {
        self.unpacked(0, out)
    }

    fn unpacked<T: Lane>(&self, base: i64, out: &mut Vec<T>) -> Result<()> {
        if bitpack::unpack(self.packed, self.count, self.width, base, out) {
            Ok(())
        } else {
            Err(Error::corrupt("packed integers cut short"))
        }
    }

    /// Positions and values of the patches.
    pub(super) fn patches(&self) -> impl Iterator<Item = (usize, i64)> + '_ {
        self.positions
            .iter()
            .enumerate()
            .map(|(at, position)| (usize::from(u16::from_le_bytes(*position)), self.patch(at)))
    }

    fn patch(&self, at: usize) -> i64 {
        let mut bytes = [0u8; 8];
        let from = at * self.patch_bytes;
        if let (Some(to), Some(from)) =
            (bytes.get_mut(..self.patch_bytes), self.patches.get(from..from + self.patch_bytes))
        {
            to.copy_from_slice(from);
        }
        self.base.wrapping_add(unzigzag(u64::from_le_bytes(bytes)))
    }

    /// The sum of the values at 1 to `last`, which must be below the block's length.
    pub(super) fn sum_to(&self, last: usize) -> Result<i64> {
        if last == 0 {
            return Ok(0);
        }
        if self.width == 0 {
            // Steps of a counter: all are the base but for the patches.
            let all = self.base.wrapping_mul(i64::try_from(last).unwrap_or(0));
            let patches = self.patches().filter(|(position, _)| (1..=last).contains(position));
            return Ok(patches.fold(all, |sum, (_, value)| sum.wrapping_add(value.wrapping_sub(self.base))));
        }
        let mut values: Vec<i64> = Vec::new();
        self.decode_into(&mut values)?;
        Ok(values.iter().skip(1).take(last).fold(0i64, |sum, value| sum.wrapping_add(*value)))
    }

    /// Appends all values.
    pub(super) fn decode_into<T: Lane>(&self, out: &mut Vec<T>) -> Result<()> {
        let start = out.len();
        self.unpacked(self.base, out)?;
        if !self.positions.is_empty()
            && let Some(values) = out.get_mut(start..)
        {
            for (position, value) in self.patches() {
                match values.get_mut(position) {
                    Some(slot) => *slot = T::wrap(value),
                    None => return Err(Error::corrupt(format!("patch at {position} of {}", self.count))),
                }
            }
        }
        Ok(())
    }

    /// The value at `index`, which must be below the block's length.
    pub(super) fn get(&self, index: usize) -> Result<i64> {
        if !self.positions.is_empty() {
            let found = self.positions.binary_search_by_key(&index, |p| usize::from(u16::from_le_bytes(*p)));
            if let Ok(at) = found {
                return Ok(self.patch(at));
            }
        }
        bitpack::get(self.packed, self.count, self.width, index)
            .map(|offset| self.base.wrapping_add(offset.cast_signed()))
            .ok_or_else(|| Error::corrupt("packed integers cut short"))
    }
}

/// The blocks of a node. Short nodes have one, which costs no allocation.
#[derive(Debug)]
pub(super) enum Blocks<B> {
    /// One block.
    One(B),
    /// Any other number.
    Many(Vec<B>),
}

impl<B> Blocks<B> {
    /// Reads the blocks of `rows` values: all headers by `head`, then the data of each by `cut`. Both are
    /// told how many values the block has.
    pub(super) fn read<'a, H>(
        reader: &mut Reader<'a>,
        rows: usize,
        head: impl Fn(&mut Reader<'a>, usize) -> Result<H>,
        cut: impl Fn(&H, &mut Reader<'a>, usize) -> Result<B>,
    ) -> Result<Self> {
        if (1..=BLOCK).contains(&rows) {
            let header = head(reader, rows)?;
            return cut(&header, reader, rows).map(Self::One);
        }
        // A block's header takes at least two bytes, so the bytes bound the number of headers.
        let mut headers = Vec::with_capacity(rows.div_ceil(BLOCK).min(reader.remaining()));
        for start in (0..rows).step_by(BLOCK) {
            headers.push(head(reader, BLOCK.min(rows - start))?);
        }
        let mut blocks = Vec::with_capacity(headers.len());
        for (header, start) in headers.iter().zip((0..rows).step_by(BLOCK)) {
            blocks.push(cut(header, reader, BLOCK.min(rows - start))?);
        }
        Ok(Self::Many(blocks))
    }
}

impl<B> std::ops::Deref for Blocks<B> {
    type Target = [B];

    #[inline]
    fn deref(&self) -> &[B] {
        match self {
            Self::One(block) => std::slice::from_ref(block),
            Self::Many(blocks) => blocks,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn round_trip(values: &[i64]) -> Plan {
        let plan = plan(values);
        let (mut header, mut data) = (Writer::new(), Vec::new());
        write(values, &plan, &mut header, &mut data);
        assert!(header.len() + data.len() <= plan.bytes, "{plan:?}");
        let head = Header::read(&mut Reader::new(header.as_slice()), values.len()).unwrap();
        let block = Block::cut(&head, &mut Reader::new(&data), values.len()).unwrap();
        let mut out: Vec<i64> = Vec::new();
        block.decode_into(&mut out).unwrap();
        assert_eq!(out, values);
        let mut sum = 0i64;
        for (i, value) in values.iter().enumerate() {
            assert_eq!(block.get(i).unwrap(), *value);
            sum = if i == 0 { 0 } else { sum.wrapping_add(*value) };
            assert_eq!(block.sum_to(i).unwrap(), sum);
        }
        plan
    }

    #[test]
    fn outliers_on_either_side_become_patches() {
        let mut values: Vec<i64> = (0..1024).map(|i| 100 + i % 16).collect();
        assert_eq!(round_trip(&values).width, 4);
        *values.get_mut(500).unwrap() = i64::MAX;
        let high = round_trip(&values);
        assert_eq!((high.width, high.patches), (4, 1));
        *values.get_mut(500).unwrap() = i64::MIN;
        let low = round_trip(&values);
        assert_eq!((low.width, low.patches), (4, 1));
        let mut steps = vec![1i64; 1024];
        *steps.get_mut(77).unwrap() = -49_999;
        let steps = round_trip(&steps);
        assert_eq!((steps.width, steps.patches), (0, 1));
        assert!(steps.bytes < 16);
    }

    #[test]
    fn extremes_survive() {
        round_trip(&[]);
        round_trip(&[i64::MIN]);
        round_trip(&[i64::MIN, i64::MAX]);
        let both: Vec<i64> =
            (0..1024).map(|i| if i % 2 == 0 { i64::MIN + i } else { i64::MAX - i }).collect();
        round_trip(&both);
        let mut near: Vec<i64> = (0..1024).map(|i| i64::MIN + i % 3).collect();
        near.extend([0, i64::MAX]);
        near.truncate(1024);
        round_trip(&near);
    }
}
