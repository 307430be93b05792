//! corr, covariances and linear regression over pairs of floats.
//!
//! The recurrence of Youngs and Cramer, pair by pair and between threads, as the server's `float8_regr_accum`
//! and `float8_regr_combine`. Invariant: sums of squares and products are NaN, not infinite, where a value
//! was infinite.

use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use super::accumulate::{Accumulator, Groups, MISTYPED, each_valid, same};
use super::results::with_nulls;
use crate::kernels::words::both;
use crate::row_container::flat;
use crate::{AggregateFunction, Error, Regression, Result};

const OVERFLOW: Error = Error::Decline("squares of floats overflow");

#[derive(Debug, Clone, Copy, Default)]
struct State {
    count: f64,
    x: f64,
    y: f64,
    squares_x: f64,
    squares_y: f64,
    products: f64,
}

impl State {
    /// False where finite values overflow.
    #[inline]
    fn add(&mut self, y: f64, x: f64) -> bool {
        let before = *self;
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if before.count > 0.0 {
            let (from_x, from_y) = (x * self.count - self.x, y * self.count - self.y);
            let scale = 1.0 / (self.count * before.count);
            self.squares_x += from_x * from_x * scale;
            self.squares_y += from_y * from_y * scale;
            self.products += from_x * from_y * scale;
            let finite_x = !before.x.is_infinite() && !x.is_infinite();
            let finite_y = !before.y.is_infinite() && !y.is_infinite();
            let overflow = (self.x.is_infinite() || self.squares_x.is_infinite()) && finite_x
                || (self.y.is_infinite() || self.squares_y.is_infinite()) && finite_y
                || self.products.is_infinite() && finite_x && finite_y;
            if overflow {
                return false;
            }
            for sum in [&mut self.squares_x, &mut self.squares_y, &mut self.products] {
                if sum.is_infinite() {
                    *sum = f64::NAN;
                }
            }
        } else {
            if !x.is_finite() {
                (self.squares_x, self.products) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.squares_y, self.products) = (f64::NAN, f64::NAN);
            }
        }
        true
    }

    /// Takes over the pairs of another state. False where finite values overflow.
    fn merge(&mut self, other: &Self) -> bool {
        if self.count == 0.0 {
            *self = *other;
            return true;
        }
        if other.count == 0.0 {
            return true;
        }
        let before = *self;
        let count = before.count + other.count;
        let apart_x = before.x / before.count - other.x / other.count;
        let apart_y = before.y / before.count - other.y / other.count;
        let weight = before.count * other.count;
        *self = Self {
            count,
            x: before.x + other.x,
            y: before.y + other.y,
            squares_x: before.squares_x + other.squares_x + weight * apart_x * apart_x / count,
            squares_y: before.squares_y + other.squares_y + weight * apart_y * apart_y / count,
            products: before.products + other.products + weight * apart_x * apart_y / count,
        };
        let overflows = |sum: f64, a: f64, b: f64| sum.is_infinite() && !a.is_infinite() && !b.is_infinite();
        !(overflows(self.x, before.x, other.x)
            || overflows(self.y, before.y, other.y)
            || overflows(self.squares_x, before.squares_x, other.squares_x)
            || overflows(self.squares_y, before.squares_y, other.squares_y)
            || overflows(self.products, before.products, other.products))
    }

    /// The value, or NULL.
    fn result(&self, which: Regression) -> Option<f64> {
        use Regression as R;
        let least = if which == R::CovarSamp { 2.0 } else { 1.0 };
        if self.count < least {
            return None;
        }
        let Self { count, x, y, squares_x, squares_y, products } = *self;
        Some(match which {
            R::Count => count,
            R::AverageX => x / count,
            R::AverageY => y / count,
            R::SquaresX => squares_x,
            R::SquaresY => squares_y,
            R::Products => products,
            R::CovarPop => products / count,
            R::CovarSamp => products / (count - 1.0),
            R::Corr if squares_x == 0.0 || squares_y == 0.0 => return None,
            R::Corr => products / (squares_x * squares_y).sqrt(),
            R::R2 | R::Slope | R::Intercept if squares_x == 0.0 => return None,
            R::R2 if squares_y == 0.0 => 1.0,
            R::R2 => products * products / (squares_x * squares_y),
            R::Slope => products / squares_x,
            R::Intercept => (y - x * products / squares_x) / count,
        })
    }
}

/// The pairs of all groups.
#[derive(Default)]
pub struct Pairs {
    states: Vec<State>,
}

impl Accumulator for Pairs {
    fn also(&mut self, function: AggregateFunction) -> bool {
        matches!(function, AggregateFunction::Regression(_))
    }

    fn grow(&mut self, groups: usize) {
        self.states.resize(groups, State::default());
    }

    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()> {
        let [y, x] = arguments else { return Err(MISTYPED) };
        let (y, x) = (flat(y), flat(x));
        let (Values::Float64(ys), Values::Float64(xs)) = (&y.values, &x.values) else { return Err(MISTYPED) };
        let validity = both(y.validity.as_ref(), x.validity.as_ref());
        let mut fine = true;
        each_valid(validity.as_ref(), rows, |row| {
            let group = match groups {
                Groups::One => 0,
                Groups::Numbers(numbers) => numbers[row] as usize,
            };
            fine &= self.states[group].add(ys[row], xs[row]);
        });
        if fine { Ok(()) } else { Err(OVERFLOW) }
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        let mut fine = true;
        for (&from, &group) in from.iter().zip(to) {
            fine &= self.states[group as usize].merge(&other.states[from as usize]);
        }
        if fine { Ok(()) } else { Err(OVERFLOW) }
    }

    fn finish(&mut self, function: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let AggregateFunction::Regression(which) = function else { return Err(MISTYPED) };
        let states = &self.states[start..start + len];
        if which == Regression::Count {
            let counts = states.iter().map(|state| state.count as i64).collect();
            return Ok(Vector::new(LogicalType::Int64, Values::Int64(counts)));
        }
        let results: Vec<_> = states.iter().map(|state| state.result(which)).collect();
        let values = results.iter().map(|result| result.unwrap_or_default()).collect();
        Ok(with_nulls(LogicalType::Float64, Values::Float64(values), results.iter().map(Option::is_some)))
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}
