//! Periodic: a pattern that repeats from the first row on, as when devices report in turn, or when generators
//! count in circles. Payload: period (varint, at least 1 and below the number of rows), integer node of the
//! first period's values.

use vector::{Error, Result};

use super::{IntNode, Lane};
use crate::cursor::Reader;
use crate::options::EncodingId;

/// A pattern must repeat at least this often.
const MIN_REPEATS: usize = 4;

/// How many distances are tried that look right for a few values but are not.
const MAX_FAILURES: usize = 16;

/// How many values must agree before all are compared.
const PROBE: usize = 8;

/// The smallest distance at which the values repeat to the end.
pub(super) fn period(values: &[i64]) -> Option<usize> {
    let probe = values.get(..PROBE)?;
    let mut failures = 0;
    for distance in 1..=values.len() / MIN_REPEATS {
        if values.get(distance..distance + PROBE) == Some(probe) {
            let (Some(shifted), Some(start)) =
                (values.get(distance..), values.get(..values.len() - distance))
            else {
                return None;
            };
            if shifted == start {
                return Some(distance);
            }
            failures += 1;
            if failures >= MAX_FAILURES {
                return None;
            }
        }
    }
    None
}

/// A periodic node over its bytes.
#[derive(Debug)]
pub(super) struct Periodic<'a> {
    period: usize,
    rows: usize,
    pattern: Box<IntNode<'a>>,
}

impl<'a> Periodic<'a> {
    pub(super) fn open(reader: &mut Reader<'a>, rows: usize, depth: u8) -> Result<Self> {
        let depth = depth.checked_sub(1).ok_or_else(|| Error::corrupt("nodes nested too deep"))?;
        let period = reader.count(rows, "period")?;
        if period == 0 {
            return Err(Error::corrupt("period of 0 rows"));
        }
        Ok(Self { period, rows, pattern: Box::new(IntNode::open(reader, period, depth)?) })
    }

    pub(super) fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Periodic.name());
        out.push_str(" > ");
        self.pattern.describe(out);
    }

    pub(super) fn decode_into<T: Lane>(&self, out: &mut Vec<T>) -> Result<()> {
        let start = out.len();
        out.reserve(self.rows);
        self.pattern.decode_into(out)?;
        // Each copy doubles the values that are there, so that long stretches are copied at once.
        while out.len() - start < self.rows {
            let have = out.len() - start;
            out.extend_from_within(start..start + have.min(self.rows - have));
        }
        Ok(())
    }

    pub(super) fn get(&self, row: usize) -> Result<i64> {
        self.pattern.get(row % self.period)
    }
}
