//! bool_and and bool_or.

use std::sync::Arc;

use vector::{Bitmap, LogicalType, Values, Vector};

use super::accumulate::{Accumulator, Groups, MISTYPED, each_valid, same};
use crate::row_container::flat;
use crate::{AggregateFunction, Result};

/// Whether all or any values are true. Per group a bit for "false was seen" (1) and "true was seen" (2).
pub struct Boolean {
    all: bool,
    seen: Vec<u8>,
}

impl Boolean {
    /// `all`: bool_and, otherwise bool_or.
    pub const fn new(all: bool) -> Self {
        Self { all, seen: Vec::new() }
    }
}

impl Accumulator for Boolean {
    fn grow(&mut self, groups: usize) {
        self.seen.resize(groups, 0);
    }

    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = flat(arguments.first().ok_or(MISTYPED)?);
        let Values::Bool(bits) = &argument.values else { return Err(MISTYPED) };
        let seen = self.seen.as_mut_slice();
        each_valid(argument.validity.as_ref(), rows, |row| {
            let group = match groups {
                Groups::One => 0,
                Groups::Numbers(numbers) => numbers[row] as usize,
            };
            seen[group] |= 1 << u8::from(bits.get(row));
        });
        Ok(())
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        for (&from, &group) in from.iter().zip(to) {
            self.seen[group as usize] |= other.seen[from as usize];
        }
        Ok(())
    }

    fn finish(&mut self, _: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let seen = &self.seen[start..start + len];
        let bits: Bitmap = seen.iter().map(|&seen| if self.all { seen == 2 } else { seen >= 2 }).collect();
        let validity: Bitmap = seen.iter().map(|&seen| seen != 0).collect();
        Ok(Vector { logical: LogicalType::Bool, validity: Some(validity), values: Values::Bool(bits) })
    }

    fn bytes(&self) -> usize {
        self.seen.capacity()
    }
}
