//! Constant: one value for all rows of a chunk. Payload: the values node of that one row.

use std::ops::Range;

use vector::{Bitmap, Result, Selection, Values, Vector};

use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Leaf, Node, NodeContext};
use crate::filter::test_values;
use crate::options::EncodingId;
use crate::registry::open_values;
use crate::single::Single;

/// The reading side.
pub(crate) struct ConstantNode<'a> {
    context: NodeContext<'a>,
    value: Vector,
}

/// Opens a constant node.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<ConstantNode<'a>> {
    let depth = context.deeper()?;
    let inner = open_values(reader, &NodeContext { rows: 1, depth, ..*context })?;
    let value = Vector::new(context.logical, inner.decode()?).flatten();
    Ok(ConstantNode { context: *context, value })
}

impl Node for ConstantNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Constant.name());
    }

    fn decode(&self) -> Result<Values> {
        Ok(Values::Constant(Box::new(self.value.clone()), self.context.rows))
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        Ok(Values::Constant(Box::new(self.value.clone()), rows.len()))
    }

    fn single<'s>(&'s self, _: usize, _: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        Ok(Some(Single::Of(&self.value, 0)))
    }

    fn test(&self, leaf: &Leaf<'_>, _: &Selection) -> Result<Option<Bitmap>> {
        if let Values::Numeric(numeric) = &self.value.values
            && !numeric.side.is_empty()
        {
            return Ok(None);
        }
        let passes = test_values(&self.value.values, leaf, &[0])?.get(0);
        Ok(Some(Bitmap::filled(self.context.rows, passes)))
    }
}

/// Writes rows that are all the same (bit for bit) as a constant. False if they are not. `inner` writes the
/// one row.
pub(crate) fn write<'c>(
    column: &'c Vector,
    rows: Range<usize>,
    inner: &mut (dyn ColumnEncoder + 'c),
    out: &mut Writer,
) -> Result<bool> {
    // Integers have a constant node of their own, with the value in place.
    let ints = matches!(column.values, Values::Int16(_) | Values::Int32(_) | Values::Int64(_));
    if ints || rows.len() < 2 || !is_constant(&column.values, rows.clone()) {
        return Ok(false);
    }
    out.u8(EncodingId::Constant.tag());
    inner.chunk(rows.start..rows.start + 1, out)
}

/// True if the rows hold one value, bit for bit.
pub(crate) fn is_constant(values: &Values, rows: Range<usize>) -> bool {
    fn same<T: Copy, U: PartialEq>(values: &[T], rows: Range<usize>, bits: impl Fn(T) -> U) -> bool {
        match values.get(rows) {
            Some([first, rest @ ..]) => {
                let first = bits(*first);
                rest.iter().all(|&value| bits(value) == first)
            }
            _ => true,
        }
    }
    let start = rows.start;
    match values {
        Values::Bool(bits) => {
            let ones = bits.slice(start, rows.len()).count_ones();
            ones == 0 || ones == rows.len()
        }
        Values::Int16(values) => same(values, rows, |v| v),
        Values::Int32(values) => same(values, rows, |v| v),
        Values::Int64(values) => same(values, rows, |v| v),
        Values::Float32(values) => same(values, rows, f32::to_bits),
        Values::Float64(values) => same(values, rows, f64::to_bits),
        Values::Fixed(fixed) => rows.clone().all(|row| fixed.get(row) == fixed.get(start)),
        Values::Bytes(views) => rows.clone().all(|row| views.get(row) == views.get(start)),
        Values::Numeric(numeric) => rows.clone().all(|row| {
            numeric.ints.get(row) == numeric.ints.get(start)
                && numeric.display.get(row) == numeric.display.get(start)
                && numeric.side_value(row) == numeric.side_value(start)
        }),
        Values::Constant(..) => true,
        Values::Dictionary { codes, .. } => same(codes, rows, |code| code),
        Values::Runs { ends, .. } => {
            ends.partition_point(|&end| end as usize <= start)
                == ends.partition_point(|&end| (end as usize) < rows.end)
        }
    }
}
