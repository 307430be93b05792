//! Bit-packed: frame-of-reference blocks of 1,024 values. Payload: the headers of all blocks, then their
//! data.

use vector::{Bitmap, Error, Result, Selection};

use super::Lane;
use super::block::{self, Block, Blocks, Header, Plan};
use super::filter::{self, Words};
use crate::cursor::{Reader, Writer};
use crate::filter::IntCondition;
use crate::kernels::bitpack::BLOCK;
use crate::options::EncodingId;

/// The plans of all blocks and the bytes they take.
pub(super) fn plan(values: &[i64]) -> (Vec<Plan>, usize) {
    let plans: Vec<Plan> = values.chunks(BLOCK).map(block::plan).collect();
    let bytes = plans.iter().map(|plan| plan.bytes).sum::<usize>() + 1;
    (plans, bytes)
}

/// Appends a bit-packed node.
pub(super) fn write(values: &[i64], plans: &[Plan], out: &mut Writer) {
    out.u8(EncodingId::BitPacked.tag());
    let mut data = Vec::new();
    for (values, plan) in values.chunks(BLOCK).zip(plans) {
        block::write(values, plan, out, &mut data);
    }
    out.bytes(&data);
}

/// A bit-packed node over its bytes.
#[derive(Debug)]
pub(super) struct BitPacked<'a> {
    blocks: Blocks<Block<'a>>,
}

impl<'a> BitPacked<'a> {
    pub(super) fn open(reader: &mut Reader<'a>, rows: usize) -> Result<Self> {
        let blocks = Blocks::read(reader, rows, Header::read, Block::cut)?;
        Ok(Self { blocks })
    }

    pub(super) fn decode_into<T: Lane>(&self, out: &mut Vec<T>) -> Result<()> {
        out.reserve(self.blocks.len() * BLOCK);
        self.blocks.iter().try_for_each(|block| block.decode_into(out))
    }

    pub(super) fn get(&self, row: usize) -> Result<i64> {
        match self.blocks.get(row / BLOCK) {
            Some(block) if row % BLOCK < block.len() => block.get(row % BLOCK),
            _ => Err(Error::corrupt(format!("row {row} is past the last block"))),
        }
    }

    /// One bit a row of the blocks that `selection` touches.
    pub(super) fn test(&self, test: &IntCondition, rows: usize, selection: &Selection) -> Result<Bitmap> {
        let ranges = filter::ranges(test);
        let mut words = Words::new(rows);
        let mut scratch = filter::Scratch::default();
        for (at, block) in self.blocks.iter().enumerate() {
            if filter::touches(selection, at) {
                self.test_block(block, &ranges, test, words.block(at), &mut scratch)?;
            }
        }
        Ok(words.finish())
    }

    fn test_block(
        &self,
        block: &Block<'_>,
        ranges: &Option<Vec<(i128, i128)>>,
        test: &IntCondition,
        words: &mut [u64],
        scratch: &mut filter::Scratch,
    ) -> Result<()> {
        match ranges {
            Some(ranges) => {
                let base = i128::from(block.base());
                let top = (1i128 << block.width()) - 1;
                let offsets: Vec<(u64, u64)> = ranges
                    .iter()
                    .filter_map(|&(low, high)| {
                        let (low, high) =
                            (low.saturating_sub(base).max(0), high.saturating_sub(base).min(top));
                        Some((u64::try_from(low).ok()?, u64::try_from(high).ok()?))
                    })
                    .filter(|(low, high)| low <= high)
                    .collect();
                match offsets.as_slice() {
                    [] => {}
                    [(0, high)] if i128::from(*high) == top => filter::set_all(words, block.len()),
                    _ if block.width() <= 32 => {
                        scratch.narrow.clear();
                        block.offsets(&mut scratch.narrow)?;
                        filter::mark_narrow(&scratch.narrow, &offsets, words);
                    }
                    _ => {
                        scratch.wide.clear();
                        block.offsets(&mut scratch.wide)?;
                        filter::mark_wide(&scratch.wide, &offsets, words);
                    }
                }
            }
            None => {
                scratch.wide.clear();
                block.decode_into(&mut scratch.wide)?;
                filter::mark_each(&scratch.wide, test, words);
            }
        }
        // Offsets of patched values would have wrapped outside 64 bits, so these are tested by their values.
        for (position, value) in block.patches() {
            filter::set(words, position, test.passes(i128::from(value)));
        }
        Ok(())
    }

    pub(super) fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::BitPacked.name());
    }
}
