//! min and max over frames.
//!
//! Of the frame's rows those are kept, in order, that no later row replaces: the first of them is the answer, and each row enters and leaves once. Of values that are equal but not the same the
//! last one stays, as on the server.

use std::cmp::Ordering;
use std::collections::VecDeque;

use vector::{LogicalType, Values, Vector, compare_floats};

use super::places::Places;
use super::values::{ABSENT, pick};
use super::{Call, Column, Compute, Input};
use crate::row_container::integers_of;
use crate::{AggregateFunction, Error, Result, TextOrder, interrupt};

/// The computer of min or max.
pub fn make(function: AggregateFunction, call: &Call) -> Result<Option<Box<dyn Compute>>> {
    let greatest = match function {
        AggregateFunction::Min => false,
        AggregateFunction::Max => true,
        _ => return Ok(None),
    };
    match call.types.first() {
        None | Some(LogicalType::Bool | LogicalType::Uuid | LogicalType::FixedBytes(_)) => {
            Err(Error::Decline("min or max of this type"))
        }
        Some(_) => Ok(Some(Box::new(Extremes {
            greatest,
            argument: call.first,
            order: call.call.order.clone(),
            before: Candidates::default(),
            after: Candidates::default(),
        }))),
    }
}

struct Extremes {
    greatest: bool,
    argument: usize,
    order: TextOrder,
    /// Of the frame's rows before what it leaves out, and after it.
    before: Candidates,
    after: Candidates,
}

/// Rows that may become the answer.
#[derive(Default)]
struct Candidates {
    rows: VecDeque<u32>,
    /// One past the last row that was looked at.
    seen: u32,
}

impl Candidates {
    /// Moves to rows `start..end`; neither may go back. `replaces` says whether a later row is at least as good as an earlier one.
    fn slide(
        &mut self,
        start: u32,
        end: u32,
        valid: &impl Fn(u32) -> bool,
        replaces: &impl Fn(u32, u32) -> bool,
    ) -> Result<Option<u32>> {
        for row in self.seen.max(start)..end {
            interrupt::check_at(row as usize)?;
            if valid(row) {
                while self.rows.back().is_some_and(|&last| replaces(row, last)) {
                    self.rows.pop_back();
                }
                self.rows.push_back(row);
            }
        }
        self.seen = self.seen.max(end);
        while self.rows.front().is_some_and(|&first| first < start) {
            self.rows.pop_front();
        }
        // A frame of no rows may end before rows that an earlier one reached.
        Ok(self.rows.front().copied().filter(|_| start < end))
    }
}

impl Extremes {
    fn positions(
        &mut self,
        at: &Places,
        valid: impl Fn(u32) -> bool,
        order: impl Fn(usize, usize) -> Ordering,
    ) -> Result<Vec<u32>> {
        let worse = if self.greatest { Ordering::Less } else { Ordering::Greater };
        let replaces = |later: u32, earlier: u32| order(later as usize, earlier as usize) != worse;
        let mut positions = Vec::with_capacity(at.len());
        for place in 0..at.len() {
            if let (true, Some(&last)) = (at.is_repeated(place), positions.last()) {
                positions.push(last);
                continue;
            }
            let [(start, end), (row, row_end), (after, after_end)] = at.parts(place);
            let found = [
                self.before.slide(start, end, &valid, &replaces)?,
                (row < row_end && valid(row)).then_some(row),
                match at.holes {
                    Some(_) => self.after.slide(after, after_end, &valid, &replaces)?,
                    None => None,
                },
            ];
            let best = found
                .into_iter()
                .flatten()
                .reduce(|best, next| if replaces(next, best) { next } else { best });
            positions.push(best.unwrap_or(ABSENT));
        }
        Ok(positions)
    }

    fn of(&mut self, argument: &Vector, at: &Places) -> Result<Vec<u32>> {
        let valid = |row: u32| argument.validity.as_ref().is_none_or(|valid| valid.get(row as usize));
        match &argument.values {
            Values::Int16(v) => self.positions(at, valid, |a, b| v[a].cmp(&v[b])),
            Values::Int32(v) => self.positions(at, valid, |a, b| v[a].cmp(&v[b])),
            Values::Int64(v) => self.positions(at, valid, |a, b| v[a].cmp(&v[b])),
            Values::Float32(v) => self.positions(at, valid, |a, b| compare_floats(v[a].into(), v[b].into())),
            Values::Float64(v) => self.positions(at, valid, |a, b| compare_floats(v[a], v[b])),
            Values::Numeric(v) if v.side.is_empty() => {
                self.positions(at, valid, |a, b| v.ints.get(a).cmp(&v.ints.get(b)))
            }
            Values::Numeric(v) => {
                let ints = integers_of(v).ok_or(Error::Decline("numeric outside 128 bits"))?;
                self.positions(at, valid, |a, b| ints[a].cmp(&ints[b]))
            }
            Values::Bytes(v) => {
                let order = self.order.clone();
                self.positions(at, valid, |a, b| order.compare(v.get(a), v.get(b)))
            }
            _ => Err(Error::Decline("min or max of this type")),
        }
    }
}

impl Compute for Extremes {
    fn compute(&mut self, input: &Input, at: &Places) -> Result<Column> {
        let argument = input.argument(self.argument)?;
        let mut positions = self.of(argument, at)?;
        Ok(Column::Vector(pick(argument, &mut positions)))
    }
}
