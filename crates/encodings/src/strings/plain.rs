//! Plain byte strings. Payload for variable width: an integer node of the lengths (with its length before
//! it), then the data; for a fixed width the data alone.

use std::ops::Range;

use vector::{Bitmap, ByteViews, Error, FixedBytes, PhysicalType, Result, Selection, Values, Vector};

use super::leaf::BytesTest;
use super::lengths::Lengths;
use super::views::views_of;

use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Leaf, Node, NodeContext, Sample};
use crate::integers::{self, IntNode};
use crate::options::{EncodeOptions, EncodingId};
use crate::registry::unknown;
use crate::single::Single;

/// Plain byte strings.
pub(crate) struct PlainBytes;

impl Encoding for PlainBytes {
    fn id(&self) -> EncodingId {
        EncodingId::Plain
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        let bytes = match &sample.rows.values {
            Values::Fixed(fixed) => fixed.bytes.len(),
            Values::Bytes(views) => views.total_bytes() + views.len(),
            _ => return None,
        };
        Some(Estimate { bytes: bytes as f64 * sample.factor(), penalty: 1.0 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        _: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        Ok(Some(Box::new(PlainEncoder(column))))
    }
}

struct PlainEncoder<'c>(&'c Vector);

impl ColumnEncoder for PlainEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        match &self.0.values {
            Values::Fixed(fixed) => {
                out.u8(EncodingId::Plain.tag());
                out.bytes(fixed.bytes.get(rows.start * fixed.width..rows.end * fixed.width).unwrap_or(&[]));
                Ok(true)
            }
            Values::Bytes(views) => {
                let lengths: Vec<i64> =
                    rows.clone().map(|row| i64::try_from(views.get(row).len()).unwrap_or(i64::MAX)).collect();
                let total: i64 = lengths.iter().sum();
                if u32::try_from(total).is_err() {
                    return Err(Error::InvalidInput(format!("{total} bytes in one chunk")));
                }
                out.u8(EncodingId::Plain.tag());
                integers::write_child(&lengths, integers::CHILD_DEPTH, out);
                rows.for_each(|row| out.bytes(views.get(row)));
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// The reading side.
pub(crate) enum PlainBytesNode<'a> {
    Fixed { width: usize, bytes: &'a [u8] },
    Bytes { rows: usize, lengths: Lengths<'a>, data: &'a [u8] },
}

/// Opens a plain node.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<PlainBytesNode<'a>> {
    let node = match context.physical() {
        PhysicalType::Fixed(width) => {
            let width = usize::from(width).max(1);
            PlainBytesNode::Fixed { width, bytes: reader.take(width * context.rows)? }
        }
        PhysicalType::Bytes => {
            let lengths = IntNode::open(&mut reader.child()?, context.rows, context.deeper()?)?;
            PlainBytesNode::Bytes { rows: context.rows, lengths: Lengths::each(lengths), data: reader.rest() }
        }
        physical => return Err(unknown(EncodingId::Plain, physical)),
    };
    Ok(node)
}

impl Node for PlainBytesNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Plain.name());
    }

    fn decode(&self) -> Result<Values> {
        match self {
            Self::Fixed { width, bytes } => {
                Ok(Values::Fixed(FixedBytes { width: *width, bytes: bytes.to_vec() }))
            }
            Self::Bytes { rows, lengths, data } => {
                let offsets = lengths.offsets(*rows, data.len())?;
                views_of(&offsets, data.to_vec()).map(Values::Bytes)
            }
        }
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        match self {
            Self::Fixed { width, bytes } => {
                let mut taken = Vec::with_capacity(rows.len() * width);
                for &row in rows {
                    let at = row as usize * width;
                    taken.extend_from_slice(bytes.get(at..at + width).unwrap_or(&[]));
                }
                Ok(Values::Fixed(FixedBytes { width: *width, bytes: taken }))
            }
            Self::Bytes { rows: all, lengths, data } => {
                let spans = lengths.spans(*all, data.len())?;
                let mut views = ByteViews::new();
                for &row in rows {
                    let value = data.get(spans.get(row as usize));
                    views.push(value.ok_or_else(|| Error::corrupt("offsets of byte strings"))?);
                }
                views.seal();
                Ok(Values::Bytes(views))
            }
        }
    }

    fn single<'s>(&'s self, row: usize, _: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        let value = match self {
            Self::Fixed { width, bytes } => bytes.get(row * width..(row + 1) * width),
            Self::Bytes { rows, lengths, data } => data.get(lengths.spans(*rows, data.len())?.get(row)),
        };
        value.map(|value| Some(Single::Bytes(value))).ok_or_else(|| Error::corrupt("offsets of byte strings"))
    }

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        let Some(test) = BytesTest::of(leaf) else { return Ok(None) };
        match self {
            Self::Fixed { width, bytes } => {
                let place = |row: usize| row * width..(row + 1) * width;
                Ok(Some(mask(&test, bytes.len() / width, selection, |row| bytes.get(place(row)))))
            }
            Self::Bytes { rows, lengths, data } => {
                let spans = lengths.spans(*rows, data.len())?;
                Ok(Some(mask(&test, *rows, selection, |row| data.get(spans.get(row)))))
            }
        }
    }
}

/// One bit a row: set where a selected row's value passes.
fn mask<'v>(
    test: &BytesTest<'_>,
    rows: usize,
    selection: &Selection,
    value: impl Fn(usize) -> Option<&'v [u8]>,
) -> Bitmap {
    let mut mask = Bitmap::filled(rows, false);
    for row in selection.iter() {
        let row = row as usize;
        if value(row).is_some_and(|value| test.passes(value)) {
            mask.set(row, true);
        }
    }
    mask
}
