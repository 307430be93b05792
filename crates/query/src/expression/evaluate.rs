//! Evaluating expressions over batches.
//!
//! One evaluator belongs to one thread and one expression. Invariant: the vector it returns has a row for each row of the batch.

use std::sync::Arc;

use vector::{Values, Vector};

use crate::{Batch, Error, Expression, Result};

/// Computes an expression batch by batch, with what it may remember between batches.
#[derive(Debug)]
pub struct Evaluator {
    expression: Expression,
}

impl Evaluator {
    /// An evaluator of one expression.
    pub fn new(expression: &Expression) -> Self {
        Self { expression: expression.clone() }
    }

    /// The value of each row.
    pub fn evaluate(&mut self, batch: &Batch) -> Result<Arc<Vector>> {
        match &self.expression {
            Expression::Column(at) => {
                batch.columns.get(*at).cloned().ok_or(Error::Decline("column outside its input"))
            }
            Expression::Constant(value) => {
                let values = Values::Constant(Box::new(value.as_ref().clone()), batch.rows);
                Ok(Arc::new(Vector::new(value.logical, values)))
            }
            _ => Err(Error::Decline("expression")),
        }
    }

    /// Rows for which a boolean expression is TRUE, ascending; None when it is for all.
    pub fn select(&mut self, batch: &Batch) -> Result<Option<Vec<u32>>> {
        let verdict = self.evaluate(batch)?;
        let verdict = match &verdict.values {
            Values::Bool(_) => verdict,
            _ => Arc::new(verdict.as_ref().clone().flatten()),
        };
        let Values::Bool(bits) = &verdict.values else { return Err(Error::Decline("not a boolean")) };
        let rows: Vec<u32> = (0u32..)
            .zip(0..batch.rows)
            .filter(|&(_, row)| bits.get(row) && verdict.is_valid(row))
            .map(|(row, _)| row)
            .collect();
        Ok((rows.len() < batch.rows).then_some(rows))
    }
}
