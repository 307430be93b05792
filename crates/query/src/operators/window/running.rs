//! Aggregates that take their rows one after the other: sums, averages and variances of floats, and
//! string_agg.
//!
//! If a frame only grew since the row before, its state goes on from that row's state. Any other frame is
//! computed from its first row. The server does the same for aggregates that cannot take a row back. So sums
//! of floats are added up in the server's order.

use vector::{ByteViews, LogicalType, Values, Vector};

use super::input::{Input, Piece, Reader};
use super::places::Places;
use super::{Call, Column, Compute, MISTYPED};
use crate::operators::aggregate::float_sum;
use crate::operators::aggregate::results::with_nulls;
use crate::operators::aggregate::variance::{self, FloatState};
use crate::{AggregateFunction, Error, Result, interrupt};

/// The computer of an aggregate of this family. `memory`: bytes that the operator may hold.
pub fn make(function: AggregateFunction, call: &Call, memory: usize) -> Result<Box<dyn Compute>> {
    use AggregateFunction as F;
    use LogicalType as T;
    let argument = call.first;
    Ok(match (function, call.types.as_slice()) {
        (F::Sum, [T::Float32]) => running(argument, FloatSums(Kind::Single)),
        (F::Sum, [T::Float64]) => running(argument, FloatSums(Kind::Sum)),
        (F::Avg, [T::Float32 | T::Float64]) => running(argument, FloatSums(Kind::Average)),
        (_, [T::Float32 | T::Float64]) => {
            let kind = variance::Kind::of(function).ok_or(UNKNOWN)?;
            running(argument, FloatVariances(kind))
        }
        (F::StringAgg, [T::Text, T::Text]) => {
            running(argument, Texts { longest: memory.clamp(LITTLE, LONGEST) })
        }
        _ => return Err(UNKNOWN),
    })
}

const UNKNOWN: Error = Error::Decline("aggregate function over a window");

fn running<F: Fold + 'static>(argument: usize, fold: F) -> Box<dyn Compute> {
    let reader = Reader::default();
    Box::new(Running { fold, argument, state: F::State::default(), start: 0, end: 0, reader })
}

/// An aggregate that takes rows in order.
trait Fold: Send {
    /// The state after the rows so far.
    type State: Default + Send;
    /// Results of a range.
    type Results: Default;

    /// Looks at values before any of them is taken.
    fn check(&self, _argument: &Vector) -> Result<()> {
        Ok(())
    }

    /// Takes rows of a piece that follow those before; NULLs are left out.
    fn add(
        &self,
        state: &mut Self::State,
        piece: &Piece,
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
    reader: Reader,
}

impl<F: Fold> Running<F> {
    fn add(&mut self, input: &Input, start: u32, end: u32) -> Result<()> {
        let (mut row, end) = (start as usize, end as usize);
        while row < end {
            let piece = self.reader.piece(input, row)?;
            let (first, until) = (piece.rows.start, piece.rows.end.min(end));
            self.fold.add(&mut self.state, piece, self.argument, row - first..until - first)?;
            row = until;
        }
        Ok(())
    }
}

impl<F: Fold> Compute for Running<F> {
    fn prepare(&mut self, input: &Input) -> Result<()> {
        input.each_piece(|piece| self.fold.check(piece.argument(self.argument)?))
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
                self.add(input, self.end, parts[0].1)?;
            } else {
                self.state = F::State::default();
                for (start, end) in parts {
                    self.add(input, start, end)?;
                }
            }
            (self.start, self.end) = parts[0];
            self.fold.result(&self.state, &mut results)?;
        }
        Ok(Column::Vector(self.fold.column(results)))
    }
}

/// Calls `take` with each value of a column of floats in some rows that is not NULL.
#[inline]
fn each_float(values: &Vector, rows: std::ops::Range<usize>, mut take: impl FnMut(f64)) -> Result<()> {
    match &values.values {
        Values::Float32(floats) => each(values, rows, |row| take(floats[row].into())),
        Values::Float64(floats) => each(values, rows, |row| take(floats[row])),
        _ => Err(MISTYPED),
    }
}

/// Calls `take` with the rows that are not NULL.
#[inline]
fn each(values: &Vector, rows: std::ops::Range<usize>, mut take: impl FnMut(usize)) -> Result<()> {
    let valid = values.validity.as_ref();
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
struct FloatSums(Kind);

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

    fn check(&self, argument: &Vector) -> Result<()> {
        // A chunk has fewer rows than could overflow within these limits.
        let limit = float_sum::limit(self.0 == Kind::Single, self.0 == Kind::Average);
        match &argument.values {
            Values::Float32(values) => float_sum::are_within(values, limit),
            Values::Float64(values) => float_sum::are_within(values, limit),
            _ => Err(MISTYPED),
        }
        .map(|_| ())
    }

    fn add(
        &self,
        state: &mut SumState,
        piece: &Piece,
        first: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<()> {
        let values = piece.argument(first)?;
        match self.0 {
            Kind::Single => each_float(values, rows, |value| {
                state.sum = float_sum::add_single(state.sum, value);
                state.count += 1;
            }),
            _ => each_float(values, rows, |value| {
                state.sum += value;
                state.count += 1;
            }),
        }
    }

    fn result(&self, state: &SumState, results: &mut Self::Results) -> Result<()> {
        results.0.push(match self.0 {
            Kind::Average => float_sum::average(state.sum, state.count),
            _ => state.sum,
        });
        results.1.push(state.count > 0);
        Ok(())
    }

    fn column(&self, (values, seen): Self::Results) -> Vector {
        match self.0 {
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
struct FloatVariances(variance::Kind);

impl Fold for FloatVariances {
    type State = FloatState;
    type Results = (Vec<f64>, Vec<bool>);

    fn add(
        &self,
        state: &mut FloatState,
        piece: &Piece,
        first: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<()> {
        let mut fits = true;
        each_float(piece.argument(first)?, rows, |value| fits &= state.add(value))?;
        if fits { Ok(()) } else { Err(variance::OVERFLOW) }
    }

    fn result(&self, state: &FloatState, results: &mut Self::Results) -> Result<()> {
        let result = state.result(self.0);
        results.0.push(result.unwrap_or_default());
        results.1.push(result.is_some());
        Ok(())
    }

    fn column(&self, (values, seen): Self::Results) -> Vector {
        with_nulls(LogicalType::Float64, Values::Float64(values), seen.into_iter())
    }
}

/// string_agg: the second argument stands before each text but the first.
struct Texts {
    /// Bytes that the results of one range may take, together.
    longest: usize,
}

/// The fewest and the most bytes that the results of one range may take.
const LITTLE: usize = 1 << 20;
const LONGEST: usize = 1 << 29;

impl Fold for Texts {
    type State = Option<Vec<u8>>;
    type Results = (ByteViews, Vec<bool>, usize);

    fn add(
        &self,
        state: &mut Self::State,
        piece: &Piece,
        first: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<()> {
        let (values, between) = (piece.argument(first)?, piece.argument(first + 1)?);
        let (Values::Bytes(texts), Values::Bytes(separators)) = (&values.values, &between.values) else {
            return Err(MISTYPED);
        };
        each(values, rows, |row| match state {
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
        if *bytes > self.longest || !texts.push(text) {
            return Err(Error::Decline(
                "results of string_agg over windows are larger than the memory they may use",
            ));
        }
        seen.push(state.is_some());
        Ok(())
    }

    fn column(&self, (texts, seen, _): Self::Results) -> Vector {
        with_nulls(LogicalType::Text, Values::Bytes(texts), seen.into_iter())
    }
}
