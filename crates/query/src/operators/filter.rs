//! Keeping the rows for which a condition is TRUE.

use crate::{Batch, Emit, Evaluator, Expression, Result, Transform, TransformFactory};

/// The shared part.
pub struct Filter {
    condition: Expression,
}

impl Filter {
    /// A filter by this condition.
    pub fn new(condition: &Expression) -> Self {
        Self { condition: condition.clone() }
    }
}

impl TransformFactory for Filter {
    fn make(&self) -> Result<Box<dyn Transform>> {
        Ok(Box::new(Local { condition: Evaluator::new(&self.condition) }))
    }

    fn needs_host(&self) -> bool {
        self.condition.needs_host()
    }

    fn input_column(&self, column: usize) -> Option<usize> {
        Some(column)
    }

    fn name(&self) -> String {
        format!("Filter: {:?}", self.condition)
    }
}

struct Local {
    condition: Evaluator,
}

impl Transform for Local {
    fn push(&mut self, batch: Batch, emit: &mut Emit<'_>) -> Result<()> {
        match self.condition.select(&batch)? {
            None => emit(batch),
            Some(rows) if rows.is_empty() => Ok(()),
            Some(rows) => emit(batch.take(&rows)),
        }
    }
}
