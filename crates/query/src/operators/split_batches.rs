//! Splits batches where the operator that follows makes long values of their rows.
//!
//! A function of the host's may make long texts of short ones (`repeat`), and the texts of a whole batch are
//! in memory together. So this transform comes before operators that call such a function
//! (`execution/build`). A function that is computed once for each entry of a dictionary needs no split, and
//! would cost more with it.

use vector::{LogicalType, Values};

use crate::{Batch, Emit, Expression, Result, Transform, TransformFactory};

/// Rows of a batch after the split.
const ROWS: usize = 1024;

/// The shared part: for each such function the columns that it reads.
#[derive(Clone)]
pub struct SplitBatches {
    functions: Vec<Vec<usize>>,
}

impl SplitBatches {
    /// For an operator with these expressions over columns of these types; None where nothing of it makes
    /// long values.
    pub fn of<'a>(expressions: impl IntoIterator<Item = &'a Expression>, width: usize) -> Option<Self> {
        let mut functions = Vec::new();
        expressions.into_iter().for_each(|expression| find(expression, width, &mut functions));
        (!functions.is_empty()).then_some(Self { functions })
    }
}

fn find(expression: &Expression, width: usize, functions: &mut Vec<Vec<usize>>) {
    if let Expression::Host { result: LogicalType::Text | LogicalType::Bytes, .. } = expression {
        let mut read = vec![false; width];
        expression.mark_columns(&mut read);
        functions.push((0..width).filter(|&at| read[at]).collect());
    }
    expression.children().into_iter().for_each(|child| find(child, width, functions));
}

impl TransformFactory for SplitBatches {
    fn make(&self) -> Result<Box<dyn Transform>> {
        Ok(Box::new(self.clone()))
    }

    fn input_column(&self, column: usize) -> Option<usize> {
        Some(column)
    }

    fn name(&self) -> String {
        String::from("SplitBatches")
    }
}

impl Transform for SplitBatches {
    fn push(&mut self, batch: Batch, emit: &mut Emit<'_>) -> Result<()> {
        if batch.rows <= ROWS || self.functions.iter().all(|columns| is_shared(&batch, columns)) {
            return emit(batch);
        }
        (0..batch.rows).step_by(ROWS).try_for_each(|start| emit(batch.slice(start, ROWS)))
    }
}

/// Whether a function of these columns is computed for fewer values than there are rows.
fn is_shared(batch: &Batch, columns: &[usize]) -> bool {
    match *columns {
        [] => true,
        [at] => batch.columns.get(at).is_some_and(|column| {
            matches!(column.values, Values::Dictionary { .. } | Values::Runs { .. } | Values::Constant(..))
        }),
        _ => false,
    }
}
