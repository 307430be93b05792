//! Run-length: runs of equal values. Payload: number of runs (varint), an integer child of the rows they end
//! before, and an integer node of their values.

use vector::{Bitmap, Error, Result};

use super::{IntNode, Lane, write_node};
use crate::cursor::{Reader, Writer};
use crate::filter::IntCondition;
use crate::kernels::{fill, scan};
use crate::options::EncodingId;

/// Ends and values of the runs. `None` if there are more than `limit`.
pub(super) fn split(values: &[i64], limit: usize) -> Option<(Vec<i64>, Vec<i64>)> {
    let count = scan::changes(values) + 1;
    if count > limit {
        return None;
    }
    let (mut ends, mut runs) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut last = *values.first()?;
    for (row, &value) in (0i64..).zip(values) {
        if value != last {
            ends.push(row);
            runs.push(last);
            last = value;
        }
    }
    ends.push(i64::try_from(values.len()).ok()?);
    runs.push(last);
    Some((ends, runs))
}

/// Appends a run-length node.
pub(super) fn write(ends: &[i64], runs: &[i64], depth: u8, out: &mut Writer) {
    out.u8(EncodingId::RunLength.tag());
    out.count(runs.len());
    super::write_child(ends, depth, out);
    write_node(runs, depth, None, out);
}

/// A run-length node over its bytes. The ends were checked: they ascend, and the last one is the number of
/// rows.
#[derive(Debug)]
pub(super) struct RunLength<'a> {
    ends: Vec<u32>,
    values: Box<IntNode<'a>>,
}

impl<'a> RunLength<'a> {
    pub(super) fn open(reader: &mut Reader<'a>, rows: usize, depth: u8) -> Result<Self> {
        let depth = depth.checked_sub(1).ok_or_else(|| Error::corrupt("nodes nested too deep"))?;
        let count = reader.count(rows, "runs")?;
        let mut ends: Vec<u32> = Vec::new();
        IntNode::open(&mut reader.child()?, count, depth)?.decode_into(&mut ends)?;
        let ascending = ends.first().is_none_or(|&end| end > 0) && ends.is_sorted_by(|a, b| a < b);
        if !ascending || ends.last().map_or(0, |&end| end as usize) != rows {
            return Err(Error::corrupt(format!("ends of runs do not cover {rows} rows")));
        }
        Ok(Self { ends, values: Box::new(IntNode::open(reader, count, depth)?) })
    }

    pub(super) fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::RunLength.name());
        out.push_str(" > ");
        self.values.describe(out);
    }

    /// Ends of the runs.
    pub(super) fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// The node of the runs' values.
    pub(super) fn values(&self) -> &IntNode<'a> {
        &self.values
    }

    pub(super) fn decode_into<T: Lane>(&self, out: &mut Vec<T>) -> Result<()> {
        let mut values: Vec<T> = Vec::new();
        self.values.decode_into(&mut values)?;
        fill::runs(&self.ends, &values, out);
        Ok(())
    }

    pub(super) fn get(&self, row: usize) -> Result<i64> {
        self.values.get(self.ends.partition_point(|&end| end as usize <= row))
    }

    /// Tests each run once.
    pub(super) fn test(&self, test: &IntCondition, rows: usize) -> Result<Bitmap> {
        let mut values: Vec<i64> = Vec::new();
        self.values.decode_into(&mut values)?;
        let mut words = vec![0u64; rows.div_ceil(64)];
        let mut start = 0;
        for (&end, &value) in self.ends.iter().zip(&values) {
            if test.passes(i128::from(value)) {
                crate::validity::fill(&mut words, start, end as usize);
            }
            start = end as usize;
        }
        Ok(Bitmap::from_words(words, rows))
    }
}
