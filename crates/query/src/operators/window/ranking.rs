//! Functions of a row's place in its partition: row_number, rank, dense_rank, percent_rank, cume_dist and
//! ntile.

use vector::{LogicalType, Values, Vector};

use super::input::Input;
use super::places::Places;
use super::{Call, Column, Compute, MISTYPED};
use crate::operators::aggregate::results::with_nulls;
use crate::{Error, Result, WindowFunction};

/// All but ntile.
pub struct Ranking(pub WindowFunction);

impl Compute for Ranking {
    fn compute(&mut self, _input: &Input, at: &Places) -> Result<Column> {
        let rank = |row: usize| at.peers_start[row] - at.partition_start[row] + 1;
        let rows = 0..at.len();
        let size = |row: usize| at.partition_end[row] - at.partition_start[row];
        let integers = |values: Vec<i64>| Vector::new(LogicalType::Int64, Values::Int64(values));
        let floats = |values: Vec<f64>| Vector::new(LogicalType::Float64, Values::Float64(values));
        Ok(Column::Vector(match self.0 {
            WindowFunction::RowNumber => {
                let starts = at.rows.clone().zip(&at.partition_start);
                integers(starts.map(|(row, &start)| row as i64 - i64::from(start) + 1).collect())
            }
            WindowFunction::Rank => integers(rows.map(|row| rank(row).into()).collect()),
            WindowFunction::DenseRank => {
                integers(at.group.iter().map(|&group| i64::from(group) + 1).collect())
            }
            WindowFunction::PercentRank => floats(
                rows.map(|row| match size(row) {
                    0 | 1 => 0.0,
                    size => f64::from(rank(row) - 1) / f64::from(size - 1),
                })
                .collect(),
            ),
            WindowFunction::CumeDist => floats(
                rows.map(|row| f64::from(at.peers_end[row] - at.partition_start[row]) / f64::from(size(row)))
                    .collect(),
            ),
            _ => return Err(MISTYPED),
        }))
    }
}

/// ntile: the rows of a partition in buckets of nearly one size, the larger ones first. The argument is that
/// of the partition's first row where it is not NULL; rows before have no bucket.
#[derive(Default)]
pub struct Ntile {
    argument: usize,
    /// Number of the row's bucket; 0 before the first one.
    bucket: i32,
    /// Rows that it has so far, and how many it gets.
    rows: u32,
    size: u32,
    /// Buckets with one row more.
    larger: u32,
}

impl Ntile {
    /// For a call with one Int32 argument.
    pub fn new(call: &Call) -> Result<Self> {
        match call.types.as_slice() {
            [LogicalType::Int32] => Ok(Self { argument: call.first, ..Self::default() }),
            _ => Err(MISTYPED),
        }
    }
}

impl Compute for Ntile {
    fn compute(&mut self, input: &Input, at: &Places) -> Result<Column> {
        let argument = input.slice(self.argument, at.rows.clone())?;
        let Values::Int32(counts) = &argument.values else { return Err(MISTYPED) };
        let mut buckets = Vec::with_capacity(at.len());
        for (place, row) in at.rows.clone().enumerate() {
            if at.partition_start[place] as usize == row {
                self.bucket = 0;
            }
            if self.bucket == 0 {
                if !argument.is_valid(place) {
                    buckets.push(0);
                    continue;
                }
                let count = u32::try_from(counts[place]).ok().filter(|&count| count > 0);
                let count = count.ok_or(Error::Decline("ntile of no bucket"))?;
                let all = at.partition_end[place] - at.partition_start[place];
                (self.bucket, self.rows, self.larger) = (1, 0, 0);
                self.size = (all / count).max(1);
                if all >= count && !all.is_multiple_of(count) {
                    self.larger = all % count;
                    self.size += 1;
                }
            }
            self.rows += 1;
            if self.rows > self.size {
                if self.larger != 0 && self.bucket as u32 == self.larger {
                    self.larger = 0;
                    self.size -= 1;
                }
                self.bucket += 1;
                self.rows = 1;
            }
            buckets.push(self.bucket);
        }
        let seen: Vec<bool> = buckets.iter().map(|&bucket| bucket > 0).collect();
        Ok(Column::Vector(with_nulls(LogicalType::Int32, Values::Int32(buckets), seen.into_iter())))
    }
}
