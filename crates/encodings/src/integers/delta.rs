//! Delta: differences of neighbours in frame-of-reference blocks. Each block starts again from its own first
//! value, so that reading row i needs at most one block. Payload: for every block its first value (zigzag)
//! and header, then the data of all blocks.
//!
//! Differences wrap, so any values can be stored. A sorted column has small differences. A counter that
//! starts again from time to time has equal differences, with a patch at each restart.

use vector::{Bitmap, Error, Result, Selection};

use super::Lane;
use super::block::{self, Block, Blocks, Header, Plan};
use super::filter::{self, Words};
use crate::cursor::{Reader, Writer};
use crate::filter::IntCondition;
use crate::kernels::bitpack::BLOCK;
use crate::kernels::{fill, scan};
use crate::options::EncodingId;

/// The differences of all blocks, their plans, and the bytes in all. The first difference of each block
/// repeats the second, so that it costs nothing.
pub(super) fn plan(values: &[i64]) -> (Vec<i64>, Vec<Plan>, usize) {
    let mut deltas = Vec::with_capacity(values.len());
    for block in values.chunks(BLOCK) {
        let start = deltas.len();
        scan::differences(block, &mut deltas);
        if let Some(&second) = deltas.get(start + 1)
            && let Some(first) = deltas.get_mut(start)
        {
            *first = second;
        }
    }
    let plans: Vec<Plan> = deltas.chunks(BLOCK).map(block::plan).collect();
    let firsts: usize = values.iter().step_by(BLOCK).map(|&first| varint_bytes(first)).sum();
    let bytes = plans.iter().map(|plan| plan.bytes).sum::<usize>() + firsts + 1;
    (deltas, plans, bytes)
}

fn varint_bytes(value: i64) -> usize {
    let bits = 64 - crate::cursor::zigzag(value).leading_zeros() as usize;
    bits.div_ceil(7).max(1)
}

/// Appends a delta node.
pub(super) fn write(values: &[i64], deltas: &[i64], plans: &[Plan], out: &mut Writer) {
    out.u8(EncodingId::Delta.tag());
    let mut data = Vec::new();
    for ((values, deltas), plan) in values.chunks(BLOCK).zip(deltas.chunks(BLOCK)).zip(plans) {
        out.zigzag(values.first().copied().unwrap_or(0));
        block::write(deltas, plan, out, &mut data);
    }
    out.bytes(&data);
}

/// A delta node over its bytes.
#[derive(Debug)]
pub(super) struct Delta<'a> {
    blocks: Blocks<(i64, Block<'a>)>,
}

impl<'a> Delta<'a> {
    pub(super) fn open(reader: &mut Reader<'a>, rows: usize) -> Result<Self> {
        let blocks = Blocks::read(
            reader,
            rows,
            |reader, rows| Ok((reader.zigzag()?, Header::read(reader, rows)?)),
            |(first, header), reader, rows| Ok((*first, Block::cut(header, reader, rows)?)),
        )?;
        Ok(Self { blocks })
    }

    pub(super) fn decode_into<T: Lane>(&self, out: &mut Vec<T>) -> Result<()> {
        out.reserve(self.blocks.len() * BLOCK);
        self.blocks.iter().try_for_each(|(first, block)| decode_block(*first, block, out))
    }

    pub(super) fn get(&self, row: usize) -> Result<i64> {
        let index = row % BLOCK;
        match self.blocks.get(row / BLOCK) {
            Some((first, block)) if index < block.len() => Ok(first.wrapping_add(block.sum_to(index)?)),
            _ => Err(Error::corrupt(format!("row {row} is past the last block"))),
        }
    }

    /// Appends the values of ascending rows. Each block that has such a row is decoded once.
    pub(super) fn take_into<T: Lane>(&self, rows: &[u32], out: &mut Vec<T>) -> Result<()> {
        let mut held = usize::MAX;
        let mut values: Vec<T> = Vec::new();
        for &row in rows {
            let (at, index) = (row as usize / BLOCK, row as usize % BLOCK);
            if at != held {
                let (first, block) =
                    self.blocks.get(at).ok_or_else(|| Error::corrupt("row past the last block"))?;
                values.clear();
                decode_block(*first, block, &mut values)?;
                held = at;
            }
            out.push(*values.get(index).ok_or_else(|| Error::corrupt("row past the last block"))?);
        }
        Ok(())
    }

    pub(super) fn test(&self, test: &IntCondition, rows: usize, selection: &Selection) -> Result<Bitmap> {
        let mut words = Words::new(rows);
        let mut values: Vec<i64> = Vec::new();
        for (at, (first, block)) in self.blocks.iter().enumerate() {
            if filter::touches(selection, at) {
                values.clear();
                decode_block(*first, block, &mut values)?;
                filter::mark_values(&values, test, words.block(at));
            }
        }
        Ok(words.finish())
    }
}

fn decode_block<T: Lane>(first: i64, block: &Block<'_>, out: &mut Vec<T>) -> Result<()> {
    let start = out.len();
    if let Some(step) = block.uniform() {
        out.resize(start + block.len(), T::default());
        if let Some(values) = out.get_mut(start..) {
            fill::sequence(first, step, values);
        }
        return Ok(());
    }
    block.decode_into(out)?;
    if let Some(values) = out.get_mut(start..) {
        fill::running_sum(T::wrap(first), values);
    }
    Ok(())
}
