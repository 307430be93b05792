//! Keeping the rows for which a condition is TRUE.
//!
//! A source right below may evaluate the condition itself. It then decodes the other columns only for the
//! rows that pass. Conditions keep their order: a condition is offered to the source only if all conditions
//! below it may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{
    Batch, Condition, Emit, Evaluator, Expression, Plan, Result, RowFilter, Runner, Source, Transform,
    TransformFactory,
};

/// The shared part.
pub struct Filter {
    condition: Expression,
    /// The condition as it is offered to the source.
    offered: Option<Arc<dyn RowFilter>>,
    /// Whether the source evaluates the condition.
    taken: AtomicBool,
    /// Whether the operator must see every row, because each may end the query.
    raises: bool,
}

impl Filter {
    /// A filter of a plan's rows by this condition.
    pub fn new(condition: &Expression, input: &Plan) -> Self {
        let offered = !condition.needs_host() && is_source(input);
        let types = input.types();
        let offered = offered.then(|| Arc::new(Condition::new(condition, types.len())) as Arc<dyn RowFilter>);
        let raises = condition.can_raise(&types);
        Self { condition: condition.clone(), offered, taken: AtomicBool::new(false), raises }
    }
}

/// Whether rows of a plan are a source's, filtered at most by conditions that are offered to it.
fn is_source(plan: &Plan) -> bool {
    match plan {
        Plan::Scan { .. } => true,
        Plan::Filter { input, condition } => !condition.needs_host() && is_source(input),
        _ => false,
    }
}

impl TransformFactory for Filter {
    fn prepare(&self, _runner: &mut Runner<'_>, source: &mut dyn Source) -> Result<bool> {
        let taken = self.offered.as_ref().is_some_and(|condition| source.filter(condition));
        self.taken.store(taken, Ordering::Relaxed);
        Ok(true)
    }

    fn make(&self) -> Result<Box<dyn Transform>> {
        let taken = self.taken.load(Ordering::Relaxed);
        Ok(Box::new(Local { condition: (!taken).then(|| Evaluator::new(&self.condition)) }))
    }

    fn needs_host(&self) -> bool {
        self.condition.needs_host()
    }

    fn input_column(&self, column: usize) -> Option<usize> {
        (!self.raises).then_some(column)
    }

    fn name(&self) -> String {
        format!("Filter: {:?}", self.condition)
    }
}

struct Local {
    /// None where the source has looked at it.
    condition: Option<Evaluator>,
}

impl Transform for Local {
    fn push(&mut self, batch: Batch, emit: &mut Emit<'_>) -> Result<()> {
        let Some(condition) = &mut self.condition else { return emit(batch) };
        match condition.select(&batch)? {
            None => emit(batch),
            Some(rows) if rows.is_empty() => Ok(()),
            Some(rows) => emit(batch.take(&rows)),
        }
    }
}
