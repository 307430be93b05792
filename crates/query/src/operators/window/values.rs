//! Functions that give the value of another row: lag and lead, first_value, last_value and nth_value.
//!
//! Each row's answer is a position in the chunk; the values are gathered once for a range.

use vector::{LogicalType, Values};

use super::input::{ABSENT, Input};
use super::places::Places;
use super::{Call, Column, Compute, MISTYPED};
use crate::expression::end_to_end;
use crate::{Error, Result, WindowFunction};

/// lag and lead.
pub struct Shifted {
    value: usize,
    offset: Option<usize>,
    default: Option<usize>,
    forward: bool,
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
        })
    }
}

impl Compute for Shifted {
    fn compute(&mut self, input: &Input, at: &Places) -> Result<Column> {
        let offsets = self.offset.map(|offset| input.slice(offset, at.rows.clone())).transpose()?;
        let offset = |place: usize| -> Result<Option<i64>> {
            let Some(offsets) = &offsets else { return Ok(Some(1)) };
            let Values::Int32(values) = &offsets.values else { return Err(MISTYPED) };
            Ok(offsets.is_valid(place).then(|| values[place].into()))
        };
        let mut positions = Vec::with_capacity(at.len());
        // The rows without such a row in their partition.
        let mut outside = Vec::new();
        for (place, row) in at.rows.clone().enumerate() {
            let partition = i64::from(at.partition_start[place])..i64::from(at.partition_end[place]);
            let target = offset(place)?.map(|by| row as i64 + if self.forward { by } else { -by });
            positions.push(match target {
                Some(target) if partition.contains(&target) => target as u32,
                Some(_) => {
                    outside.push(place as u32);
                    ABSENT
                }
                None => ABSENT,
            });
        }
        let values = input.take(self.value, &mut positions)?;
        let Some(default) = self.default.filter(|_| !outside.is_empty()) else {
            return Ok(Column::Vector(values));
        };
        // Values, then defaults.
        let defaults = input.slice(default, at.rows.clone())?;
        let both = end_to_end(values.logical, vec![values, defaults])?;
        let mut picked: Vec<u32> = (0..at.len() as u32).collect();
        outside.iter().for_each(|&place| picked[place as usize] += at.len() as u32);
        Ok(Column::Vector(both.take(&picked)))
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
            WindowFunction::NthValue => Some(input.slice(self.value + 1, at.rows.clone())?),
            _ => None,
        };
        let mut positions = Vec::with_capacity(at.len());
        for place in 0..at.len() {
            let parts = at.parts(place);
            let position = match (self.function, &numbers) {
                (WindowFunction::LastValue, _) => {
                    parts.iter().rev().find(|(start, end)| start < end).map(|(_, end)| end - 1)
                }
                (_, None) => parts.iter().find(|(start, end)| start < end).map(|(start, _)| *start),
                (_, Some(numbers)) => match &numbers.values {
                    Values::Int32(values) if numbers.is_valid(place) => nth(&parts, values[place])?,
                    Values::Int32(_) => None,
                    _ => return Err(MISTYPED),
                },
            };
            positions.push(position.unwrap_or(ABSENT));
        }
        Ok(Column::Vector(input.take(self.value, &mut positions)?))
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
