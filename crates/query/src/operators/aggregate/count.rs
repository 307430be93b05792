//! count(*) and count(x).

use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use super::accumulate::{Accumulator, Groups, MISTYPED, NO_SUMMARY, each_valid, same};
use super::copies;
use crate::{AggregateFunction, ColumnSummary, Result};

/// Rows, or values that are not NULL, in each group.
pub struct Count {
    values: bool,
    counts: Vec<i64>,
}

impl Count {
    /// Counts rows.
    pub const fn rows() -> Self {
        Self { values: false, counts: Vec::new() }
    }

    /// Counts the argument's values.
    pub const fn values() -> Self {
        Self { values: true, counts: Vec::new() }
    }
}

/// Rows of a vector that are not NULL.
pub fn valid_rows(vector: &Vector) -> usize {
    match &vector.values {
        Values::Constant(value, _) if !value.is_valid(0) => 0,
        Values::Runs { .. } => vector.len() - vector.null_count(),
        _ => vector.len() - vector.validity.as_ref().map_or(0, vector::Bitmap::count_zeros),
    }
}

impl Accumulator for Count {
    fn grow(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
    }

    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = arguments.first().filter(|_| self.values);
        let counts = self.counts.as_mut_slice();
        match (groups, argument) {
            (Groups::One, None) => add(counts, rows),
            (Groups::One, Some(argument)) => add(counts, valid_rows(argument)),
            (Groups::Numbers(numbers), argument) => {
                let mixed = argument.filter(|argument| valid_rows(argument) < rows);
                match mixed {
                    None => {
                        let rows = (numbers, numbers);
                        copies::each(counts, 0, rows, |count, _| *count += 1, |count, more| *count += more);
                    }
                    Some(argument) => match (&argument.values, &argument.validity) {
                        (Values::Constant(..) | Values::Runs { .. }, _) => {
                            for (row, &group) in numbers.iter().enumerate() {
                                counts[group as usize] += i64::from(argument.is_valid(row));
                            }
                        }
                        (_, validity) => {
                            each_valid(validity.as_ref(), rows, |row| counts[numbers[row] as usize] += 1);
                        }
                    },
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        for (&from, &group) in from.iter().zip(to) {
            self.counts[group as usize] += other.counts[from as usize];
        }
        Ok(())
    }

    fn summary(&mut self, rows: u64, column: Option<&ColumnSummary>) -> Result<()> {
        let nulls = if self.values { column.ok_or(NO_SUMMARY)?.nulls } else { 0 };
        add(&mut self.counts, usize::try_from(rows.saturating_sub(nulls)).map_err(|_| MISTYPED)?);
        Ok(())
    }

    fn finish(&mut self, _: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        Ok(Vector::new(LogicalType::Int64, Values::Int64(self.counts[start..start + len].to_vec())))
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * 8
    }
}

fn add(counts: &mut [i64], rows: usize) {
    if let Some(count) = counts.first_mut() {
        *count += rows as i64;
    }
}
