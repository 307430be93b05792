//! What to compute: plain data, built by the host for one execution (parameters are constants by then).
//!
//! Expressions of a node refer to the columns of its input by position. A join's columns are those of its
//! left input, then those of its right input; a semi or anti join gives those of one side only
//! (`JoinKind::gives_left`, `gives_right`).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use vector::{LogicalType, Vector};

use crate::{Expression, Result};

/// Compares two texts. Callable on any thread.
pub type TextCompare = dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync;

/// How values of a sort key compare. Other types than text have one order, `vector::LogicalType`'s.
#[derive(Clone)]
pub enum TextOrder {
    /// Bytewise: the C collation.
    Bytes,
    /// As the host says.
    Host(Arc<TextCompare>),
}

impl TextOrder {
    /// The order of two texts.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Bytes => a.cmp(b),
            Self::Host(compare) => compare(a, b),
        }
    }

    /// Whether it orders values of this type: the host says how any bytes compare.
    pub fn is_of(&self, logical: LogicalType) -> bool {
        logical.is_ordered() || matches!(self, Self::Host(_)) && logical == LogicalType::Bytes
    }
}

impl fmt::Debug for TextOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "Bytes",
            Self::Host(_) => "Host",
        })
    }
}

/// Two orders of the host's are the same only where they are one.
impl PartialEq for TextOrder {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes, Self::Bytes) => true,
            (Self::Host(a), Self::Host(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// One ORDER BY item.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// What to order by.
    pub expression: Expression,
    /// Greatest first.
    pub descending: bool,
    /// NULLs before everything else.
    pub nulls_first: bool,
    /// How text compares.
    pub order: TextOrder,
}

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

/// Which rows a join gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs that match.
    Inner,
    /// And left rows without a match.
    Left,
    /// And right rows without a match.
    Right,
    /// And both.
    Full,
    /// Left rows that have a match.
    Semi,
    /// Left rows that have none.
    Anti,
    /// Left rows of `NOT IN`: as Anti, but NULL on either side makes it unknown.
    NullAwareAnti,
    /// Right rows that have a match: Semi with its smaller side kept.
    RightSemi,
    /// Right rows that have none.
    RightAnti,
}

impl JoinKind {
    /// Whether the left side's columns come out.
    pub const fn gives_left(self) -> bool {
        !matches!(self, Self::RightSemi | Self::RightAnti)
    }

    /// Whether the right side's columns come out.
    pub const fn gives_right(self) -> bool {
        !matches!(self, Self::Semi | Self::Anti | Self::NullAwareAnti)
    }

    /// Whether left rows without a match are of no use.
    pub const fn drops_left(self) -> bool {
        matches!(self, Self::Inner | Self::Semi | Self::Right | Self::RightSemi | Self::RightAnti)
    }

    /// Whether kept rows have to know if they matched: some of them come out when all left rows were seen.
    pub const fn marks_right(self) -> bool {
        matches!(self, Self::Right | Self::Full | Self::RightSemi | Self::RightAnti)
    }
}

/// Window functions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WindowFunction {
    /// Number of the row in its partition; Int64, as the next two.
    RowNumber,
    /// Rank with gaps.
    Rank,
    /// Rank without gaps.
    DenseRank,
    /// (rank - 1) / (rows - 1); Float64.
    PercentRank,
    /// Rows up to the last peer / rows; Float64.
    CumeDist,
    /// Number of the bucket, of as many as the Int32 argument says; Int32.
    Ntile,
    /// The first argument some rows before: as many as the second one (Int32) says, else one. The third one,
    /// or NULL, where there is no such row.
    Lag,
    /// The same for rows after.
    Lead,
    /// The argument in the first row of the frame.
    FirstValue,
    /// In the last row of the frame.
    LastValue,
    /// In the row of the frame that the second argument (Int32) says, counted from 1.
    NthValue,
    /// An aggregate over the frame; its arguments as for `Aggregate`, NULL where a FILTER leaves a row out
    /// (`Count` stands for `CountRows` then).
    Aggregate(AggregateFunction),
}

/// One window function call.
#[derive(Debug, Clone)]
pub struct WindowCall {
    /// What it computes.
    pub function: WindowFunction,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// How text compares for Min and Max.
    pub order: TextOrder,
    /// Type of the result.
    pub result: LogicalType,
}

/// What the offsets of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameUnits {
    /// Rows.
    Rows,
    /// Distance in the value of the one order key; without offsets peers.
    Range,
    /// Groups of peers.
    Groups,
}

/// How far a frame reaches from the current row; not negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FrameOffset {
    /// Rows or groups; for RANGE, a distance of integers.
    Count(u64),
    /// RANGE: a distance of floats.
    Float(f64),
    /// RANGE: a distance of decimals.
    Decimal {
        /// Integer.
        unscaled: i128,
        /// Its power of ten.
        scale: u16,
    },
    /// RANGE: a distance of dates (at midnight) or timestamps without time zone.
    Interval {
        /// Months of the calendar, added first,
        months: i32,
        /// then days,
        days: i32,
        /// then microseconds.
        micros: i64,
    },
    /// No value is known; NULL, or one that is an error: such a frame is declined.
    Unknown,
}

/// Where a frame begins or ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FrameBound {
    /// With the partition.
    Unbounded,
    /// So far before the current row.
    Preceding(FrameOffset),
    /// At the current row (ROWS), or with its peers.
    CurrentRow,
    /// So far after the current row.
    Following(FrameOffset),
}

/// Rows that a frame does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameExclusion {
    /// Has them all.
    Nothing,
    /// The current row.
    CurrentRow,
    /// The current row and its peers.
    Group,
    /// Its peers.
    Ties,
}

/// The frame of the window functions of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowFrame {
    /// What offsets count.
    pub units: FrameUnits,
    /// First row.
    pub start: FrameBound,
    /// Last row.
    pub end: FrameBound,
    /// Rows left out.
    pub exclusion: FrameExclusion,
    /// The order key goes down (RANGE with an offset).
    pub descending: bool,
    /// NULLs come first (RANGE with an offset).
    pub nulls_first: bool,
}

impl WindowFrame {
    /// True where no row's frame can be declined once the execution is made.
    pub fn is_certain(&self) -> bool {
        let certain = |bound| {
            !matches!(
                bound,
                FrameBound::Preceding(FrameOffset::Decimal { .. } | FrameOffset::Interval { .. })
                    | FrameBound::Following(FrameOffset::Decimal { .. } | FrameOffset::Interval { .. })
            )
        };
        certain(self.start) && certain(self.end)
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

impl WindowCall {
    /// True where no row can be declined or raise an error, over an input of these types; its arguments
    /// aside.
    pub fn is_certain(&self, input: &[LogicalType]) -> bool {
        use AggregateFunction as A;
        use WindowFunction as W;
        let numeric = |argument: &Expression| argument.logical(input) == LogicalType::Numeric;
        let exact = |argument: &Expression| {
            matches!(argument.logical(input), LogicalType::Int16 | LogicalType::Int32 | LogicalType::Int64)
        };
        match self.function {
            W::RowNumber | W::Rank | W::DenseRank | W::PercentRank | W::CumeDist => true,
            W::Ntile | W::NthValue => false,
            W::Lag | W::Lead | W::FirstValue | W::LastValue => !self.arguments.iter().any(numeric),
            W::Aggregate(A::CountRows | A::Count | A::Min | A::Max | A::BoolAnd | A::BoolOr) => {
                !self.arguments.iter().any(numeric)
            }
            W::Aggregate(A::Sum | A::Avg) => self.arguments.iter().all(exact),
            W::Aggregate(_) => false,
        }
    }
}

/// A tree of operators.
#[derive(Debug, Clone)]
pub enum Plan {
    /// The rows of a source, by its number among those given to `Execution::new`.
    Scan {
        /// Number of the source.
        source: usize,
        /// Its columns' types.
        types: Vec<LogicalType>,
    },
    /// Rows for which the condition is TRUE.
    Filter {
        /// Input.
        input: Box<Plan>,
        /// A boolean expression.
        condition: Expression,
    },
    /// One column for each expression.
    Project {
        /// Input.
        input: Box<Plan>,
        /// What the columns hold.
        expressions: Vec<Expression>,
    },
    /// Groups: a column for each key, then one for each aggregate. Without keys one row, even of no input.
    Aggregate {
        /// Input.
        input: Box<Plan>,
        /// Equal keys make a group; NULLs are equal.
        keys: Vec<Expression>,
        /// What to compute for each group.
        aggregates: Vec<Aggregate>,
        /// Groups expected, a hint.
        groups: f64,
    },
    /// The groups of several sets of keys, from one pass over the input: a column for each key (NULL where
    /// the row's set is without it), one for each aggregate, and the number of the set (Int32). A set without
    /// keys gives one row, even of no input.
    GroupingSets {
        /// Input.
        input: Box<Plan>,
        /// The keys of all sets.
        keys: Vec<Expression>,
        /// Each set's keys, by position.
        sets: Vec<Vec<usize>>,
        /// What to compute for each group.
        aggregates: Vec<Aggregate>,
    },
    /// Each row as many times as a count says, not at all where that is NULL or less than one.
    Repeat {
        /// Input.
        input: Box<Plan>,
        /// How many times: Int64.
        count: Expression,
    },
    /// Rows of two inputs brought together. The right one is kept in memory (the build side).
    Join {
        /// Which rows.
        kind: JoinKind,
        /// Probing input.
        left: Box<Plan>,
        /// Input that is kept.
        right: Box<Plan>,
        /// Pairs of expressions over left and right that have to be equal (NULL equals nothing). May be
        /// empty: every pair.
        keys: Vec<(Expression, Expression)>,
        /// What else has to be TRUE, over the columns of both.
        condition: Option<Expression>,
    },
    /// Rows in order, all or the first `limit`.
    Sort {
        /// Input.
        input: Box<Plan>,
        /// By what.
        keys: Vec<SortKey>,
        /// Rows wanted (the host adds OFFSET to it).
        limit: Option<u64>,
    },
    /// Of rows that are equal in the first `on` keys the first one in the order of all keys, in that order.
    DistinctOn {
        /// Input.
        input: Box<Plan>,
        /// By what rows are ordered.
        keys: Vec<SortKey>,
        /// How many of the keys tell rows apart.
        on: usize,
    },
    /// Some of the rows, in the order they come.
    Limit {
        /// Input.
        input: Box<Plan>,
        /// Rows left out first.
        offset: u64,
        /// Rows wanted.
        limit: Option<u64>,
    },
    /// The rows of all inputs, which have the same types.
    Append {
        /// Inputs. Without one it gives no rows, and no columns.
        inputs: Vec<Plan>,
        /// How many more there would be, had the host not found out that values of now leave nothing of them;
        /// for who shows the plan.
        removed: usize,
    },
    /// Input columns, then one for each window function, in the input's order. The input is sorted by
    /// partition and order keys.
    Window {
        /// Input.
        input: Box<Plan>,
        /// Equal in a partition, one after the other.
        partition: Vec<Expression>,
        /// Equal among peers.
        order: Vec<Expression>,
        /// The frame of all functions.
        frame: WindowFrame,
        /// What to compute.
        functions: Vec<WindowCall>,
    },
}

impl Plan {
    /// No rows, and no columns.
    pub const fn nothing() -> Self {
        Self::Append { inputs: Vec::new(), removed: 0 }
    }

    /// The plans whose rows it takes.
    pub fn inputs(&self) -> Vec<&Self> {
        match self {
            Self::Scan { .. } => Vec::new(),
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::Aggregate { input, .. }
            | Self::GroupingSets { input, .. }
            | Self::Repeat { input, .. }
            | Self::Sort { input, .. }
            | Self::DistinctOn { input, .. }
            | Self::Limit { input, .. }
            | Self::Window { input, .. } => vec![input],
            Self::Join { left, right, .. } => vec![left, right],
            Self::Append { inputs, .. } => inputs.iter().collect(),
        }
    }

    /// The types of its columns.
    pub fn types(&self) -> Vec<LogicalType> {
        match self {
            Self::Scan { types, .. } => types.clone(),
            Self::Filter { input, .. }
            | Self::Repeat { input, .. }
            | Self::Sort { input, .. }
            | Self::DistinctOn { input, .. }
            | Self::Limit { input, .. } => input.types(),
            Self::Project { input, expressions } => {
                let types = input.types();
                expressions.iter().map(|expression| expression.logical(&types)).collect()
            }
            Self::Aggregate { input, keys, aggregates, .. }
            | Self::GroupingSets { input, keys, aggregates, .. } => {
                let types = input.types();
                let keys = keys.iter().map(|key| key.logical(&types));
                let number = matches!(self, Self::GroupingSets { .. }).then_some(LogicalType::Int32);
                keys.chain(aggregates.iter().map(|aggregate| aggregate.result)).chain(number).collect()
            }
            Self::Join { kind, left, right, .. } => {
                let mut types = if kind.gives_left() { left.types() } else { Vec::new() };
                if kind.gives_right() {
                    types.extend(right.types());
                }
                types
            }
            Self::Append { inputs, .. } => inputs.first().map(Self::types).unwrap_or_default(),
            Self::Window { input, functions, .. } => {
                let mut types = input.types();
                types.extend(functions.iter().map(|function| function.result));
                types
            }
        }
    }
}
