//! Computing columns.

use vector::LogicalType;

use crate::{Batch, Emit, Evaluator, Expression, Result, Transform, TransformFactory};

/// The shared part.
pub struct Project {
    expressions: Vec<Expression>,
    /// Whether the operator must see every row, because each may end the query.
    raises: bool,
}

impl Project {
    /// A projection to these columns, over columns of these types.
    pub fn new(expressions: &[Expression], input: &[LogicalType]) -> Self {
        let raises = expressions.iter().any(|expression| expression.can_raise(input));
        Self { expressions: expressions.to_vec(), raises }
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
            Some(Expression::Column(at)) if !self.raises => Some(*at),
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
