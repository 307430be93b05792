//! The source that a sink becomes once it has seen all rows: where one pipeline ends and the next begins.
//!
//! `execution` makes one for each sink of a plan. The pipeline below runs when the first unit is asked for.

use std::sync::Arc;

use vector::Predicate;

use super::{Context, Pipeline, Runner, Sink};
use crate::{Host, Members, Result, Source, Unit};

/// A sink's rows as a source: the pipeline below runs when the first unit is asked for.
pub(crate) struct Breaker {
    pending: Option<(Pipeline, Arc<dyn Sink>)>,
    ordered: bool,
    /// For each column of the sink's rows the column of the pipeline's rows that it was grouped by, if any.
    /// If the pipeline leaves out all rows with one value in that column, the sink lacks the rows with this
    /// value. Nothing else changes.
    deciding: Vec<Option<usize>>,
    context: Context,
    output: Option<Box<dyn Source>>,
}

impl Breaker {
    /// What `sink` gives when it has seen all rows of `pipeline`; `ordered` says whether the order of its
    /// rows means something.
    pub const fn new(pipeline: Pipeline, sink: Arc<dyn Sink>, ordered: bool, context: Context) -> Self {
        Self { pending: Some((pipeline, sink)), ordered, deciding: Vec::new(), context, output: None }
    }

    /// The same for a sink that groups the pipeline's rows. `deciding` says which columns of its rows are
    /// columns they were grouped by.
    pub fn grouped(mut self, deciding: Vec<Option<usize>>) -> Self {
        self.deciding = deciding;
        self
    }

    /// The source below, and its column that becomes column `column` of this source.
    fn below(&mut self, column: usize) -> Option<(&mut dyn Source, usize)> {
        let deciding = self.deciding.get(column).copied().flatten()?;
        let (pipeline, _) = self.pending.as_mut()?;
        let column = pipeline.source_column(deciding)?;
        Some((pipeline.source.as_mut(), column))
    }
}

impl Source for Breaker {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        if let Some((pipeline, sink)) = self.pending.take() {
            Runner::new(host, &self.context).run(pipeline, sink.as_ref())?;
            self.output = Some(sink.complete()?);
        }
        match &mut self.output {
            Some(output) => output.next_unit(host),
            None => Ok(None),
        }
    }

    fn narrow(&mut self, mut predicate: Predicate) {
        let &[column] = predicate.columns().as_slice() else { return };
        if let Some((source, column)) = self.below(column)
            && predicate.rename(&|_| Some(column))
        {
            source.narrow(predicate);
        }
    }

    fn narrow_members(&mut self, column: usize, members: &Arc<dyn Members>) -> bool {
        self.below(column).is_some_and(|(source, column)| source.narrow_members(column, members))
    }

    fn is_ordered(&self) -> bool {
        self.ordered
    }
}
