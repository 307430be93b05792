//! Sums of floats that hardly depend on the order of their values.
//!
//! Beside each sum the rounding errors of its additions are added up and put in at the end (Neumaier,
//! "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", 1974). An addition's error is a
//! float itself (Knuth's TwoSum), so two partial sums join without a loss. The result is the exact sum,
//! rounded once, but for the rarest cases. So it is the same for any number of threads, and that of a host
//! that sums in this way row by row. It is also known whether all values are whole numbers.

use std::sync::Arc;

use vector::{Bitmap, LogicalType, Values, Vector};

use super::accumulate::{Accumulator, Groups, MISTYPED, each_valid, same};
use super::copies;
use crate::row_container::flat;
use crate::{AggregateFunction, Result};

/// Sums that are added up side by side.
const LANES: usize = 8;

/// A sum, the errors made on the way, and how many values there were.
#[derive(Debug, Clone, Copy)]
struct State {
    sum: f64,
    error: f64,
    /// Twice as many as there were values, and one more if some value is a fraction.
    count: i64,
}

const EMPTY: State = State { sum: 0.0, error: 0.0, count: 0 };
/// From here on all floats are whole numbers.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// Whether no integer of 64 bits has the value of a float. Below 2^52 adding what leaves no room for a
/// fraction changes such a float. From there on floats are whole, and too great from 2^63 on.
#[inline(always)]
pub fn is_fraction(value: f64) -> bool {
    let shift = WHOLE.copysign(value);
    let size = value.abs();
    ((size < WHOLE) & ((value + shift) - shift != value)) | (size >= 9_223_372_036_854_775_808.0)
}

/// The sum of two floats, and its rounding error.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

impl State {
    #[inline(always)]
    fn add(&mut self, value: f64) {
        let (sum, error) = two_sum(self.sum, value);
        self.sum = sum;
        self.error += error;
        self.count = (self.count + 2) | i64::from(is_fraction(value));
    }

    fn join(&mut self, other: Self) {
        let (sum, error) = two_sum(self.sum, other.sum);
        self.sum = sum;
        self.error += error + other.error;
        let fraction = (self.count | other.count) & 1;
        self.count = ((self.count & !1) + (other.count & !1)) | fraction;
    }

    /// None where there was no value, or infinities of both signs.
    fn result(&self) -> Option<f64> {
        // An infinite value leaves no error that counts.
        let sum = if self.error.is_finite() { self.sum + self.error } else { self.sum };
        (self.count > 1 && !sum.is_nan()).then_some(sum)
    }
}

/// Sums of float8 values.
#[derive(Default)]
pub struct PreciseSum {
    states: Vec<State>,
}

impl PreciseSum {
    fn add(&mut self, argument: &Vector, values: &[f64], groups: Groups<'_>) {
        match (groups, &argument.validity) {
            (Groups::One, None) => {
                if let Some(state) = self.states.first_mut() {
                    state.join(in_lanes(values));
                }
            }
            (Groups::Numbers(numbers), None) => {
                copies::each(&mut self.states, EMPTY, (numbers, values), State::add, State::join);
            }
            (Groups::One, validity) => {
                let Some(state) = self.states.first_mut() else { return };
                each_valid(validity.as_ref(), values.len(), |row| state.add(values[row]));
            }
            (Groups::Numbers(numbers), validity) => {
                let (states, numbers) = (self.states.as_mut_slice(), &numbers[..values.len()]);
                each_valid(validity.as_ref(), values.len(), |row| {
                    states[numbers[row] as usize].add(values[row]);
                });
            }
        }
    }
}

/// The sum of values, each lane's first: additions do not wait for one another.
fn in_lanes(values: &[f64]) -> State {
    let (mut sums, mut errors) = ([0.0; LANES], [0.0; LANES]);
    let mut fractions = [false; LANES];
    let mut chunks = values.chunks_exact(LANES);
    for chunk in &mut chunks {
        for ((sum, error), &value) in sums.iter_mut().zip(&mut errors).zip(chunk) {
            let (next, lost) = two_sum(*sum, value);
            *sum = next;
            *error += lost;
        }
        fractions.iter_mut().zip(chunk).for_each(|(some, &value)| *some |= is_fraction(value));
    }
    let mut all = EMPTY;
    chunks.remainder().iter().for_each(|&value| all.add(value));
    for (sum, error) in sums.into_iter().zip(errors) {
        all.join(State { sum, error, count: 0 });
    }
    let fraction = all.count & 1 == 1 || fractions.contains(&true);
    all.count = (values.len() as i64) << 1 | i64::from(fraction);
    all
}

impl Accumulator for PreciseSum {
    fn also(&mut self, function: AggregateFunction) -> bool {
        use AggregateFunction::{AnyFraction, Count, PreciseSum};
        matches!(function, Count | PreciseSum | AnyFraction)
    }

    fn grow(&mut self, groups: usize) {
        self.states.resize(groups, EMPTY);
    }

    fn update(&mut self, arguments: &[Arc<Vector>], _rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = flat(arguments.first().ok_or(MISTYPED)?);
        match &argument.values {
            Values::Float64(values) => self.add(&argument, values, groups),
            _ => return Err(MISTYPED),
        }
        Ok(())
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        for (&from, &group) in from.iter().zip(to) {
            self.states[group as usize].join(other.states[from as usize]);
        }
        Ok(())
    }

    fn finish(&mut self, function: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let states = &self.states[start..start + len];
        if function == AggregateFunction::Count {
            let counts = states.iter().map(|state| state.count >> 1).collect();
            return Ok(Vector::new(LogicalType::Int64, Values::Int64(counts)));
        }
        if function == AggregateFunction::AnyFraction {
            let mut bits = Bitmap::filled(0, false);
            states.iter().for_each(|state| bits.push(state.count & 1 == 1));
            return Ok(Vector::new(LogicalType::Bool, Values::Bool(bits)));
        }
        let results: Vec<Option<f64>> = states.iter().map(State::result).collect();
        let mut validity = None;
        if results.contains(&None) {
            let mut valid = Bitmap::filled(0, false);
            results.iter().for_each(|result| valid.push(result.is_some()));
            validity = Some(valid);
        }
        let values = results.into_iter().map(Option::unwrap_or_default).collect();
        Ok(Vector { logical: LogicalType::Float64, validity, values: Values::Float64(values) })
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}

#[cfg(test)]
mod tests {
    use super::{EMPTY, in_lanes, is_fraction};

    #[test]
    fn the_order_of_values_does_not_show() {
        let values: Vec<f64> = (0..10_000_i64).map(|i| ((i * 7919) % 10_007) as f64 * 0.01 + 1e9).collect();
        let mut forward = EMPTY;
        values.iter().for_each(|&value| forward.add(value));
        let mut backward = EMPTY;
        values.iter().rev().for_each(|&value| backward.add(value));
        let mut parts = in_lanes(&values[..3_333]);
        parts.join(in_lanes(&values[3_333..]));
        assert_eq!(forward.result(), backward.result());
        assert_eq!(forward.result(), parts.result());
        let exact: i64 = (0..10_000_i64).map(|i| (i * 7919) % 10_007 + 100_000_000_000).sum();
        assert_eq!(forward.result(), Some(exact as f64 / 100.0));
    }

    #[test]
    fn what_is_lost_comes_back() {
        let mut state = EMPTY;
        [1e100, 1.0, -1e100].into_iter().for_each(|value| state.add(value));
        assert_eq!(state.result(), Some(1.0));
        let mut infinite = EMPTY;
        [f64::INFINITY, 1.0].into_iter().for_each(|value| infinite.add(value));
        assert_eq!(infinite.result(), Some(f64::INFINITY));
        infinite.add(f64::NEG_INFINITY);
        assert_eq!(infinite.result(), None);
        assert_eq!(EMPTY.result(), None);
    }

    #[test]
    fn fractions_are_told_from_whole_numbers() {
        for (value, expected) in [
            (0.0, false),
            (-0.0, false),
            (1.0, false),
            (-7.0, false),
            (0.5, true),
            (-2.25, true),
            (1e-300, true),
            (2_251_799_813_685_248.5, true),
            (4_503_599_627_370_497.0, false),
            (9_223_372_036_854_774_784.0, false),
            (9_223_372_036_854_775_808.0, true),
            (1e300, true),
            (f64::INFINITY, true),
        ] {
            assert_eq!(is_fraction(value), expected, "{value}");
            let mut state = in_lanes(&[1.0; 20]);
            state.join(in_lanes(&[value; 9]));
            assert_eq!((state.count >> 1, state.count & 1 == 1), (29, expected), "{value}");
        }
    }
}
