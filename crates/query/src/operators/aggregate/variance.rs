//! Variances and standard deviations.
//!
//! Exact numbers follow the server's `numeric_stddev_internal`. Values and squares are summed as integers.
//! The variance is the numeric division (N * sum of squares - square of sum) / (N * N or N * (N - 1)). The
//! deviation is its square root to as many digits. Sums that need more than 128 bits are declined.
//!
//! Floats use the recurrence of Youngs and Cramer, value by value and between threads, as the server's
//! `float8_accum` and `float8_combine` do.

use std::sync::Arc;

use vector::{Decimal, DisplayScales, LogicalType, NumericInts, Values, Vector, unsigned};

use super::accumulate::{Accumulator, Groups, MISTYPED, each_valid, same};
use super::results::{decimals, power_of_ten, square_root, with_nulls};
use crate::division::{divide, division_scale};
use crate::row_container::flat;
use crate::{AggregateFunction, Error, Result};

const WIDE: Error = Error::Decline("numeric outside 128 bits");

/// Which of the four.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Of a sample: one less in the divisor.
    sample: bool,
    /// The square root of the variance.
    deviation: bool,
}

impl Kind {
    /// None for other functions.
    pub const fn of(function: AggregateFunction) -> Option<Self> {
        use AggregateFunction as F;
        let (sample, deviation) = match function {
            F::VarSamp => (true, false),
            F::VarPop => (false, false),
            F::StddevSamp => (true, true),
            F::StddevPop => (false, true),
            _ => return None,
        };
        Some(Self { sample, deviation })
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    sum: i128,
    squares: i128,
    count: i64,
    /// Greatest display scale.
    display: u16,
}

/// Variances of integers and decimals.
#[derive(Default)]
pub struct ExactVariance {
    states: Vec<State>,
    scale: u16,
}

impl ExactVariance {
    fn raise(&mut self, scale: u16) -> Result<()> {
        if scale > self.scale {
            let factor = power_of_ten(u32::from(scale - self.scale))?;
            let square = factor.checked_mul(factor).ok_or(WIDE)?;
            for state in &mut self.states {
                state.sum = state.sum.checked_mul(factor).ok_or(WIDE)?;
                state.squares = state.squares.checked_mul(square).ok_or(WIDE)?;
            }
            self.scale = scale;
        }
        Ok(())
    }

    fn add(
        &mut self,
        argument: &Vector,
        groups: Groups<'_>,
        value: impl Fn(usize) -> i128,
        factor: i128,
        display: &DisplayScales,
    ) -> Result<()> {
        let mut overflow = false;
        let states = self.states.as_mut_slice();
        each_valid(argument.validity.as_ref(), argument.len(), |row| {
            let group = match groups {
                Groups::One => 0,
                Groups::Numbers(numbers) => numbers[row] as usize,
            };
            let state = &mut states[group];
            let value = value(row).checked_mul(factor);
            let square = value.and_then(|value| value.checked_mul(value));
            let sums = value.zip(square).and_then(|(value, square)| {
                Some((state.sum.checked_add(value)?, state.squares.checked_add(square)?))
            });
            match sums {
                Some((sum, squares)) => (state.sum, state.squares) = (sum, squares),
                None => overflow = true,
            }
            state.count += 1;
            state.display = state.display.max(display.get(row));
        });
        if overflow { Err(WIDE) } else { Ok(()) }
    }

    fn result(&self, kind: Kind, state: &State) -> Result<Option<Decimal>> {
        exact(kind, state.count, state.sum, state.squares, self.scale, state.display)
    }
}

/// The result for `count` values of this scale, of which these are the sums of values and of squares; `shown`
/// is their greatest display scale.
pub fn exact(
    kind: Kind,
    count: i64,
    sum: i128,
    squares: i128,
    value_scale: u16,
    shown: u16,
) -> Result<Option<Decimal>> {
    if count <= i64::from(kind.sample) {
        return Ok(None);
    }
    let count = i128::from(count);
    let squares = squares.checked_mul(count).ok_or(WIDE)?;
    let square = sum.checked_mul(sum).ok_or(WIDE)?;
    let dividend = squares.checked_sub(square).ok_or(WIDE)?;
    if dividend <= 0 {
        return Ok(Some(Decimal { unscaled: 0, scale: 0, display: 0 }));
    }
    let divisor = count.checked_mul(count - i128::from(kind.sample)).ok_or(WIDE)?;
    let scale = value_scale * 2;
    let scale = division_scale(
        Decimal { unscaled: dividend, scale, display: shown * 2 },
        Decimal { unscaled: divisor, scale: 0, display: 0 },
    );
    let variance = divide(dividend, divisor, i32::from(scale) - i32::from(value_scale) * 2)?;
    let unscaled = if kind.deviation { square_root(variance, scale)? } else { variance };
    Ok(Some(Decimal { unscaled, scale, display: scale }))
}

impl Accumulator for ExactVariance {
    fn also(&mut self, function: AggregateFunction) -> bool {
        Kind::of(function).is_some()
    }

    fn grow(&mut self, groups: usize) {
        self.states.resize(groups, State::default());
    }

    fn update(&mut self, arguments: &[Arc<Vector>], _rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = flat(arguments.first().ok_or(MISTYPED)?);
        let whole = DisplayScales::Constant(0);
        match &argument.values {
            Values::Int16(values) => self.add(&argument, groups, |row| values[row].into(), 1, &whole),
            Values::Int32(values) => self.add(&argument, groups, |row| values[row].into(), 1, &whole),
            Values::Int64(values) if argument.logical == LogicalType::UInt64 => {
                self.add(&argument, groups, |row| unsigned(values[row]).into(), 1, &whole)
            }
            Values::Int64(values) => self.add(&argument, groups, |row| values[row].into(), 1, &whole),
            Values::Numeric(numeric) => {
                if !numeric.side.is_empty() {
                    return Err(WIDE);
                }
                self.raise(numeric.scale)?;
                let factor = power_of_ten(u32::from(self.scale - numeric.scale))?;
                let display = &numeric.display;
                match &numeric.ints {
                    NumericInts::Int32(v) => {
                        self.add(&argument, groups, |row| v[row].into(), factor, display)
                    }
                    NumericInts::Int64(v) => {
                        self.add(&argument, groups, |row| v[row].into(), factor, display)
                    }
                    NumericInts::Int128(v) => self.add(&argument, groups, |row| v[row], factor, display),
                }
            }
            _ => Err(MISTYPED),
        }
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        self.raise(other.scale)?;
        other.raise(self.scale)?;
        for (&from, &group) in from.iter().zip(to) {
            let from = other.states[from as usize];
            let state = &mut self.states[group as usize];
            state.sum = state.sum.checked_add(from.sum).ok_or(WIDE)?;
            state.squares = state.squares.checked_add(from.squares).ok_or(WIDE)?;
            state.count += from.count;
            state.display = state.display.max(from.display);
        }
        Ok(())
    }

    fn finish(&mut self, function: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let kind = Kind::of(function).ok_or(MISTYPED)?;
        let results = self.states[start..start + len].iter().map(|state| self.result(kind, state));
        decimals(&results.collect::<Result<Vec<_>>>()?)
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}

/// The values of floats so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct FloatState {
    count: f64,
    sum: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
}

/// Variances of floats.
#[derive(Default)]
pub struct FloatVariance {
    states: Vec<FloatState>,
}

/// What `FloatState::add` found.
pub const OVERFLOW: Error = Error::Decline("squares of floats overflow");

impl FloatState {
    /// False where finite values overflow.
    #[inline]
    pub fn add(&mut self, value: f64) -> bool {
        let before = *self;
        self.count += 1.0;
        self.sum += value;
        if before.count > 0.0 {
            let distance = value * self.count - self.sum;
            self.squares += distance * distance / (self.count * before.count);
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if before.sum.is_finite() && value.is_finite() {
                    return false;
                }
                self.squares = f64::NAN;
            }
        } else if !value.is_finite() {
            self.squares = f64::NAN;
        }
        true
    }

    /// The result for the values so far.
    pub fn result(&self, kind: Kind) -> Option<f64> {
        let less = f64::from(u8::from(kind.sample));
        let variance = self.squares / (self.count - less);
        (self.count > less).then(|| if kind.deviation { variance.sqrt() } else { variance })
    }
}

impl FloatVariance {
    fn add(&mut self, argument: &Vector, groups: Groups<'_>, value: impl Fn(usize) -> f64) -> Result<()> {
        let mut fine = true;
        each_valid(argument.validity.as_ref(), argument.len(), |row| {
            let group = match groups {
                Groups::One => 0,
                Groups::Numbers(numbers) => numbers[row] as usize,
            };
            fine &= self.states[group].add(value(row));
        });
        if fine { Ok(()) } else { Err(OVERFLOW) }
    }
}

impl Accumulator for FloatVariance {
    fn also(&mut self, function: AggregateFunction) -> bool {
        Kind::of(function).is_some()
    }

    fn grow(&mut self, groups: usize) {
        self.states.resize(groups, FloatState::default());
    }

    fn update(&mut self, arguments: &[Arc<Vector>], _rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = flat(arguments.first().ok_or(MISTYPED)?);
        match &argument.values {
            Values::Float32(values) => self.add(&argument, groups, |row| values[row].into()),
            Values::Float64(values) => self.add(&argument, groups, |row| values[row]),
            _ => Err(MISTYPED),
        }
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        for (&from, &group) in from.iter().zip(to) {
            let from = other.states[from as usize];
            let state = &mut self.states[group as usize];
            if state.count == 0.0 {
                *state = from;
            } else if from.count > 0.0 {
                let count = state.count + from.count;
                let apart = state.sum / state.count - from.sum / from.count;
                let squares = state.squares + from.squares + state.count * from.count * apart * apart / count;
                let sum = state.sum + from.sum;
                let finite = |state: &FloatState| state.sum.is_finite() && !state.squares.is_infinite();
                if (sum.is_infinite() || squares.is_infinite()) && finite(state) && finite(&from) {
                    return Err(OVERFLOW);
                }
                *state = FloatState { count, sum, squares };
            }
        }
        Ok(())
    }

    fn finish(&mut self, function: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let kind = Kind::of(function).ok_or(MISTYPED)?;
        let states = &self.states[start..start + len];
        let results: Vec<_> = states.iter().map(|state| state.result(kind)).collect();
        let values = results.iter().map(|result| result.unwrap_or_default()).collect();
        let seen = results.iter().map(Option::is_some);
        Ok(with_nulls(LogicalType::Float64, Values::Float64(values), seen))
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<FloatState>()
    }
}
