//! Exact decimals. The payload:
//! - scale (varint)
//! - width of the integers in bits (32, 64 or 128)
//! - display scales: 0 and the constant (varint), or 1 and an integer child
//! - side lane: number of values (varint) and, if any, an integer child of their rows, one of their lengths,
//!   and their bytes as a child
//! - the integers: an integer node, or for 128 bits a wide node (`wide.rs`)

mod wide;

use std::ops::Range;

use vector::{Bitmap, DisplayScales, Error, NumericInts, NumericValues, Result, Selection, Values, Vector};

use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Leaf, Node, NodeContext, Sample};
use crate::filter::numeric_condition;
use crate::integers::{self, IntNode, Lane};
use crate::options::{EncodeOptions, EncodingId};
use crate::single::Single;
use wide::WideNode;

/// The one encoding of decimals. Their integers have encodings of their own.
pub(crate) struct Numerics;

impl Encoding for Numerics {
    fn id(&self) -> EncodingId {
        EncodingId::Numeric
    }

    fn estimate(&self, sample: &Sample<'_>, options: &EncodeOptions<'_>) -> Option<Estimate> {
        let Values::Numeric(numeric) = &sample.rows.values else { return None };
        let mut out = Writer::new();
        write(numeric, options.force, &mut out);
        Some(Estimate { bytes: out.len() as f64 * sample.factor(), penalty: 1.0 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        options: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        Ok(match &column.values {
            Values::Numeric(numeric) => Some(Box::new(NumericEncoder { numeric, force: options.force })),
            _ => None,
        })
    }
}

struct NumericEncoder<'c> {
    numeric: &'c NumericValues,
    force: Option<EncodingId>,
}

impl ColumnEncoder for NumericEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        write(&self.numeric.slice(rows.start, rows.len()), self.force, out);
        Ok(true)
    }
}

fn write(numeric: &NumericValues, force: Option<EncodingId>, out: &mut Writer) {
    out.u8(EncodingId::Numeric.tag());
    out.varint(u64::from(numeric.scale));
    let ints = match &numeric.ints {
        NumericInts::Int128(_) => &numeric.ints.clone().narrowed(),
        ints => ints,
    };
    let (bits, narrow) = match ints {
        NumericInts::Int32(values) => (32, Some(values.iter().map(|&v| i64::from(v)).collect())),
        NumericInts::Int64(values) => (64, Some(values.clone())),
        NumericInts::Int128(_) => (128, None::<Vec<i64>>),
    };
    out.u8(bits);
    write_display(&numeric.display, numeric.len(), out);
    out.count(numeric.side.len());
    if !numeric.side.is_empty() {
        let rows: Vec<i64> = numeric.side.iter().map(|(row, _)| i64::from(*row)).collect();
        let lengths: Vec<i64> =
            numeric.side.iter().map(|(_, bytes)| i64::try_from(bytes.len()).unwrap_or(i64::MAX)).collect();
        integers::write_child(&rows, integers::CHILD_DEPTH, out);
        integers::write_child(&lengths, integers::CHILD_DEPTH, out);
        let bytes: Vec<u8> = numeric.side.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        out.child(&bytes);
    }
    match (narrow, ints) {
        (Some(values), _) => integers::write_node(&values, integers::CHILD_DEPTH, force, out),
        (None, NumericInts::Int128(values)) => wide::write(values, out),
        (None, _) => {}
    }
}

fn write_display(display: &DisplayScales, rows: usize, out: &mut Writer) {
    let first = display.get(0);
    match display {
        DisplayScales::PerValue(scales) if scales.iter().any(|&scale| scale != first) => {
            out.u8(1);
            let scales: Vec<i64> = (0..rows).map(|row| i64::from(display.get(row))).collect();
            integers::write_child(&scales, integers::CHILD_DEPTH, out);
        }
        _ => {
            out.u8(0);
            out.varint(u64::from(first));
        }
    }
}

enum Display<'a> {
    Constant(u16),
    PerValue(IntNode<'a>),
}

enum Ints<'a> {
    Int32(IntNode<'a>),
    Int64(IntNode<'a>),
    Int128(WideNode<'a>),
}

/// The reading side.
pub(crate) struct NumericNode<'a> {
    scale: u16,
    display: Display<'a>,
    side: Vec<(u32, &'a [u8])>,
    ints: Ints<'a>,
}

/// Opens a decimal node.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<NumericNode<'a>> {
    let (rows, depth) = (context.rows, context.deeper()?);
    let scale = read_scale(reader)?;
    let bits = reader.u8()?;
    let display = match reader.u8()? {
        0 => Display::Constant(read_scale(reader)?),
        1 => Display::PerValue(IntNode::open(&mut reader.child()?, rows, depth)?),
        kind => return Err(Error::corrupt(format!("display scales of kind {kind}"))),
    };
    let side = read_side(reader, rows, depth)?;
    let ints = match bits {
        32 => Ints::Int32(IntNode::open(reader, rows, depth)?),
        64 => Ints::Int64(IntNode::open(reader, rows, depth)?),
        128 => Ints::Int128(WideNode::open(reader, rows, depth)?),
        bits => return Err(Error::corrupt(format!("decimals of {bits} bits"))),
    };
    Ok(NumericNode { scale, display, side, ints })
}

fn read_scale(reader: &mut Reader<'_>) -> Result<u16> {
    let scale = reader.count(usize::from(u16::MAX), "scale")?;
    u16::try_from(scale).map_err(|_| Error::corrupt("scale"))
}

fn read_side<'a>(reader: &mut Reader<'a>, rows: usize, depth: u8) -> Result<Vec<(u32, &'a [u8])>> {
    let count = reader.count(rows, "side lane")?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let (mut places, mut lengths) = (Vec::new(), Vec::new());
    IntNode::open(&mut reader.child()?, count, depth)?.decode_into::<i64>(&mut places)?;
    IntNode::open(&mut reader.child()?, count, depth)?.decode_into::<i64>(&mut lengths)?;
    let mut bytes = reader.child()?;
    let mut side: Vec<(u32, &[u8])> = Vec::with_capacity(count);
    for (place, length) in places.into_iter().zip(lengths) {
        let (row, length) = match (u32::try_from(place), usize::try_from(length)) {
            (Ok(row), Ok(length)) if (row as usize) < rows => (row, length),
            _ => return Err(Error::corrupt(format!("side lane: row {place}, {length} bytes"))),
        };
        if side.last().is_some_and(|(last, _)| *last >= row) {
            return Err(Error::corrupt("side lane out of order"));
        }
        side.push((row, bytes.take(length)?));
    }
    Ok(side)
}

impl NumericNode<'_> {
    fn display(&self, read: impl FnOnce(&IntNode<'_>, &mut Vec<i64>) -> Result<()>) -> Result<DisplayScales> {
        match &self.display {
            Display::Constant(scale) => Ok(DisplayScales::Constant(*scale)),
            Display::PerValue(node) => {
                let mut scales = Vec::new();
                read(node, &mut scales)?;
                let scales = scales.into_iter().map(display_scale).collect::<Result<_>>()?;
                Ok(DisplayScales::PerValue(scales))
            }
        }
    }
}

fn display_scale(stored: i64) -> Result<u16> {
    u16::try_from(stored).map_err(|_| Error::corrupt(format!("display scale {stored}")))
}

fn all<T: Lane>(node: &IntNode<'_>) -> Result<Vec<T>> {
    let mut out = Vec::new();
    node.decode_into(&mut out)?;
    Ok(out)
}

fn some<T: Lane>(node: &IntNode<'_>, rows: &[u32]) -> Result<Vec<T>> {
    let mut out = Vec::new();
    node.take_into(rows, &mut out)?;
    Ok(out)
}

impl Node for NumericNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Numeric.name());
        out.push_str(" > ");
        match &self.ints {
            Ints::Int32(node) | Ints::Int64(node) => node.describe(out),
            Ints::Int128(node) => node.describe(out),
        }
    }

    fn decode(&self) -> Result<Values> {
        let ints = match &self.ints {
            Ints::Int32(node) => NumericInts::Int32(all(node)?),
            Ints::Int64(node) => NumericInts::Int64(all(node)?),
            Ints::Int128(node) => NumericInts::Int128(node.decode()?),
        };
        let display = self.display(|node, out| node.decode_into(out))?;
        let side = self.side.iter().map(|(row, bytes)| (*row, Box::from(*bytes))).collect();
        Ok(Values::Numeric(NumericValues { ints, scale: self.scale, display, side }))
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        let ints = match &self.ints {
            Ints::Int32(node) => NumericInts::Int32(some(node, rows)?),
            Ints::Int64(node) => NumericInts::Int64(some(node, rows)?),
            Ints::Int128(node) => NumericInts::Int128(node.take(rows)?),
        };
        let display = self.display(|node, out| node.take_into(rows, out))?;
        let mut side = Vec::new();
        if !self.side.is_empty() {
            for (place, row) in (0u32..).zip(rows) {
                if let Ok(at) = self.side.binary_search_by_key(row, |(row, _)| *row)
                    && let Some((_, bytes)) = self.side.get(at)
                {
                    side.push((place, Box::from(*bytes)));
                }
            }
        }
        Ok(Values::Numeric(NumericValues { ints, scale: self.scale, display, side }))
    }

    fn single<'s>(&'s self, row: usize, _: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        if !self.side.is_empty() {
            return Ok(None);
        }
        let unscaled = match &self.ints {
            Ints::Int32(node) => <i32 as Lane>::wrap(node.get(row)?).into(),
            Ints::Int64(node) => node.get(row)?,
            Ints::Int128(_) => return Ok(None),
        };
        let display = match &self.display {
            Display::Constant(scale) => *scale,
            Display::PerValue(node) => display_scale(node.get(row)?)?,
        };
        Ok(Some(Single::Numeric { unscaled, scale: self.scale, display }))
    }

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        if !self.side.is_empty() {
            return Ok(None);
        }
        let test = numeric_condition(leaf, self.scale)?;
        match &self.ints {
            Ints::Int32(node) | Ints::Int64(node) => node.test(&test, selection).map(Some),
            Ints::Int128(node) => {
                let values = node.decode()?;
                Ok(Some(values.into_iter().map(|value| test.passes(value)).collect()))
            }
        }
    }
}
