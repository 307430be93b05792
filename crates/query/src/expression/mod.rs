//! What to compute of a row, and the evaluator that computes it for whole batches.
//!
//! Expressions are typed by construction: the host has resolved operators to functions and put casts where
//! types differ, so a `Call` has arguments of just the types its function names. `evaluate` runs them;
//! `function` lists the functions with their exact meaning.

mod branch;
mod condition;
mod encoded;
mod evaluate;
mod function;
mod functions;
mod in_list;
mod logic;
mod node;
mod select;
mod value;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub use condition::Condition;
pub use evaluate::Evaluator;
pub use function::{CaseRule, DateField, Function};
pub(crate) use functions::after_interval;
pub use functions::is_known_regexp;
pub(crate) use value::{end_to_end, nulls};
use vector::{LogicalType, Vector};

use crate::Result;

/// A function of the host over vectors, for what this crate does not know, without side effects.
pub trait HostFunction: Send + Sync {
    /// The function's values for `rows` rows. Arguments are flat, or plain constants if the function takes
    /// these. A strict function is not computed for a row with a NULL argument.
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector>;
    /// True where it calls into the host, which only the main thread may do.
    fn needs_host(&self) -> bool;
    /// True where an argument that is the same in all rows may come as a constant: a large one should not be
    /// copied for each.
    fn takes_constants(&self) -> bool {
        false
    }
    /// True where it may end with `Error::Decline`.
    fn can_decline(&self) -> bool {
        false
    }
    /// For EXPLAIN.
    fn name(&self) -> &str;
    /// Itself, for a caller that knows what it made.
    fn as_any(&self) -> &dyn Any;
}

/// A function is the same as itself only.
impl PartialEq for dyn HostFunction {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

/// A value computed from the columns of a row. Expressions that are equal have equal values.
#[derive(Clone, PartialEq)]
pub enum Expression {
    /// A column of the input.
    Column(usize),
    /// The same value in every row: a flat vector of one row (NULL where its validity says so).
    Constant(Arc<Vector>),
    /// A function of this crate.
    Call {
        /// Which.
        function: Function,
        /// Of what.
        arguments: Vec<Expression>,
        /// Type of the value.
        result: LogicalType,
    },
    /// A function of the host.
    Host {
        /// Which.
        function: Arc<dyn HostFunction>,
        /// Of what.
        arguments: Vec<Expression>,
        /// Type of the value.
        result: LogicalType,
    },
    /// TRUE when all are; three-valued; later ones see only rows where the earlier ones are not FALSE.
    And(Vec<Expression>),
    /// TRUE when one is; three-valued.
    Or(Vec<Expression>),
    /// FALSE for TRUE and the other way round.
    Not(Box<Expression>),
    /// Whether the value is NULL.
    IsNull(Box<Expression>),
    /// The value of the first branch whose condition is TRUE, or `otherwise`, or NULL. A branch sees only the
    /// rows that reach it.
    Case {
        /// Condition and value.
        branches: Vec<(Expression, Expression)>,
        /// Where no condition is TRUE.
        otherwise: Option<Box<Expression>>,
        /// Type of the value.
        result: LogicalType,
    },
    /// The first that is not NULL.
    Coalesce(Vec<Expression>),
    /// TRUE if the value equals one of the entries, which are a flat vector of the value's type. NULL if the
    /// value is NULL. NULL also if no entry matches and one is NULL.
    In {
        /// Value looked for.
        value: Box<Expression>,
        /// Entries.
        entries: Arc<Vector>,
    },
}

impl Expression {
    /// The type of its values over an input of these columns.
    pub fn logical(&self, input: &[LogicalType]) -> LogicalType {
        match self {
            Self::Column(at) => input.get(*at).copied().unwrap_or(LogicalType::Bytes),
            Self::Constant(value) => value.logical,
            Self::Call { result, .. } | Self::Host { result, .. } | Self::Case { result, .. } => *result,
            Self::And(_) | Self::Or(_) | Self::Not(_) | Self::IsNull(_) | Self::In { .. } => {
                LogicalType::Bool
            }
            Self::Coalesce(parts) => parts.first().map_or(LogicalType::Bytes, |part| part.logical(input)),
        }
    }

    /// True where it has to be evaluated on the host's main thread.
    pub fn needs_host(&self) -> bool {
        matches!(self, Self::Host { function, .. } if function.needs_host())
            || self.children().into_iter().any(Self::needs_host)
    }

    /// Sets the flag of each column that it reads.
    pub fn mark_columns(&self, columns: &mut [bool]) {
        if let Self::Column(at) = self
            && let Some(column) = columns.get_mut(*at)
        {
            *column = true;
        }
        self.children().into_iter().for_each(|child| child.mark_columns(columns));
    }

    /// An error if a function is not known for its arguments' types or constants, over an input of these
    /// columns. Without this check the first batch would end with that error.
    pub fn check(&self, input: &[LogicalType]) -> Result<()> {
        node::Node::compile(self, input).map(|_| ())
    }

    /// True where some values of the input end the query with an error of its own (`Error::Sql`, or one of a
    /// host's function).
    pub fn can_raise(&self, input: &[LogicalType]) -> bool {
        let own = match self {
            Self::Call { function, arguments, .. } => function.can_raise(&Self::types(arguments, input)),
            Self::Host { .. } => true,
            _ => false,
        };
        own || self.children().into_iter().any(|child| child.can_raise(input))
    }

    /// True where some values of the input are outside what is implemented (`Error::Decline`).
    pub fn can_decline(&self, input: &[LogicalType]) -> bool {
        let own = match self {
            Self::Call { function, arguments, .. } => function.can_decline(&Self::types(arguments, input)),
            Self::Host { function, arguments, .. } => {
                function.can_decline() || Self::types(arguments, input).contains(&LogicalType::Numeric)
            }
            Self::In { value, .. } => value.logical(input) == LogicalType::Numeric,
            _ => false,
        };
        own || self.children().into_iter().any(|child| child.can_decline(input))
    }

    fn types(parts: &[Self], input: &[LogicalType]) -> Vec<LogicalType> {
        parts.iter().map(|part| part.logical(input)).collect()
    }

    /// Replaces the columns that it reads by other ones. A column without a replacement stays.
    pub fn move_columns(&mut self, to: &dyn Fn(usize) -> Option<usize>) {
        if let Self::Column(at) = self {
            *at = to(*at).unwrap_or(*at);
        }
        self.children_mut().into_iter().for_each(|part| part.move_columns(to));
    }

    /// The expressions it is made of.
    pub fn children(&self) -> Vec<&Self> {
        match self {
            Self::Column(_) | Self::Constant(_) => Vec::new(),
            Self::Call { arguments, .. } | Self::Host { arguments, .. } => arguments.iter().collect(),
            Self::And(parts) | Self::Or(parts) | Self::Coalesce(parts) => parts.iter().collect(),
            Self::Not(part) | Self::IsNull(part) | Self::In { value: part, .. } => vec![part],
            Self::Case { branches, otherwise, .. } => {
                let branches = branches.iter().flat_map(|(condition, value)| [condition, value]);
                branches.chain(otherwise.as_deref()).collect()
            }
        }
    }

    /// The same, to be changed.
    pub fn children_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::Column(_) | Self::Constant(_) => Vec::new(),
            Self::Call { arguments, .. } | Self::Host { arguments, .. } => arguments.iter_mut().collect(),
            Self::And(parts) | Self::Or(parts) | Self::Coalesce(parts) => parts.iter_mut().collect(),
            Self::Not(part) | Self::IsNull(part) | Self::In { value: part, .. } => vec![part],
            Self::Case { branches, otherwise, .. } => {
                let branches = branches.iter_mut().flat_map(|(condition, value)| [condition, value]);
                branches.chain(otherwise.as_deref_mut()).collect()
            }
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(at) => write!(f, "${at}"),
            Self::Constant(value) => write!(f, "{:?}", value.values),
            Self::Call { function, arguments, .. } => write!(f, "{function:?}{arguments:?}"),
            Self::Host { function, arguments, .. } => write!(f, "{}{arguments:?}", function.name()),
            Self::And(parts) => write!(f, "and{parts:?}"),
            Self::Or(parts) => write!(f, "or{parts:?}"),
            Self::Not(part) => write!(f, "not {part:?}"),
            Self::IsNull(part) => write!(f, "{part:?} is null"),
            Self::Case { branches, otherwise, .. } => write!(f, "case{branches:?} else {otherwise:?}"),
            Self::Coalesce(parts) => write!(f, "coalesce{parts:?}"),
            Self::In { value, entries } => write!(f, "{value:?} in {} values", entries.len()),
        }
    }
}
