//! Gives each row as many times as its count says. INTERSECT ALL and EXCEPT ALL keep equal rows that way.

use vector::Values;

use crate::row_container::flat;
use crate::{BATCH_ROWS, Batch, Emit, Error, Evaluator, Expression, Result, Transform, TransformFactory};

/// The shared part.
pub struct Repeat {
    count: Expression,
}

impl Repeat {
    /// Rows as often as this says.
    pub fn new(count: &Expression) -> Self {
        Self { count: count.clone() }
    }
}

impl TransformFactory for Repeat {
    fn make(&self) -> Result<Box<dyn Transform>> {
        Ok(Box::new(Local { count: Evaluator::new(&self.count) }))
    }

    fn needs_host(&self) -> bool {
        self.count.needs_host()
    }

    fn input_column(&self, column: usize) -> Option<usize> {
        Some(column)
    }

    fn name(&self) -> String {
        format!("Repeat: {:?}", self.count)
    }
}

struct Local {
    count: Evaluator,
}

impl Transform for Local {
    fn push(&mut self, batch: Batch, emit: &mut Emit<'_>) -> Result<()> {
        let counts = flat(&self.count.evaluate(&batch)?);
        let Values::Int64(values) = &counts.values else {
            return Err(Error::Decline("count of another type"));
        };
        let mut rows = Vec::with_capacity(BATCH_ROWS);
        for (row, &count) in (0u32..).zip(values) {
            let mut left = if counts.is_valid(row as usize) { count.max(0) as usize } else { 0 };
            while left > 0 {
                let now = left.min(BATCH_ROWS - rows.len());
                rows.resize(rows.len() + now, row);
                left -= now;
                if rows.len() == BATCH_ROWS {
                    emit(batch.take(&rows))?;
                    rows.clear();
                }
            }
        }
        if rows.is_empty() { Ok(()) } else { emit(batch.take(&rows)) }
    }
}
