//! sum and avg of floats.
//!
//! Sums are plain additions in double precision for float8, in single precision for float4's sum as on the
//! server (its average sums in double). The server fails at the step in which finite values overflow,
//! whatever values follow. Its average also computes a sum of squares and fails when that overflows. Values
//! that could overflow are declined (`are_within`). Sums in double precision of one group are added up in
//! lanes, which changes their last digits as the server's parallel plans do; infinities and NaN are taken in
//! order. Windows (`window/running`) follow the same rules.

use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use super::accumulate::{Accumulator, Groups, MISTYPED, each_valid, same};
use super::copies;
use super::results::with_nulls;
use crate::row_container::flat;
use crate::{AggregateFunction, Error, Result};

/// Values that one sum takes at most: those within `limit` cannot overflow.
const MOST: i64 = 1 << 33;
/// Sums that are added up side by side.
const LANES: usize = 8;

#[derive(Debug, Clone, Copy)]
struct State {
    sum: f64,
    count: i64,
}

/// The zero that leaves every value as it is: the sum of values that are all -0 is -0.
pub const ZERO: f64 = -0.0;
const EMPTY: State = State { sum: ZERO, count: 0 };

/// The largest finite value of which a sum in single precision, an average, or else a sum in double precision
/// cannot overflow on the way.
pub fn limit(single: bool, average: bool) -> f64 {
    match (single, average) {
        (true, _) => f64::from(f32::MAX) / MOST as f64,
        // Their squares are summed up.
        (_, true) => 1e140,
        _ => f64::MAX / MOST as f64,
    }
}

/// True where all values are finite; declines those beyond the limit.
pub fn are_within<T: Copy + Into<f64>>(values: &[T], limit: f64) -> Result<bool> {
    // The loop has no branch for each value, because a value beyond the limit is rare.
    let within = values.iter().fold(true, |within, &value| within & (value.into().abs() <= limit));
    let huge = |value: f64| value.is_finite() && value.abs() > limit;
    match !within && values.iter().any(|&value| huge(value.into())) {
        true => Err(Error::Decline("sums of floats that may overflow")),
        false => Ok(within),
    }
}

/// A step in single precision.
pub fn add_single(sum: f64, value: f64) -> f64 {
    f64::from(sum as f32 + value as f32)
}

/// The average of values with this sum: the server's starts from the other zero.
pub fn average(sum: f64, count: i64) -> f64 {
    (sum + 0.0) / count as f64
}

/// Sums of floats.
pub struct FloatSum {
    /// Of float4 values, and whether they are summed in single precision.
    narrow: bool,
    single: bool,
    /// The average is asked for.
    average: bool,
    states: Vec<State>,
}

impl FloatSum {
    /// No groups; of values of this type.
    pub fn new(function: AggregateFunction, logical: LogicalType) -> Self {
        let average = function == AggregateFunction::Avg;
        let narrow = logical == LogicalType::Float32;
        Self { narrow, single: narrow && !average, average, states: Vec::new() }
    }

    fn add<T: Copy + Into<f64>>(
        &mut self,
        argument: &Vector,
        values: &[T],
        groups: Groups<'_>,
    ) -> Result<()> {
        let within = are_within(values, limit(self.single, self.average))?;
        match (groups, &argument.validity) {
            (Groups::One, None) if within && !self.single => {
                let Some(state) = self.states.first_mut() else { return Ok(()) };
                state.sum += in_lanes(values);
                state.count += values.len() as i64;
            }
            (Groups::Numbers(numbers), None) if within && !self.single => {
                let add = |state: &mut State, value: T| {
                    state.sum += value.into();
                    state.count += 1;
                };
                let join = |state: &mut State, other: State| {
                    state.sum += other.sum;
                    state.count += other.count;
                };
                copies::each(&mut self.states, EMPTY, (numbers, values), add, join);
            }
            _ if self.single => {
                self.each(argument, values, groups, add_single);
            }
            _ => self.each(argument, values, groups, |sum, value| sum + value),
        }
        Ok(())
    }

    fn each<T: Copy + Into<f64>>(
        &mut self,
        argument: &Vector,
        values: &[T],
        groups: Groups<'_>,
        step: impl Fn(f64, f64) -> f64,
    ) {
        let rows = values.len();
        let validity = argument.validity.as_ref();
        match groups {
            Groups::One => {
                let Some(state) = self.states.first_mut() else { return };
                each_valid(validity, rows, |row| {
                    state.sum = step(state.sum, values[row].into());
                    state.count += 1;
                });
            }
            Groups::Numbers(numbers) => {
                let (states, numbers) = (self.states.as_mut_slice(), &numbers[..rows]);
                each_valid(validity, rows, |row| {
                    let state = &mut states[numbers[row] as usize];
                    state.sum = step(state.sum, values[row].into());
                    state.count += 1;
                });
            }
        }
    }
}

/// The sum of values, each lane's first: additions do not wait for one another.
fn in_lanes<T: Copy + Into<f64>>(values: &[T]) -> f64 {
    let mut lanes = [ZERO; LANES];
    let mut chunks = values.chunks_exact(LANES);
    for chunk in &mut chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, &value)| *lane += value.into());
    }
    let rest = chunks.remainder().iter().fold(ZERO, |sum, &value| sum + value.into());
    lanes.iter().fold(rest, |sum, lane| sum + lane)
}

impl Accumulator for FloatSum {
    fn also(&mut self, function: AggregateFunction) -> bool {
        match function {
            AggregateFunction::Count => true,
            AggregateFunction::Sum | AggregateFunction::Avg => {
                // float4's sum rounds after each step, its average does not.
                let average = function == AggregateFunction::Avg;
                let shared = !self.narrow || average == self.average;
                self.average |= shared && average;
                shared
            }
            _ => false,
        }
    }

    fn grow(&mut self, groups: usize) {
        self.states.resize(groups, EMPTY);
    }

    fn update(&mut self, arguments: &[Arc<Vector>], _rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = flat(arguments.first().ok_or(MISTYPED)?);
        match &argument.values {
            Values::Float32(values) => self.add(&argument, values, groups),
            Values::Float64(values) => self.add(&argument, values, groups),
            _ => Err(MISTYPED),
        }
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        for (&from, &group) in from.iter().zip(to) {
            let from = other.states[from as usize];
            let state = &mut self.states[group as usize];
            state.sum = match self.single {
                true => add_single(state.sum, from.sum),
                false => state.sum + from.sum,
            };
            state.count += from.count;
        }
        Ok(())
    }

    fn finish(&mut self, function: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let states = &self.states[start..start + len];
        if function == AggregateFunction::Count {
            let counts = states.iter().map(|state| state.count).collect();
            return Ok(Vector::new(LogicalType::Int64, Values::Int64(counts)));
        }
        if states.iter().any(|state| state.count > MOST && !state.sum.is_finite()) {
            return Err(Error::Decline("sums of floats that may have overflowed"));
        }
        let seen = states.iter().map(|state| state.count > 0);
        let averages = function == AggregateFunction::Avg;
        Ok(match self.single {
            true => with_nulls(
                LogicalType::Float32,
                Values::Float32(states.iter().map(|state| state.sum as f32).collect()),
                seen,
            ),
            false => {
                let result = |state: &State| match averages {
                    true => average(state.sum, state.count),
                    false => state.sum,
                };
                with_nulls(LogicalType::Float64, Values::Float64(states.iter().map(result).collect()), seen)
            }
        })
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * 16
    }
}
