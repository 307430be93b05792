//! What every accumulator is: the states of one aggregate function for all groups, as columns.
//!
//! The table numbers the groups of a batch once; each accumulator then goes through its argument and the
//! group numbers in one loop. One file a family: `count`, `sum`, `extreme`, `boolean`, ... Invariant: a state
//! of a group that saw no value gives what the server gives for no rows.

use std::any::Any;
use std::sync::Arc;

use vector::{Bitmap, LogicalType, Vector};

use super::{boolean, count, extreme, first, float_sum, precise_sum, regression, sum, variance};
use crate::{Aggregate, AggregateFunction, ColumnSummary, Error, Result};

/// Which group each row of a batch is in.
#[derive(Debug, Clone, Copy)]
pub enum Groups<'a> {
    /// All rows are in group 0.
    One,
    /// One number a row, each below what `grow` was told.
    Numbers(&'a [u32]),
}

/// The states of one aggregate for all groups.
pub trait Accumulator: Any + Send {
    /// Asks, before the first row, for the results of this aggregate of the same values, too. False if the
    /// states cannot give them.
    fn also(&mut self, _function: AggregateFunction) -> bool {
        false
    }

    /// Tells the number of groups there are now.
    fn grow(&mut self, groups: usize);

    /// Takes `rows` rows of its arguments.
    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()>;

    /// Takes the states of groups `from` out of another one of its kind: group `from[i]` there is `to[i]`
    /// here.
    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()>;

    /// Whether `merge` may be asked for some of the groups; otherwise `from` has all of them, in order.
    fn is_divisible(&self) -> bool {
        true
    }

    /// Takes rows of group 0 as a summary; `column` is that of the argument.
    fn summary(&mut self, _rows: u64, _column: Option<&ColumnSummary>) -> Result<()> {
        Err(NO_SUMMARY)
    }

    /// All rows were seen. What takes long calls `check` now and then.
    fn complete(&mut self, _check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Ok(())
    }

    /// Results of groups `start..start + len`: of the function it was made for, or of one that it also
    /// computes.
    fn finish(&mut self, function: AggregateFunction, start: usize, len: usize) -> Result<Vector>;

    /// Memory held, in bytes.
    fn bytes(&self) -> usize;
}

/// A summary without what was asked for.
pub const NO_SUMMARY: Error = Error::Decline("summary without what was asked for");
/// An argument of another type than planned.
pub const MISTYPED: Error = Error::Decline("aggregate of another type");

/// The accumulator of an aggregate whose arguments have these types.
pub fn make(aggregate: &Aggregate, types: &[LogicalType]) -> Result<Box<dyn Accumulator>> {
    use AggregateFunction as F;
    use LogicalType as T;
    let first = types.first().copied();
    Ok(match (aggregate.function, first) {
        (F::CountRows, _) => Box::new(count::Count::rows()),
        (F::Count, Some(_)) => Box::new(count::Count::values()),
        (F::Sum | F::Avg, Some(logical @ (T::Int16 | T::Int32 | T::Int64 | T::UInt64 | T::Numeric))) => {
            Box::new(sum::ExactSum::new(logical))
        }
        (F::Sum | F::Avg, Some(logical @ (T::Float32 | T::Float64))) => {
            Box::new(float_sum::FloatSum::new(aggregate.function, logical))
        }
        (F::PreciseSum | F::AnyFraction, Some(T::Float64)) => Box::new(precise_sum::PreciseSum::default()),
        (F::Min | F::Max, Some(logical)) => {
            extreme::make(matches!(aggregate.function, F::Max), logical, &aggregate.order)?
        }
        (F::First, Some(logical)) => Box::new(first::First::new(logical)),
        (F::BoolAnd, Some(T::Bool)) => Box::new(boolean::Boolean::new(true)),
        (F::BoolOr, Some(T::Bool)) => Box::new(boolean::Boolean::new(false)),
        (F::VarSamp | F::VarPop | F::StddevSamp | F::StddevPop, Some(logical)) => match logical {
            T::Int16 | T::Int32 | T::Int64 | T::UInt64 | T::Numeric => {
                Box::new(variance::ExactVariance::default())
            }
            T::Float32 | T::Float64 => Box::new(variance::FloatVariance::default()),
            _ => return Err(MISTYPED),
        },
        (F::Regression(_), Some(T::Float64)) if types.get(1) == Some(&T::Float64) => {
            Box::new(regression::Pairs::default())
        }
        _ => return Err(Error::Decline("aggregate function")),
    })
}

/// Its own kind back from a trait object.
pub fn same<T: 'static>(other: &mut dyn Accumulator) -> Result<&mut T> {
    (other as &mut dyn Any).downcast_mut::<T>().ok_or(Error::Decline("states of another aggregate"))
}

/// Calls `f` with each row that is not NULL.
#[inline]
pub fn each_valid(validity: Option<&Bitmap>, rows: usize, mut f: impl FnMut(usize)) {
    match validity {
        None => (0..rows).for_each(f),
        Some(validity) => {
            for (at, &word) in validity.words().iter().enumerate() {
                if word == u64::MAX {
                    (at * 64..at * 64 + 64).for_each(&mut f);
                    continue;
                }
                let mut rest = word;
                while rest != 0 {
                    f(at * 64 + rest.trailing_zeros() as usize);
                    rest &= rest - 1;
                }
            }
        }
    }
}
