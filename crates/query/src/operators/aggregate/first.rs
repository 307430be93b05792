//! The value of a group's first row. It shows a group whose key is a number that stands for the value.

use std::sync::Arc;

use vector::{LogicalType, Vector, VectorBuilder};

use super::accumulate::{Accumulator, Groups, MISTYPED, same};
use crate::row_container::{ValueColumn, flat};
use crate::{AggregateFunction, Result};

/// Group without a row.
const NONE: u32 = u32::MAX;

/// The first values of all groups.
pub struct First {
    logical: LogicalType,
    /// Where each group's value is.
    at: Vec<u32>,
    values: ValueColumn,
}

impl First {
    /// Of values of this type.
    pub fn new(logical: LogicalType) -> Self {
        Self { logical, at: Vec::new(), values: ValueColumn::new(logical) }
    }

    /// Takes the first rows of groups that had none.
    fn take(&mut self, from: &Vector, rows: impl Iterator<Item = (u32, usize)>) -> Result<()> {
        let mut fresh = Vec::new();
        for (row, group) in rows {
            let at = self.at.get_mut(group).ok_or(MISTYPED)?;
            if *at == NONE {
                *at = (self.values.len() + fresh.len()) as u32;
                fresh.push(row);
            }
        }
        self.values.append(from, &fresh)
    }
}

impl Accumulator for First {
    fn grow(&mut self, groups: usize) {
        self.at.resize(groups, NONE);
    }

    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = flat(arguments.first().ok_or(MISTYPED)?);
        match groups {
            Groups::One => self.take(&argument, (rows > 0).then_some((0, 0)).into_iter()),
            Groups::Numbers(numbers) => {
                let rows = (0..).zip(numbers).map(|(row, &group)| (row, group as usize));
                self.take(&argument, rows)
            }
        }
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        other.values.seal();
        let pairs = from.iter().zip(to).map(|(&from, &group)| (other.at[from as usize], group as usize));
        let (places, groups): (Vec<u32>, Vec<usize>) = pairs.filter(|(at, _)| *at != NONE).unzip();
        self.take(&other.values.take(&places), (0..).zip(groups))
    }

    fn complete(&mut self, _check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.values.seal();
        Ok(())
    }

    fn finish(&mut self, _: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let at = &self.at[start..start + len];
        if at.contains(&NONE) {
            // Only the one group of no keys may have no row.
            let mut builder = VectorBuilder::new(self.logical);
            at.iter().for_each(|_| builder.push_null());
            return Ok(builder.finish(&|_, _, _| Box::default()));
        }
        Ok(self.values.take(at))
    }

    fn bytes(&self) -> usize {
        self.at.capacity() * 4 + self.values.bytes()
    }
}
