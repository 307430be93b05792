//! Aggregates that take their rows one after the other: sums, averages and variances of floats, and string_agg.
//!
//! A frame that only grew goes on from the one before; any other is computed from its first row, as the server does for aggregates that cannot take a row back. So sums of floats are added up in
//! the server's order.

use vector::{ByteViews, LogicalType, Values, Vector};

use super::places::Places;
use super::{Call, Column, Compute, Input, MISTYPED};
use crate::operators::aggregate::float_sum;
use crate::operators::aggregate::results::with_nulls;
use crate::operators::aggregate::variance::{self, FloatState};
use crate::{AggregateFunction, Error, Result, interrupt};

/// The computer of an aggregate of this family.
pub fn make(function: AggregateFunction, call: &Call) -> Result<Box<dyn Compute>> {
    use AggregateFunction as F;
    use LogicalType as T;
    let argument = call.first;
    Ok(match (function, call.types.as_slice()) {
        (F::Sum, [T::Float32]) => running(argument, FloatSums { kind: Kind::Single, values: Vec::new() }),
        (F::Sum, [T::Float64]) => running(argument, FloatSums { kind: Kind::Sum, values: Vec::new() }),
        (F::Avg, [T::Float32 | T::Float64]) => {
            running(argument, FloatSums { kind: Kind::Average, values: Vec::new() })
        }
        (_, [T::Float32 | T::Float64]) => {
            let kind = variance::Kind::of(function).ok_or(UNKNOWN)?;
            running(argument, FloatVariances { kind, values: Vec::new() })
        }
        (F::StringAgg, [T::Text, T::Text]) => running(argument, Texts),
        _ => return Err(UNKNOWN),
    })
}

const UNKNOWN: Error = Error::Decline("aggregate function over a window");

fn running<F: Fold + 'static>(argument: usize, fold: F) -> Box<dyn Compute> {
    Box::new(Running { fold, argument, state: F::State::default(), start: 0, end: 0 })
}

/// An aggregate that takes rows in order.
trait Fold: Send {
    /// What it knows of the rows so far.
    type State: Default + Send;
    /// Results of a range.
    type Results: Default;

    /// Looks at a chunk's rows once.
    fn prepare(&mut self, _argument: &Vector) -> Result<()> {
        Ok(())
    }

    /// Takes rows that follow those before; NULLs are left out.
    fn add(
        &self,
        state: &mut Self::State,
        input: &Input,
        first: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<()>;

    /// Adds a frame's result.
    fn result(&self, state: &Self::State, results: &mut Self::Results) -> Result<()>;

    /// The results as a column.
    fn column(&self, results: Self::Results) -> Vector;
}

struct Running<F: Fold> {
    fold: F,
    /// The first argument.
    argument: usize,
    state: F::State,
    /// The rows in the state.
    start: u32,
    end: u32,
}

impl<F: Fold> Compute for Running<F> {
    fn prepare(&mut self, input: &Input) -> Result<()> {
        self.fold.prepare(input.argument(self.argument)?)
    }

    fn compute(&mut self, input: &Input, at: &Places) -> Result<Column> {
        let mut results = F::Results::default();
        let mut taken = 0;
        for place in 0..at.len() {
            let parts = at.parts(place);
            taken += (parts[0].1 - parts[0].0) as usize;
            if taken > interrupt::OFTEN {
                interrupt::check()?;
                taken = 0;
            }
            let grew = at.holes.is_none()
                && parts[0].0 == self.start
                && parts[0].1 >= self.end
                && self.start < self.end;
            if grew {
                self.fold.add(
                    &mut self.state,
                    input,
                    self.argument,
                    self.end as usize..parts[0].1 as usize,
                )?;
            } else {
                self.state = F::State::default();
                for (start, end) in parts {
                    self.fold.add(&mut self.state, input, self.argument, start as usize..end as usize)?;
                }
            }
            (self.start, self.end) = parts[0];
            self.fold.result(&self.state, &mut results)?;
        }
        Ok(Column::Vector(self.fold.column(results)))
    }
}

/// The values of a column of floats.
fn floats(argument: &Vector) -> Result<Vec<f64>> {
    match &argument.values {
        Values::Float32(values) => Ok(values.iter().map(|&value| value.into()).collect()),
        Values::Float64(values) => Ok(values.clone()),
        _ => Err(MISTYPED),
    }
}

/// Calls `take` with the values of rows that are not NULL.
#[inline]
fn each(
    input: &Input,
    argument: usize,
    rows: std::ops::Range<usize>,
    mut take: impl FnMut(usize),
) -> Result<()> {
    let valid = input.argument(argument)?.validity.as_ref();
    for start in rows.clone().step_by(interrupt::OFTEN) {
        if start > rows.start {
            interrupt::check()?;
        }
        let some = start..rows.end.min(start + interrupt::OFTEN);
        match valid {
            None => some.for_each(&mut take),
            Some(valid) => some.filter(|&row| valid.get(row)).for_each(&mut take),
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// float4's sum, in single precision.
    Single,
    /// float8's sum.
    Sum,
    /// The average, float8.
    Average,
}

/// Sums and averages of floats.
struct FloatSums {
    kind: Kind,
    values: Vec<f64>,
}

struct SumState {
    sum: f64,
    count: i64,
}

impl Default for SumState {
    fn default() -> Self {
        Self { sum: float_sum::ZERO, count: 0 }
    }
}

impl Fold for FloatSums {
    type State = SumState;
    type Results = (Vec<f64>, Vec<bool>);

    fn prepare(&mut self, argument: &Vector) -> Result<()> {
        self.values = floats(argument)?;
        // A chunk has fewer rows than could overflow within these limits.
        let limit = float_sum::limit(self.kind == Kind::Single, self.kind == Kind::Average);
        float_sum::are_calm(&self.values, limit).map(|_| ())
    }

    fn add(
        &self,
        state: &mut SumState,
        input: &Input,
        first: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<()> {
        let values = self.values.as_slice();
        match self.kind {
            Kind::Single => each(input, first, rows, |row| {
                state.sum = float_sum::add_single(state.sum, values[row]);
                state.count += 1;
            }),
            _ => each(input, first, rows, |row| {
                state.sum += values[row];
                state.count += 1;
            }),
        }
    }

    fn result(&self, state: &SumState, results: &mut Self::Results) -> Result<()> {
        results.0.push(match self.kind {
            Kind::Average => float_sum::average(state.sum, state.count),
            _ => state.sum,
        });
        results.1.push(state.count > 0);
        Ok(())
    }

    fn column(&self, (values, seen): Self::Results) -> Vector {
        match self.kind {
            Kind::Single => with_nulls(
                LogicalType::Float32,
                Values::Float32(values.into_iter().map(|value| value as f32).collect()),
                seen.into_iter(),
            ),
            _ => with_nulls(LogicalType::Float64, Values::Float64(values), seen.into_iter()),
        }
    }
}

/// Variances of floats.
struct FloatVariances {
    kind: variance::Kind,
    values: Vec<f64>,
}

impl Fold for FloatVariances {
    type State = FloatState;
    type Results = (Vec<f64>, Vec<bool>);

    fn prepare(&mut self, argument: &Vector) -> Result<()> {
        self.values = floats(argument)?;
        Ok(())
    }

    fn add(
        &self,
        state: &mut FloatState,
        input: &Input,
        first: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<()> {
        let mut fits = true;
        each(input, first, rows, |row| fits &= state.add(self.values[row]))?;
        if fits { Ok(()) } else { Err(variance::OVERFLOW) }
    }

    fn result(&self, state: &FloatState, results: &mut Self::Results) -> Result<()> {
        let result = state.result(self.kind);
        results.0.push(result.unwrap_or_default());
        results.1.push(result.is_some());
        Ok(())
    }

    fn column(&self, (values, seen): Self::Results) -> Vector {
        with_nulls(LogicalType::Float64, Values::Float64(values), seen.into_iter())
    }
}

/// string_agg: the second argument stands before each text but the first.
struct Texts;

/// Longest results of one range, together.
const LONGEST: usize = 1 << 29;

impl Fold for Texts {
    type State = Option<Vec<u8>>;
    type Results = (ByteViews, Vec<bool>, usize);

    fn add(
        &self,
        state: &mut Self::State,
        input: &Input,
        first: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<()> {
        let between = input.argument(first + 1)?;
        let (Values::Bytes(texts), Values::Bytes(separators)) =
            (&input.argument(first)?.values, &between.values)
        else {
            return Err(MISTYPED);
        };
        each(input, first, rows, |row| match state {
            None => *state = Some(texts.get(row).to_vec()),
            Some(text) => {
                if between.is_valid(row) {
                    text.extend_from_slice(separators.get(row));
                }
                text.extend_from_slice(texts.get(row));
            }
        })
    }

    fn result(&self, state: &Self::State, (texts, seen, bytes): &mut Self::Results) -> Result<()> {
        let text = state.as_deref().unwrap_or_default();
        *bytes += text.len();
        if *bytes > LONGEST || !texts.push(text) {
            return Err(Error::Decline("string_agg past 512 MB"));
        }
        seen.push(state.is_some());
        Ok(())
    }

    fn column(&self, (texts, seen, _): Self::Results) -> Vector {
        with_nulls(LogicalType::Text, Values::Bytes(texts), seen.into_iter())
    }
}
