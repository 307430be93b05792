//! Evaluating expressions over batches.
//!
//! One evaluator belongs to one thread and one expression. It compiles the expression when it meets its first
//! batch, whose columns tell their types. Invariant: the vector it returns has a row for each row of the
//! batch.

use std::sync::Arc;

use vector::{LogicalType, Vector};

use super::node::Node;
use super::select;
use crate::{Batch, Expression, Result};

/// Computes an expression batch by batch, with what it may remember between batches.
pub struct Evaluator {
    expression: Expression,
    compiled: Option<Node>,
}

impl Evaluator {
    /// An evaluator of one expression.
    pub fn new(expression: &Expression) -> Self {
        Self { expression: expression.clone(), compiled: None }
    }

    fn node(&mut self, batch: &Batch) -> Result<&mut Node> {
        let node = match self.compiled.take() {
            Some(node) => node,
            None => {
                let types: Vec<LogicalType> = batch.columns.iter().map(|column| column.logical).collect();
                Node::compile(&self.expression, &types)?
            }
        };
        Ok(self.compiled.insert(node))
    }

    /// The value of each row: flat, or `Constant`, `Dictionary` or `Runs` where the columns are.
    pub fn evaluate(&mut self, batch: &Batch) -> Result<Arc<Vector>> {
        Ok(self.node(batch)?.evaluate(batch)?.vector)
    }

    /// Rows for which a boolean expression is TRUE, ascending; None when it is for all.
    pub fn select(&mut self, batch: &Batch) -> Result<Option<Vec<u32>>> {
        select::rows(self.node(batch)?, batch)
    }

    /// The same of a value, where FALSE ends AND and NULL does not: an error of a later part is one of the
    /// query.
    pub fn select_value(&mut self, batch: &Batch) -> Result<Option<Vec<u32>>> {
        select::rows_of_value(self.node(batch)?, batch)
    }
}

impl std::fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.expression)
    }
}
