//! Conditions on columns that can be answered from statistics and on encoded data.
//!
//! The logic is SQL's, with three values: a row qualifies if the predicate is TRUE. There is no NOT. Hosts
//! push negation down to the leaves (`<>`, IS NOT NULL), so FALSE and UNKNOWN never need to be told apart.
//!
//! A host that cannot express a condition exactly does not filter by it. For pruning it may use a weaker
//! predicate, which is TRUE at least wherever the condition is.

use std::cmp::Ordering;

use crate::Scalar;

/// Comparison of a column with a constant, under the column type's own equality and order (see
/// `LogicalType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl CompareOp {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Equal, Self::NotEqual, Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual];

    /// Whether it is TRUE of two values that compare so.
    #[inline]
    pub const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// A condition on the columns of one source. `column` is a zero-based position in its schema.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// TRUE for every row, or for none.
    Always(bool),
    /// TRUE if all parts are.
    And(Vec<Predicate>),
    /// TRUE if one part is.
    Or(Vec<Predicate>),
    /// TRUE when the value is not NULL and compares so with a constant that is not NULL. The constant's kind
    /// fits the column's type (`Scalar::Numeric` may stand against a numeric column of any scale).
    Compare {
        /// Column compared.
        column: usize,
        /// How.
        op: CompareOp,
        /// With what.
        value: Scalar,
    },
    /// TRUE when the value equals one of these (none of them NULL).
    In {
        /// Column compared.
        column: usize,
        /// Values looked for.
        values: Vec<Scalar>,
    },
    /// TRUE when the value is not NULL and equals none of these (none of them NULL).
    NotIn {
        /// Column compared.
        column: usize,
        /// Values that are left out.
        values: Vec<Scalar>,
    },
    /// TRUE when the value is NULL.
    IsNull {
        /// Column asked.
        column: usize,
    },
    /// TRUE when the value is not NULL.
    IsNotNull {
        /// Column asked.
        column: usize,
    },
    /// TRUE when the value's bytes start with these (text and bytes only).
    StartsWith {
        /// Column asked.
        column: usize,
        /// First bytes wanted.
        prefix: Box<[u8]>,
    },
}

impl Predicate {
    /// The columns it reads, in first-seen order, each once.
    pub fn columns(&self) -> Vec<usize> {
        fn walk(predicate: &Predicate, seen: &mut Vec<usize>) {
            match predicate {
                Predicate::Always(_) => {}
                Predicate::And(parts) | Predicate::Or(parts) => {
                    parts.iter().for_each(|part| walk(part, seen))
                }
                Predicate::Compare { column, .. }
                | Predicate::In { column, .. }
                | Predicate::NotIn { column, .. }
                | Predicate::IsNull { column }
                | Predicate::IsNotNull { column }
                | Predicate::StartsWith { column, .. } => {
                    if !seen.contains(column) {
                        seen.push(*column);
                    }
                }
            }
        }
        let mut seen = Vec::new();
        walk(self, &mut seen);
        seen
    }

    /// Gives the columns other numbers. False if a column has no other number; then the predicate must not be
    /// used any more.
    pub fn rename(&mut self, name: &dyn Fn(usize) -> Option<usize>) -> bool {
        match self {
            Self::Always(_) => true,
            Self::And(parts) | Self::Or(parts) => parts.iter_mut().all(|part| part.rename(name)),
            Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::NotIn { column, .. }
            | Self::IsNull { column }
            | Self::IsNotNull { column }
            | Self::StartsWith { column, .. } => match name(*column) {
                Some(new) => {
                    *column = new;
                    true
                }
                None => false,
            },
        }
    }
}
