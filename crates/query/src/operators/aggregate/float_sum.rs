//! sum and avg of floats.
//!
//! Sums are plain additions in double precision for float8, in single precision for float4's sum as on the server (its average sums in double). A sum that overflows from finite values is the server's
//! error. Its average computes a sum of squares on the way and fails where that overflows: such values are declined. Sums in double precision of one group are added up in lanes, which
//! changes their last digits as the server's parallel plans do; values that could overflow are taken in order.

use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use super::accumulate::{Accumulator, Groups, MISTYPED, each_valid, same};
use super::copies;
use super::results::with_nulls;
use crate::row_container::flat;
use crate::{AggregateFunction, Error, Result, SqlError};

/// Values whose squares' sum may overflow.
const HUGE: f64 = 1e140;
/// Sums that are added up side by side.
const LANES: usize = 8;

#[derive(Debug, Clone, Copy)]
struct State {
    sum: f64,
    count: i64,
}

/// The zero that leaves every value as it is: the sum of values that are all -0 is -0.
const ZERO: f64 = -0.0;
const EMPTY: State = State { sum: ZERO, count: 0 };

/// Sums of floats.
pub struct FloatSum {
    /// Of float4 values, and whether they are summed in single precision.
    narrow: bool,
    single: bool,
    /// The average is asked for.
    average: bool,
    states: Vec<State>,
    /// An infinite value was seen: whether a sum that is not finite is right or an error is not known then.
    infinite: bool,
}

impl FloatSum {
    /// No groups; of values of this type.
    pub fn new(function: AggregateFunction, logical: LogicalType) -> Self {
        let average = function == AggregateFunction::Avg;
        let narrow = logical == LogicalType::Float32;
        Self { narrow, single: narrow && !average, average, states: Vec::new(), infinite: false }
    }

    fn add<T: Copy + Into<f64>>(
        &mut self,
        argument: &Vector,
        values: &[T],
        groups: Groups<'_>,
    ) -> Result<()> {
        // Without a branch for each value, because there is hardly ever one.
        let calm = values.iter().fold(true, |calm, &value| calm & (value.into().abs() <= HUGE));
        if !calm {
            self.infinite |= values.iter().any(|&value| value.into().is_infinite());
            let huge = |value: f64| value.is_finite() && value.abs() > HUGE;
            if self.average && values.iter().any(|&value| huge(value.into())) {
                return Err(Error::Decline("squares of floats overflow"));
            }
        }
        match (groups, &argument.validity) {
            (Groups::One, None) if calm && !self.single => {
                let Some(state) = self.states.first_mut() else { return Ok(()) };
                state.sum += in_lanes(values);
                state.count += values.len() as i64;
            }
            (Groups::Numbers(numbers), None) if calm && !self.single => {
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
                self.each(argument, values, groups, |sum, value| f64::from(sum as f32 + value as f32));
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

    fn merge(&mut self, other: Box<dyn Accumulator>, to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        self.infinite |= other.infinite;
        for (&group, from) in to.iter().zip(other.states) {
            let state = &mut self.states[group as usize];
            state.sum = match self.single {
                true => f64::from(state.sum as f32 + from.sum as f32),
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
        if self.infinite && states.iter().any(|state| !state.sum.is_finite()) {
            return Err(Error::Decline("sums of infinities"));
        }
        if states.iter().any(|state| state.sum.is_infinite()) {
            return Err(Error::Sql(SqlError::FloatOverflow));
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
                // The server's average starts from the other zero.
                let average = |state: &State| (state.sum + 0.0) / state.count as f64;
                let result = |state| if averages { average(state) } else { state.sum };
                with_nulls(LogicalType::Float64, Values::Float64(states.iter().map(result).collect()), seen)
            }
        })
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * 16
    }
}
