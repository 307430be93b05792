//! What to compute: plain data, built by the host for one execution (parameters are constants by then).
//!
//! Expressions of a node refer to the columns of its input by position. A join's columns are those of its
//! left input, then those of its right input; a semi or anti join gives those of one side only
//! (`JoinKind::gives_left`, `gives_right`).

mod aggregate;
mod text_order;
mod window;

use vector::LogicalType;

pub use aggregate::{Aggregate, AggregateFunction, HostAggregate, Regression};
pub use text_order::{TextCompare, TextOrder};
pub use window::{
    FrameBound, FrameExclusion, FrameOffset, FrameUnits, WindowCall, WindowFrame, WindowFunction,
};

use crate::Expression;

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
    /// The groups of several sets of keys, from one pass over the input. The columns are one for each key,
    /// one for each aggregate, and the number of the set (Int32). A key is NULL where the row's set is
    /// without it. A set without keys gives one row, even of no input.
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
    /// Rows in the order of all keys. Of rows that are equal in the first `on` keys only the first one stays.
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
        /// The number of further inputs that the host left out, because they have no rows for the current
        /// values. EXPLAIN shows it.
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

    /// The same, to be changed.
    pub fn inputs_mut(&mut self) -> Vec<&mut Self> {
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
            Self::Append { inputs, .. } => inputs.iter_mut().collect(),
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
