//! Functions that give the value of another row: lag and lead, first_value, last_value and nth_value.
//!
//! Each row's answer is a position in the chunk; the values are gathered once for a range.

use vector::{Bitmap, LogicalType, Values, Vector};

use super::places::Places;
use super::{Call, Column, Compute, Input, MISTYPED};
use crate::{Error, Result, WindowFunction};

/// No row: NULL.
pub const ABSENT: u32 = u32::MAX;

/// The values in these rows; NULL for `ABSENT`.
pub fn pick(from: &Vector, positions: &mut [u32]) -> Vector {
    if !positions.contains(&ABSENT) {
        return from.take(positions);
    }
    let present: Bitmap = positions.iter().map(|&position| position != ABSENT).collect();
    positions.iter_mut().filter(|position| **position == ABSENT).for_each(|position| *position = 0);
    let mut taken = from.take(positions);
    taken.validity = Some(match &taken.validity {
        None => present,
        Some(validity) => validity.iter().zip(present.iter()).map(|(a, b)| a && b).collect(),
    });
    taken
}

/// lag and lead.
pub struct Shifted {
    value: usize,
    offset: Option<usize>,
    default: Option<usize>,
    forward: bool,
    /// Values, then defaults.
    both: Option<Vector>,
}

impl Shifted {
    /// For a call with a value, maybe an Int32 offset, maybe a default of the value's type.
    pub fn new(call: &Call) -> Result<Self> {
        let rest = |at: usize| (call.types.len() > at).then_some(call.first + at);
        match call.types.as_slice() {
            [_] | [_, LogicalType::Int32] => {}
            [value, LogicalType::Int32, default] if value == default => {}
            _ => return Err(MISTYPED),
        }
        Ok(Self {
            value: call.first,
            offset: rest(1),
            default: rest(2),
            forward: call.call.function == WindowFunction::Lead,
            both: None,
        })
    }
}

impl Compute for Shifted {
    fn prepare(&mut self, input: &Input) -> Result<()> {
        let Some(default) = self.default else { return Ok(()) };
        if u32::try_from(input.rows * 2).is_err() {
            return Err(Error::Decline("a partition of 2 billion rows"));
        }
        let value = input.argument(self.value)?;
        let parts = vec![value.clone(), input.argument(default)?.clone()];
        self.both = Some(crate::expression::end_to_end(value.logical, parts)?);
        Ok(())
    }

    fn compute(&mut self, input: &Input, at: &Places) -> Result<Column> {
        let offsets = match self.offset {
            None => None,
            Some(offset) => Some(input.argument(offset)?),
        };
        let offset = |row: usize| -> Result<Option<i64>> {
            let Some(offsets) = offsets else { return Ok(Some(1)) };
            let Values::Int32(values) = &offsets.values else { return Err(MISTYPED) };
            Ok(offsets.is_valid(row).then(|| values[row].into()))
        };
        let mut positions = Vec::with_capacity(at.len());
        for (place, row) in at.rows.clone().enumerate() {
            let partition = i64::from(at.partition_start[place])..i64::from(at.partition_end[place]);
            positions.push(match offset(row)? {
                None => ABSENT,
                Some(offset) => {
                    let target = row as i64 + if self.forward { offset } else { -offset };
                    match (partition.contains(&target), self.default) {
                        (true, _) => target as u32,
                        (false, Some(_)) => (input.rows + row) as u32,
                        (false, None) => ABSENT,
                    }
                }
            });
        }
        let from = match &self.both {
            Some(both) => both,
            None => input.argument(self.value)?,
        };
        Ok(Column::Vector(pick(from, &mut positions)))
    }
}

/// first_value, last_value and nth_value.
pub struct OfFrame {
    function: WindowFunction,
    value: usize,
}

impl OfFrame {
    /// For a call with a value, and an Int32 for nth_value.
    pub fn new(call: &Call) -> Result<Self> {
        match (call.call.function, call.types.as_slice()) {
            (WindowFunction::NthValue, [_, LogicalType::Int32])
            | (WindowFunction::FirstValue | WindowFunction::LastValue, [_]) => {}
            _ => return Err(MISTYPED),
        }
        Ok(Self { function: call.call.function, value: call.first })
    }
}

impl Compute for OfFrame {
    fn compute(&mut self, input: &Input, at: &Places) -> Result<Column> {
        let numbers = match self.function {
            WindowFunction::NthValue => Some(input.argument(self.value + 1)?),
            _ => None,
        };
        let mut positions = Vec::with_capacity(at.len());
        for (place, row) in at.rows.clone().enumerate() {
            let parts = at.parts(place);
            let position = match (self.function, numbers) {
                (WindowFunction::LastValue, _) => {
                    parts.iter().rev().find(|(start, end)| start < end).map(|(_, end)| end - 1)
                }
                (_, None) => parts.iter().find(|(start, end)| start < end).map(|(start, _)| *start),
                (_, Some(numbers)) => match &numbers.values {
                    Values::Int32(values) if numbers.is_valid(row) => nth(&parts, values[row])?,
                    Values::Int32(_) => None,
                    _ => return Err(MISTYPED),
                },
            };
            positions.push(position.unwrap_or(ABSENT));
        }
        Ok(Column::Vector(pick(input.argument(self.value)?, &mut positions)))
    }
}

/// The n-th row of some ranges.
fn nth(parts: &[(u32, u32)], n: i32) -> Result<Option<u32>> {
    let mut left = u32::try_from(n)
        .ok()
        .and_then(|n| n.checked_sub(1))
        .ok_or(Error::Decline("nth_value before the first"))?;
    for &(start, end) in parts {
        if left < end - start {
            return Ok(Some(start + left));
        }
        left -= end - start;
    }
    Ok(None)
}
