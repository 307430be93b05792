//! What the columns that an expression names stand for.
//!
//! The file that translates a node's lists chooses the scope. `expressions` asks it at each column.
//! Invariant: a column outside the scope declines the node.

use std::sync::Arc;

use pgrx::pg_sys;
use query::{Expression, Function};
use vector::{CompareOp, LogicalType, Vector};

use super::constants::{boolean, integer};
use super::expressions::call;
use crate::host::tree::Typed;

/// What the columns that an expression names stand for.
#[derive(Clone, Copy)]
pub enum Scope<'a> {
    /// Columns of a scanned table, by attribute.
    Table {
        /// The table's number in the range table.
        relid: u32,
        /// Zero-based attribute of each column.
        attributes: &'a [usize],
    },
    /// Columns of a subquery, by its target list.
    Subquery {
        /// Its number in the range table.
        relid: u32,
        /// What it gives.
        columns: &'a [Expression],
    },
    /// Target lists of the nodes below.
    Inputs {
        /// What the outer one gives.
        outer: &'a [Expression],
        /// What the inner one gives.
        inner: &'a [Expression],
    },
    /// The target list of the node below, and the window functions of this one.
    Windows {
        /// What the input gives.
        outer: &'a [Expression],
        /// Each function and what it became.
        functions: &'a [(Typed<'a, pg_sys::WindowFunc>, Expression)],
    },
    /// The node's own target list, for conditions that are looked at after it was computed.
    Own {
        /// What it gives.
        columns: &'a [Expression],
    },
    /// Groups: what the input's columns that are grouped by, and the aggregates, became.
    Groups {
        /// Number of an input column (from 1) and what it became.
        keys: &'a [(i16, Expression)],
        /// By number of the aggregate.
        aggregates: &'a [Expression],
        /// Which grouping set a group is of, where there are several.
        sets: Option<Sets<'a>>,
    },
}

/// Grouping sets.
#[derive(Clone, Copy)]
pub struct Sets<'a> {
    /// The number of a group's set.
    pub number: &'a Expression,
    /// Each set's columns of the input, from 1.
    pub sets: &'a [Vec<i16>],
}

impl Sets<'_> {
    /// Whether a group's set is without one of these columns.
    pub fn without(&self, columns: &[i16]) -> Expression {
        let lacks = |set: &Vec<i16>| columns.iter().any(|column| !set.contains(column));
        let numbers = self.sets.iter().zip(0..).filter(|(set, _)| lacks(set)).map(|(_, number)| number);
        let entries = Vector::new(LogicalType::Int32, vector::Values::Int32(numbers.collect()));
        match entries.len() {
            0 => boolean(false),
            _ => Expression::In { value: Box::new(self.number.clone()), entries: Arc::new(entries) },
        }
    }

    /// `GROUPING`: a bit for each of these columns, the first the highest, that says whether a group's set is
    /// without it.
    pub(super) fn grouping(&self, columns: &[i16]) -> Expression {
        let bits = |set: &Vec<i16>| {
            columns.iter().fold(0i32, |bits, column| bits << 1 | i32::from(!set.contains(column)))
        };
        let branch = |(set, number): (&Vec<i16>, i32)| {
            let sides = vec![self.number.clone(), integer(number)];
            (call(Function::Compare(CompareOp::Equal), sides, LogicalType::Bool), integer(bits(set)))
        };
        let branches = self.sets.iter().zip(0..).map(branch).collect();
        Expression::Case { branches, otherwise: None, result: LogicalType::Int32 }
    }
}

impl Scope<'_> {
    /// What a column of the server's stands for.
    pub(super) fn column(&self, var: &pg_sys::Var) -> Option<Expression> {
        let position = usize::try_from(var.varattno).ok()?.checked_sub(1)?;
        match self {
            Scope::Table { relid, attributes } => {
                let own = u32::try_from(var.varno).ok()? == *relid && var.varlevelsup == 0;
                let at = attributes.iter().position(|&attribute| attribute == position)?;
                own.then_some(Expression::Column(at))
            }
            Scope::Subquery { relid, columns } => {
                let own = u32::try_from(var.varno).ok()? == *relid && var.varlevelsup == 0;
                columns.get(position).filter(|_| own).cloned()
            }
            Scope::Inputs { outer, inner } => match var.varno {
                pg_sys::OUTER_VAR => outer.get(position).cloned(),
                pg_sys::INNER_VAR => inner.get(position).cloned(),
                _ => None,
            },
            Scope::Windows { outer, .. } => {
                outer.get(position).filter(|_| var.varno == pg_sys::OUTER_VAR).cloned()
            }
            // The planner numbers these tables by chance, but not as one of the inputs.
            Scope::Own { columns } => columns.get(position).filter(|_| var.varno >= 0).cloned(),
            Scope::Groups { keys, .. } => {
                let found = keys.iter().find(|(attno, _)| *attno == var.varattno)?;
                (var.varno == pg_sys::OUTER_VAR).then(|| found.1.clone())
            }
        }
    }
}
