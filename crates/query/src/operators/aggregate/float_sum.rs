//! sum and avg of floats.
//!
//! Sums are plain additions in double precision for float8, in single precision for float4's sum as on the server (its average sums in double). A sum that overflows from finite values is the server's
//! error. Its average computes a sum of squares on the way and fails where that overflows: such values are declined.

use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use super::accumulate::{Accumulator, Groups, MISTYPED, each_valid, same};
use super::results::with_nulls;
use crate::row_container::flat;
use crate::{Error, SqlError};

/// What comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Result {
    /// float4's sum.
    Single,
    /// float8's sum.
    Sum,
    /// The average, float8.
    Average,
}

/// Values whose squares' sum may overflow.
const HUGE: f64 = 1e140;

#[derive(Debug, Clone, Copy, Default)]
struct State {
    sum: f64,
    count: i64,
}

/// Sums of floats.
pub struct FloatSum {
    result: Result,
    states: Vec<State>,
    /// An infinite value was seen: whether a sum that is not finite is right or an error is not known then.
    infinite: bool,
}

impl FloatSum {
    /// No groups.
    pub const fn new(result: Result) -> Self {
        Self { result, states: Vec::new(), infinite: false }
    }

    fn add<T: Copy>(
        &mut self,
        argument: &Vector,
        values: &[T],
        groups: Groups<'_>,
        step: impl Fn(f64, T) -> f64,
        is_infinite: impl Fn(T) -> bool,
    ) {
        let rows = values.len();
        self.infinite |= values.iter().any(|&value| is_infinite(value));
        let validity = argument.validity.as_ref();
        match groups {
            Groups::One => {
                let Some(state) = self.states.first_mut() else { return };
                each_valid(validity, rows, |row| {
                    state.sum = step(state.sum, values[row]);
                    state.count += 1;
                });
            }
            Groups::Numbers(numbers) => {
                let (states, numbers) = (self.states.as_mut_slice(), &numbers[..rows]);
                each_valid(validity, rows, |row| {
                    let state = &mut states[numbers[row] as usize];
                    state.sum = step(state.sum, values[row]);
                    state.count += 1;
                });
            }
        }
    }
}

impl Accumulator for FloatSum {
    fn grow(&mut self, groups: usize) {
        self.states.resize(groups, State::default());
    }

    fn update(&mut self, arguments: &[Arc<Vector>], _rows: usize, groups: Groups<'_>) -> crate::Result<()> {
        let argument = flat(arguments.first().ok_or(MISTYPED)?);
        match &argument.values {
            Values::Float32(values) if self.result == Result::Single => {
                let step = |sum: f64, value: f32| f64::from(sum as f32 + value);
                self.add(&argument, values, groups, step, f32::is_infinite);
            }
            Values::Float32(values) => {
                self.add(&argument, values, groups, |sum, value| sum + f64::from(value), f32::is_infinite);
            }
            Values::Float64(values) => {
                let huge = |value: &f64| value.is_finite() && value.abs() > HUGE;
                if self.result == Result::Average && values.iter().any(huge) {
                    return Err(Error::Decline("squares of floats overflow"));
                }
                self.add(&argument, values, groups, |sum, value| sum + value, f64::is_infinite);
            }
            _ => return Err(MISTYPED),
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Accumulator>, to: &[u32]) -> crate::Result<()> {
        let other = same::<Self>(other)?;
        self.infinite |= other.infinite;
        for (&group, from) in to.iter().zip(other.states) {
            let state = &mut self.states[group as usize];
            state.sum = match self.result {
                Result::Single => f64::from(state.sum as f32 + from.sum as f32),
                _ => state.sum + from.sum,
            };
            state.count += from.count;
        }
        Ok(())
    }

    fn finish(&mut self, start: usize, len: usize) -> crate::Result<Vector> {
        let states = &self.states[start..start + len];
        if self.infinite && states.iter().any(|state| !state.sum.is_finite()) {
            return Err(Error::Decline("sums of infinities"));
        }
        if states.iter().any(|state| state.sum.is_infinite()) {
            return Err(Error::Sql(SqlError::FloatOverflow));
        }
        let seen = states.iter().map(|state| state.count > 0);
        Ok(match self.result {
            Result::Single => with_nulls(
                LogicalType::Float32,
                Values::Float32(states.iter().map(|state| state.sum as f32).collect()),
                seen,
            ),
            Result::Sum => with_nulls(
                LogicalType::Float64,
                Values::Float64(states.iter().map(|state| state.sum).collect()),
                seen,
            ),
            Result::Average => with_nulls(
                LogicalType::Float64,
                Values::Float64(states.iter().map(|state| state.sum / state.count as f64).collect()),
                seen,
            ),
        })
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * 16
    }
}
