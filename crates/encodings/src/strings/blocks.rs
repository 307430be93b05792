//! Byte strings in blocks that a block codec compresses, for free text that zstd makes smaller than every
//! light encoding.
//!
//! The payload:
//! - the lengths (`lengths.rs`, with the length of that part before it)
//! - total bytes (varint), bytes of a block (varint)
//! - each block's compressed length (varint)
//! - the blocks as codec frames (`codec.rs`)
//!
//! A block covers a fixed stretch of the values end to end, so a value may reach into the next block. Reading
//! one value expands only the blocks that it touches.
//!
//! Invariant: blocks expand to exactly `total` bytes.

use std::ops::Range;

use vector::{ByteViews, Error, Result, Values, Vector};

use super::hex::only_bytes;
use super::lengths::{self, Lengths, Spans};
use super::profile;
use super::views::views_of;
use crate::codec::{self, BLOCK_BYTES};
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Node, NodeContext, Sample};
use crate::options::{Codec, EncodeOptions, EncodingId};
use crate::single::Single;

/// Largest block a reader accepts.
const MAX_BLOCK_BYTES: usize = 1 << 24;

/// The encoding.
pub(crate) struct Blocks;

impl Encoding for Blocks {
    fn id(&self) -> EncodingId {
        EncodingId::Blocks
    }

    fn estimate(&self, sample: &Sample<'_>, options: &EncodeOptions<'_>) -> Option<Estimate> {
        if options.codec == Codec::None || !profile::of(sample)?.is_free_text() {
            return None;
        }
        let lead = profile::lead(sample)?;
        let data = lead.values.concat();
        let mut compressed = 0;
        for block in data.chunks(BLOCK_BYTES).take(8) {
            compressed += codec::compress(block, options).ok()?.map_or(block.len(), |block| block.len());
        }
        let seen = data.len().clamp(1, 8 * BLOCK_BYTES);
        let ratio = compressed as f64 / seen as f64;
        let bytes = data.len() as f64 * ratio + lead.values.len() as f64;
        let penalty = if options.codec == Codec::Lz4 { 1.2 } else { 1.3 };
        (ratio < 0.9).then_some(Estimate { bytes: bytes * lead.factor, penalty })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        options: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        let Values::Bytes(views) = &column.values else { return Ok(None) };
        Ok(Some(Box::new(BlocksEncoder { views, options: *options })))
    }
}

struct BlocksEncoder<'c> {
    views: &'c ByteViews,
    options: EncodeOptions<'c>,
}

impl ColumnEncoder for BlocksEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let total: usize = rows.clone().map(|row| self.views.get(row).len()).sum();
        if total > profile::MAX_CHUNK_BYTES {
            return Ok(false);
        }
        let mut data = Vec::with_capacity(total);
        let mut lengths = Vec::with_capacity(rows.len());
        for row in rows {
            let value = self.views.get(row);
            data.extend_from_slice(value);
            lengths.push(i64::try_from(value.len()).unwrap_or(i64::MAX));
        }
        let mut places = Writer::new();
        lengths::write(&lengths, &mut places)?;
        let mut frames = Writer::new();
        let mut sizes = Writer::new();
        for block in data.chunks(BLOCK_BYTES) {
            let before = frames.len();
            codec::write_frame(block, &self.options, &mut frames)?;
            sizes.count(frames.len() - before);
        }
        out.u8(EncodingId::Blocks.tag());
        out.child(places.as_slice());
        out.count(total);
        out.count(BLOCK_BYTES);
        out.bytes(sizes.as_slice());
        out.bytes(frames.as_slice());
        Ok(true)
    }
}

/// Opens a node of compressed blocks.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<BlocksNode<'a>> {
    only_bytes(EncodingId::Blocks, context)?;
    let lengths = Lengths::read(&mut reader.child()?, context)?;
    let total = reader.count(u32::MAX as usize, "bytes in blocks")?;
    let block_bytes = reader.count(MAX_BLOCK_BYTES, "bytes a block")?;
    if block_bytes == 0 {
        return Err(Error::corrupt("blocks of no bytes"));
    }
    let count = total.div_ceil(block_bytes);
    if count > reader.remaining() {
        return Err(Error::corrupt(format!("{count} blocks in {} bytes", reader.remaining())));
    }
    let mut sizes = Vec::with_capacity(count);
    for _ in 0..count {
        sizes.push(reader.count(reader.remaining(), "compressed block")?);
    }
    let mut blocks = Vec::with_capacity(count);
    for size in sizes {
        blocks.push(reader.take(size)?);
    }
    if reader.remaining() > 0 {
        return Err(Error::corrupt("bytes after the blocks"));
    }
    Ok(BlocksNode { context: *context, lengths, total, block_bytes, blocks })
}

/// The reading side.
pub(crate) struct BlocksNode<'a> {
    context: NodeContext<'a>,
    lengths: Lengths<'a>,
    total: usize,
    block_bytes: usize,
    blocks: Vec<&'a [u8]>,
}

impl BlocksNode<'_> {
    fn spans(&self) -> Result<Spans> {
        self.lengths.spans(self.context.rows, self.total)
    }

    /// Appends block `number` to `out`.
    fn expand(&self, number: usize, out: &mut Vec<u8>) -> Result<()> {
        let wrong = || Error::corrupt(format!("block {number} of {}", self.blocks.len()));
        let frame = *self.blocks.get(number).ok_or_else(wrong)?;
        let wanted = self.block_bytes.min(self.total - (number * self.block_bytes).min(self.total));
        let mut reader = Reader::new(frame);
        // The size that a frame claims is checked before memory is allocated for it.
        let mut head = reader.clone();
        if Codec::from_tag(head.u8()?)? != Codec::None && head.varint()? != wanted as u64 {
            return Err(wrong());
        }
        let raw = codec::read_frame(&mut reader, self.context.codecs)?;
        if raw.len() != wanted {
            return Err(wrong());
        }
        out.extend_from_slice(&raw);
        Ok(())
    }
}

impl Node for BlocksNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Blocks.name());
        self.lengths.describe(out);
    }

    fn codecs(&self, out: &mut Vec<Codec>) -> Result<()> {
        for frame in &self.blocks {
            let codec = Codec::from_tag(Reader::new(frame).u8()?)?;
            if codec != Codec::None {
                out.push(codec);
            }
        }
        Ok(())
    }

    fn decode(&self) -> Result<Values> {
        let spans = self.spans()?;
        let mut data = Vec::new();
        for number in 0..self.blocks.len() {
            self.expand(number, &mut data)?;
        }
        let offsets =
            spans.offsets(self.context.rows, 1).ok_or_else(|| Error::corrupt("lengths in blocks"))?;
        views_of(&offsets, data).map(Values::Bytes)
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        let spans = self.spans()?;
        let mut views = ByteViews::new();
        // The expanded blocks `first..first + n`, end to end. Rows ascend, so the window only moves on.
        let (mut first, mut window) = (0usize, Vec::new());
        for &row in rows {
            let span = spans.get(row as usize);
            if span.is_empty() {
                views.push(&[]);
                continue;
            }
            let (from, to) = (span.start / self.block_bytes, (span.end - 1) / self.block_bytes);
            if from != first {
                let keep = (first + window.len().div_ceil(self.block_bytes)).saturating_sub(from);
                if keep == 0 || from < first {
                    window.clear();
                } else {
                    window.drain(..((from - first) * self.block_bytes).min(window.len()));
                }
                first = from;
            }
            while first + window.len().div_ceil(self.block_bytes) <= to {
                self.expand(first + window.len().div_ceil(self.block_bytes), &mut window)?;
            }
            let base = first * self.block_bytes;
            let value = window.get(span.start - base..span.end - base);
            views.push(value.ok_or_else(|| Error::corrupt("value outside its blocks"))?);
        }
        views.seal();
        Ok(Values::Bytes(views))
    }

    fn single<'s>(&'s self, row: usize, room: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        let span = self.spans()?.get(row);
        room.clear();
        if span.is_empty() {
            return Ok(Some(Single::Bytes(room)));
        }
        let first = span.start / self.block_bytes;
        for number in first..=(span.end - 1) / self.block_bytes {
            self.expand(number, room)?;
        }
        let base = first * self.block_bytes;
        match room.get(span.start - base..span.end - base) {
            Some(value) => Ok(Some(Single::Bytes(value))),
            None => Err(Error::corrupt("value outside its blocks")),
        }
    }
}
