//! Runs of equal values, of any type except integers (which have their own runs). Payload: number of runs
//! (varint), an integer child of the rows before which they end, and a values node with one value for each
//! run.

use std::ops::Range;

use vector::{Bitmap, Error, PhysicalType, Result, Selection, Values, Vector};

use crate::chooser;
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Leaf, Node, NodeContext, Sample};
use crate::filter::test_values;
use crate::integers::{self, IntNode};
use crate::options::{EncodeOptions, EncodingId};
use crate::registry::{OpenNode, open_values};
use crate::single::Single;
use crate::validity::fill;

/// Runs must be this long on average.
const MIN_RUN: usize = 4;

/// The encoding, for booleans and floats.
pub(crate) struct Runs;

/// The first row of each run. `None` if there are more than `limit`.
fn starts(values: &Values, rows: Range<usize>, limit: usize) -> Option<Vec<u32>> {
    fn split<T: Copy>(
        values: &[T],
        rows: Range<usize>,
        limit: usize,
        same: impl Fn(T, T) -> bool,
    ) -> Option<Vec<u32>> {
        let values = values.get(rows.clone())?;
        let mut out = vec![u32::try_from(rows.start).ok()?];
        for (row, pair) in (rows.start + 1..).zip(values.windows(2)) {
            if matches!(pair, [a, b] if !same(*a, *b)) {
                if out.len() >= limit {
                    return None;
                }
                out.push(u32::try_from(row).ok()?);
            }
        }
        Some(out)
    }
    if rows.is_empty() {
        return None;
    }
    match values {
        Values::Float32(values) => split(values, rows, limit, |a, b| a.to_bits() == b.to_bits()),
        Values::Float64(values) => split(values, rows, limit, |a, b| a.to_bits() == b.to_bits()),
        Values::Bool(bits) => {
            let bits: Vec<bool> = rows.clone().map(|row| bits.get(row)).collect();
            let start = u32::try_from(rows.start).ok()?;
            let found = split(&bits, 0..bits.len(), limit, |a, b| a == b)?;
            Some(found.into_iter().map(|row| row + start).collect())
        }
        _ => None,
    }
}

impl Encoding for Runs {
    fn id(&self) -> EncodingId {
        EncodingId::RunLength
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        let len = sample.rows.len();
        let runs = starts(&sample.rows.values, 0..len, len / MIN_RUN)?.len();
        let width = match sample.column.logical.physical() {
            PhysicalType::Bool => 0.2,
            PhysicalType::Float32 => 4.0,
            _ => 8.0,
        };
        Some(Estimate { bytes: runs as f64 * sample.factor() * (width + 1.5), penalty: 1.0 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        options: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        Ok(Some(Box::new(RunsEncoder { column, options: *options })))
    }
}

struct RunsEncoder<'c> {
    column: &'c Vector,
    options: EncodeOptions<'c>,
}

impl ColumnEncoder for RunsEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let forced = self.options.force == Some(EncodingId::RunLength);
        let limit = if forced { usize::MAX } else { rows.len() / MIN_RUN };
        let Some(starts) = starts(&self.column.values, rows.clone(), limit) else { return Ok(false) };
        let from = i64::try_from(rows.start).unwrap_or(0);
        let mut ends: Vec<i64> = starts.iter().skip(1).map(|&row| i64::from(row) - from).collect();
        ends.push(i64::try_from(rows.len()).unwrap_or(0));
        out.u8(EncodingId::RunLength.tag());
        out.count(starts.len());
        integers::write_child(&ends, integers::CHILD_DEPTH, out);
        chooser::write_alone(&self.column.take(&starts), &self.options, out)?;
        Ok(true)
    }
}

/// The reading side.
pub(crate) struct RunsNode<'a> {
    context: NodeContext<'a>,
    ends: Vec<u32>,
    values: Box<OpenNode<'a>>,
}

/// Opens a run-length node.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<RunsNode<'a>> {
    let depth = context.deeper()?;
    let count = reader.count(context.rows, "runs")?;
    let mut ends: Vec<u32> = Vec::new();
    IntNode::open(&mut reader.child()?, count, depth)?.decode_into(&mut ends)?;
    let ascending = ends.first().is_none_or(|&end| end > 0) && ends.is_sorted_by(|a, b| a < b);
    if !ascending || ends.last().map_or(0, |&end| end as usize) != context.rows {
        return Err(Error::corrupt(format!("ends of runs do not cover {} rows", context.rows)));
    }
    let values = open_values(reader, &NodeContext { rows: count, depth, ..*context })?;
    Ok(RunsNode { context: *context, ends, values: Box::new(values) })
}

impl RunsNode<'_> {
    fn bits(&self, runs: &Bitmap) -> Bitmap {
        let mut words = vec![0u64; self.context.rows.div_ceil(64)];
        let mut start = 0;
        for (run, &end) in self.ends.iter().enumerate() {
            if runs.get(run) {
                fill(&mut words, start, end as usize);
            }
            start = end as usize;
        }
        Bitmap::from_words(words, self.context.rows)
    }
}

impl Node for RunsNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::RunLength.name());
        out.push_str(" > ");
        self.values.describe(out);
    }

    fn decode(&self) -> Result<Values> {
        let values = Vector::new(self.context.logical, self.values.decode()?).flatten();
        Ok(match &values.values {
            Values::Bool(runs) => Values::Bool(self.bits(runs)),
            _ => Values::Runs { ends: self.ends.clone(), values: Box::new(values) },
        })
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        let runs: Vec<u32> = rows
            .iter()
            .map(|&row| u32::try_from(self.ends.partition_point(|&end| end <= row)).unwrap_or(u32::MAX))
            .collect();
        let mut distinct = runs.clone();
        distinct.dedup();
        let values = Vector::new(self.context.logical, self.values.take(&distinct)?).flatten();
        let places: Vec<u32> = runs
            .iter()
            .map(|run| u32::try_from(distinct.partition_point(|d| d < run)).unwrap_or(u32::MAX))
            .collect();
        Ok(values.take(&places).values)
    }

    fn single<'s>(&'s self, row: usize, room: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        self.values.single(self.ends.partition_point(|&end| end as usize <= row), room)
    }

    fn test(&self, leaf: &Leaf<'_>, _: &Selection) -> Result<Option<Bitmap>> {
        let values = Vector::new(self.context.logical, self.values.decode()?).flatten();
        let all: Vec<u32> = (0..).take(self.ends.len()).collect();
        Ok(Some(self.bits(&test_values(&values.values, leaf, &all)?)))
    }
}
