//! Columns of integers: the values node is an integer node.

use std::ops::Range;

use vector::{Bitmap, PhysicalType, Result, Selection, Values, Vector};

use super::{IntNode, write_node};
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Leaf, MAX_DEPTH, Node, NodeContext, Sample};
use crate::filter::int_condition;
use crate::options::{EncodeOptions, EncodingId};
use crate::registry::unknown;
use crate::single::Single;

/// The integer encodings that share nothing. Which of them is used is decided chunk by chunk.
pub(crate) struct Integers;

impl Encoding for Integers {
    fn id(&self) -> EncodingId {
        EncodingId::BitPacked
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        let values = widened(&sample.rows.values, 0..sample.rows.len())?;
        let mut out = Writer::new();
        write_node(&values, MAX_DEPTH, None, &mut out);
        Some(Estimate { bytes: out.len() as f64 * sample.factor(), penalty: 1.0 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        options: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        Ok(Some(Box::new(IntegerEncoder { column, force: options.force })))
    }
}

struct IntegerEncoder<'c> {
    column: &'c Vector,
    force: Option<EncodingId>,
}

impl ColumnEncoder for IntegerEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let Some(values) = widened(&self.column.values, rows) else { return Ok(false) };
        write_node(&values, MAX_DEPTH, self.force, out);
        Ok(true)
    }
}

/// The integers of these rows in 64 bits. `None` for other values.
pub(crate) fn widened(values: &Values, rows: Range<usize>) -> Option<Vec<i64>> {
    Some(match values {
        Values::Int16(values) => values.get(rows)?.iter().map(|&v| i64::from(v)).collect(),
        Values::Int32(values) => values.get(rows)?.iter().map(|&v| i64::from(v)).collect(),
        Values::Int64(values) => values.get(rows)?.to_vec(),
        _ => return None,
    })
}

/// The reading side.
pub(crate) struct IntegerNode<'a> {
    context: NodeContext<'a>,
    ints: IntNode<'a>,
}

/// Opens the values node of an integer column.
pub(crate) fn open<'a>(
    id: EncodingId,
    reader: &mut Reader<'a>,
    context: &NodeContext<'a>,
) -> Result<IntegerNode<'a>> {
    let ints = IntNode::open_tagged(id, reader, context.rows, context.depth)?;
    Ok(IntegerNode { context: *context, ints })
}

impl IntegerNode<'_> {
    fn values(&self, fill: impl Filler) -> Result<Values> {
        Ok(match self.context.physical() {
            PhysicalType::Int16 => Values::Int16(fill.fill()?),
            PhysicalType::Int32 => Values::Int32(fill.fill()?),
            PhysicalType::Int64 => Values::Int64(fill.fill()?),
            physical => return Err(unknown(EncodingId::Plain, physical)),
        })
    }
}

/// Makes integers of any width. It is a closure that is generic over the width.
trait Filler {
    fn fill<T: super::Lane>(&self) -> Result<Vec<T>>;
}

struct All<'n, 'a>(&'n IntNode<'a>);

impl Filler for All<'_, '_> {
    fn fill<T: super::Lane>(&self) -> Result<Vec<T>> {
        let mut out = Vec::new();
        self.0.decode_into(&mut out)?;
        Ok(out)
    }
}

struct Taken<'n, 'a>(&'n IntNode<'a>, &'n [u32]);

impl Filler for Taken<'_, '_> {
    fn fill<T: super::Lane>(&self) -> Result<Vec<T>> {
        let mut out = Vec::new();
        self.0.take_into(self.1, &mut out)?;
        Ok(out)
    }
}

struct One(i64);

impl Filler for One {
    fn fill<T: super::Lane>(&self) -> Result<Vec<T>> {
        Ok(vec![T::wrap(self.0)])
    }
}

impl Node for IntegerNode<'_> {
    fn describe(&self, out: &mut String) {
        self.ints.describe(out);
    }

    fn decode(&self) -> Result<Values> {
        if let Some(value) = self.ints.constant() {
            let one = Vector::new(self.context.logical, self.values(One(value))?);
            return Ok(Values::Constant(Box::new(one), self.context.rows));
        }
        if let Some((ends, values)) = self.ints.runs() {
            let values = Vector::new(self.context.logical, self.values(All(values))?);
            return Ok(Values::Runs { ends: ends.to_vec(), values: Box::new(values) });
        }
        self.values(All(&self.ints))
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        self.values(Taken(&self.ints, rows))
    }

    fn single<'s>(&'s self, row: usize, _: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        let value = self.ints.get(row)?;
        Ok(Some(Single::Int(match self.context.physical() {
            PhysicalType::Int16 => <i16 as super::Lane>::wrap(value).into(),
            PhysicalType::Int32 => <i32 as super::Lane>::wrap(value).into(),
            PhysicalType::Int64 => value,
            physical => return Err(unknown(EncodingId::Plain, physical)),
        })))
    }

    fn consecutive(&self) -> Option<i64> {
        self.ints.consecutive()
    }

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        self.ints.test(&int_condition(leaf)?, selection).map(Some)
    }
}
