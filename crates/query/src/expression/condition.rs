//! A condition that a source evaluates itself, before it decodes the columns that only later operators read.
//!
//! `operators::filter` offers it to the source of its pipeline (`Source::filter`). Any number of threads may
//! ask at once: each takes an evaluator, which remembers what it computed of dictionaries, and puts it back.

use std::sync::Mutex;

use super::Evaluator;
use crate::{Batch, Expression, Result, RowFilter};

/// A boolean expression over a source's columns.
pub struct Condition {
    expression: Expression,
    columns: Vec<usize>,
    /// Evaluators that no thread uses just now.
    evaluators: Mutex<Vec<Evaluator>>,
}

impl Condition {
    /// This condition over rows of `width` columns.
    pub fn new(expression: &Expression, width: usize) -> Self {
        let mut read = vec![false; width];
        expression.mark_columns(&mut read);
        let columns = (0..width).filter(|&at| read.get(at) == Some(&true)).collect();
        Self { expression: expression.clone(), columns, evaluators: Mutex::default() }
    }
}

impl RowFilter for Condition {
    fn columns(&self) -> &[usize] {
        &self.columns
    }

    fn select(&self, batch: &Batch) -> Result<Option<Vec<u32>>> {
        let idle = self.evaluators.lock().ok().and_then(|mut idle| idle.pop());
        let mut evaluator = idle.unwrap_or_else(|| Evaluator::new(&self.expression));
        let rows = evaluator.select(batch);
        if let Ok(mut idle) = self.evaluators.lock() {
            idle.push(evaluator);
        }
        rows
    }
}
