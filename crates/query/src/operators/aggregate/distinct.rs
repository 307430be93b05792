//! DISTINCT: what an accumulator sees of values that came before.
//!
//! Rows of group and arguments are numbered; only those that are new go on to the accumulator. Equality is that of grouping.

use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use super::accumulate::{Accumulator, Groups, same};
use crate::row_container::{Numbering, flat};
use crate::{BATCH_ROWS, Result};

/// An accumulator that sees equal arguments of a group once.
pub struct Distinct {
    inner: Box<dyn Accumulator>,
    /// Rows of group number (where there are keys) and arguments.
    seen: Numbering,
    keyed: bool,
    numbers: Vec<u32>,
}

impl Distinct {
    /// In front of this accumulator of arguments of these types.
    pub fn new(inner: Box<dyn Accumulator>, types: &[LogicalType], keyed: bool, memo: usize) -> Self {
        let group = keyed.then_some(LogicalType::Int32);
        let types: Vec<_> = group.into_iter().chain(types.iter().copied()).collect();
        Self { inner, seen: Numbering::new(&types, memo), keyed, numbers: Vec::new() }
    }
}

impl Accumulator for Distinct {
    fn grow(&mut self, groups: usize) {
        self.inner.grow(groups);
    }

    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()> {
        match groups {
            Groups::One => self.seen.number(arguments, rows, &mut self.numbers)?,
            Groups::Numbers(numbers) => {
                let numbers = numbers.iter().map(|&number| number as i32).collect();
                let mut columns = vec![Arc::new(Vector::new(LogicalType::Int32, Values::Int32(numbers)))];
                columns.extend_from_slice(arguments);
                self.seen.number(&columns, rows, &mut self.numbers)?;
            }
        }
        let fresh = self.seen.fresh();
        if fresh.is_empty() {
            return Ok(());
        }
        let arguments: Vec<_> = arguments.iter().map(|argument| Arc::new(argument.take(fresh))).collect();
        match groups {
            Groups::One => self.inner.update(&arguments, fresh.len(), Groups::One),
            Groups::Numbers(numbers) => {
                let numbers: Vec<u32> = fresh.iter().map(|&row| numbers[row as usize]).collect();
                self.inner.update(&arguments, fresh.len(), Groups::Numbers(&numbers))
            }
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>, to: &[u32]) -> Result<()> {
        let mut other = same::<Self>(other)?;
        let seen = other.seen.set_mut();
        seen.seal();
        for start in (0..seen.len()).step_by(BATCH_ROWS) {
            let rows = BATCH_ROWS.min(seen.len() - start);
            let columns = seen.slice(start, rows);
            match columns.split_first() {
                Some((groups, arguments)) if self.keyed => {
                    let groups = flat(groups);
                    let Values::Int32(groups) = &groups.values else { continue };
                    let numbers: Vec<u32> = groups.iter().map(|&group| to[group as usize]).collect();
                    self.update(arguments, rows, Groups::Numbers(&numbers))?;
                }
                _ => self.update(&columns, rows, Groups::One)?,
            }
        }
        Ok(())
    }

    fn finish(&mut self, start: usize, len: usize) -> Result<Vector> {
        self.inner.finish(start, len)
    }

    fn bytes(&self) -> usize {
        self.inner.bytes() + self.seen.bytes()
    }
}
