//! Aggregates that a plan computes.

use std::fmt;
use std::sync::Arc;

use vector::{LogicalType, Vector};

use super::{SortKey, TextOrder};
use crate::{Expression, Result};

/// What is computed of pairs of floats, the dependent variable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regression {
    /// Pairs without NULL: Int64. All others are Float64.
    Count,
    /// Average of the independent variable.
    AverageX,
    /// Average of the dependent one.
    AverageY,
    /// Sum of squares of the independent variable's distances from its average.
    SquaresX,
    /// The same of the dependent one.
    SquaresY,
    /// Sum of products of both distances.
    Products,
    /// Population covariance.
    CovarPop,
    /// Sample covariance.
    CovarSamp,
    /// Correlation coefficient.
    Corr,
    /// Its square.
    R2,
    /// Slope of the line of least squares.
    Slope,
    /// Where it meets the axis.
    Intercept,
}

/// An aggregate function of the host's, for what this crate does not know. Called on the host's main thread,
/// for one group after the other.
pub trait HostAggregate: Send + Sync {
    /// Forgets what it has.
    fn begin(&self) -> Result<()>;
    /// Takes rows in order, those of a group side by side; arguments are flat. The results of the groups that
    /// ended: all but the one of the last row.
    fn push(&self, groups: &[i32], arguments: &[Arc<Vector>]) -> Result<Vector>;
    /// The result of the last group, or of no rows where there was none.
    fn end(&self) -> Result<Vector>;
    /// True where rows with a NULL argument count for nothing.
    fn is_strict(&self) -> bool;
    /// For EXPLAIN.
    fn name(&self) -> &str;
}

/// Aggregate functions, by what they compute from arguments of the types given in the comments. All skip NULL
/// arguments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AggregateFunction {
    /// Rows; no argument.
    CountRows,
    /// Rows whose argument is not NULL.
    Count,
    /// Int16, Int32 -> Int64 (overflow is an error); Int64 -> Numeric; Numeric -> Numeric (greatest display
    /// scale); floats -> the same float.
    Sum,
    /// Float64 -> Float64, with the rounding errors of additions put in at the end: hardly any order of
    /// values changes the result. NULL where that is no number.
    PreciseSum,
    /// Of Float64: whether some value is that of no integer of 64 bits. Bool.
    AnyFraction,
    /// Integers and Numeric -> Numeric with the server's display scale; floats -> Float64.
    Avg,
    /// Least value; text by its collation (`Aggregate::order`).
    Min,
    /// Greatest value.
    Max,
    /// True when all are.
    BoolAnd,
    /// True when one is.
    BoolOr,
    /// Sample variance; Float64 -> Float64, exact types -> Numeric.
    VarSamp,
    /// Population variance.
    VarPop,
    /// Sample standard deviation.
    StddevSamp,
    /// Population standard deviation.
    StddevPop,
    /// The first value at or above this fraction of the ordered values (`Aggregate::order_by` has one key).
    PercentileDisc(f64),
    /// Interpolated; Float64.
    PercentileCont(f64),
    /// The most frequent value, the first one in order among equals.
    Mode,
    /// Concatenation of the first argument's texts, with the second between them.
    StringAgg,
    /// The value of the first row, which may be NULL.
    First,
    /// Of two Float64.
    Regression(Regression),
    /// `Aggregate::host`.
    Host,
}

/// One aggregate of an `Aggregate` node.
#[derive(Clone)]
pub struct Aggregate {
    /// What it computes.
    pub function: AggregateFunction,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// Equal arguments count once. Where values are taken in an order, all arguments are among its keys.
    pub distinct: bool,
    /// Only rows for which this is TRUE count.
    pub filter: Option<Expression>,
    /// In which order values are taken (ordered-set and order-sensitive functions).
    pub order_by: Vec<SortKey>,
    /// How text compares for Min and Max.
    pub order: TextOrder,
    /// Type of the result.
    pub result: LogicalType,
    /// The host's function.
    pub host: Option<Arc<dyn HostAggregate>>,
}

impl Aggregate {
    /// True where it takes its values in an order, that of the input if it has none of its own.
    pub fn is_ordered(&self) -> bool {
        !self.order_by.is_empty()
            || matches!(self.function, AggregateFunction::StringAgg | AggregateFunction::Host)
    }
}

impl fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{}{:?}", host.name(), self.arguments),
            None => write!(f, "{:?}{:?}", self.function, self.arguments),
        }
    }
}

impl Aggregate {
    /// True where no row of an input of these types can be declined or raise an error when it is aggregated,
    /// nor the result when it is given out.
    pub fn is_certain(&self, input: &[LogicalType]) -> bool {
        use AggregateFunction as F;
        use LogicalType as T;
        let of = |types: &[T]| self.arguments.iter().any(|part| types.contains(&part.logical(input)));
        let function = match self.function {
            F::CountRows | F::Count | F::BoolAnd | F::BoolOr => true,
            F::Min | F::Max | F::First => !of(&[T::Numeric]),
            F::Sum | F::Avg => !of(&[T::Numeric, T::Float32, T::Float64]),
            _ => false,
        };
        let mut parts = self.arguments.iter().chain(&self.filter);
        function && parts.all(|part| !part.can_raise(input) && !part.can_decline(input))
    }
}
