//! Computing columns.

use crate::{Batch, Emit, Evaluator, Expression, Result, Transform, TransformFactory};

/// The shared part.
pub struct Project {
    expressions: Vec<Expression>,
}

impl Project {
    /// A projection to these columns.
    pub fn new(expressions: &[Expression]) -> Self {
        Self { expressions: expressions.to_vec() }
    }
}

impl TransformFactory for Project {
    fn make(&self) -> Result<Box<dyn Transform>> {
        Ok(Box::new(Local { columns: self.expressions.iter().map(Evaluator::new).collect() }))
    }

    fn needs_host(&self) -> bool {
        self.expressions.iter().any(Expression::needs_host)
    }

    fn input_column(&self, column: usize) -> Option<usize> {
        match self.expressions.get(column) {
            Some(Expression::Column(at)) => Some(*at),
            _ => None,
        }
    }

    fn name(&self) -> String {
        format!("Project: {:?}", self.expressions)
    }
}

struct Local {
    columns: Vec<Evaluator>,
}

impl Transform for Local {
    fn push(&mut self, batch: Batch, emit: &mut Emit<'_>) -> Result<()> {
        let columns = self.columns.iter_mut().map(|column| column.evaluate(&batch));
        emit(Batch::new(batch.rows, columns.collect::<Result<Vec<_>>>()?))
    }
}
