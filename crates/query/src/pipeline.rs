//! The parts of a pipeline: transforms that work batch by batch, and sinks that gather what they get.
//!
//! `execution` puts them together and runs them. A factory or sink is shared by all threads; each thread has
//! transforms and a `SinkLocal` of its own, so that nothing is locked while batches flow. Invariant: a sink
//! sees `complete` once, after every local part was finished.

use std::any::Any;
use std::sync::Arc;

use vector::Predicate;

use crate::execution::Context;
use crate::{Batch, Host, Members, Result, Source, Summary, SummaryNeed};

/// Takes the batches that a transform makes.
pub type Emit<'a> = dyn FnMut(Batch) -> Result<()> + 'a;

/// One thread's part of an operator that passes rows on.
pub trait Transform: Send {
    /// Takes a batch and emits what comes of it.
    fn push(&mut self, batch: Batch, emit: &mut Emit<'_>) -> Result<()>;
}

/// An operator that passes rows on: filter, projection, the probing side of a join.
pub trait TransformFactory: Send + Sync {
    /// Runs before the first batch, on the main thread, when the pipelines it depends on (`Pipeline::builds`)
    /// have run. It may narrow the source that its pipeline will read. False: no row can come out.
    fn prepare(&self, _runner: &mut crate::Runner<'_>, _source: &mut dyn Source) -> Result<bool> {
        Ok(true)
    }

    /// A thread's own part.
    fn make(&self) -> Result<Box<dyn Transform>>;

    /// Rows to emit when all threads have seen all batches (a right join's rows without a match): called
    /// until it gives None.
    fn rest(&self) -> Result<Option<Batch>> {
        Ok(None)
    }

    /// Whether `rest` may give rows.
    fn has_rest(&self) -> bool {
        false
    }

    /// Which column of its input a column of its output is, where it is one for every row, and rows may be
    /// left out of the input by it unseen.
    fn input_column(&self, _column: usize) -> Option<usize> {
        None
    }

    /// Must run on the host's main thread.
    fn needs_host(&self) -> bool {
        false
    }

    /// For EXPLAIN.
    fn name(&self) -> String;
}

/// One thread's part of a sink.
pub trait SinkLocal: Send {
    /// Takes a batch. False: no more rows are wanted, from any thread.
    fn push(&mut self, batch: Batch) -> Result<bool>;

    /// Takes rows as a summary.
    fn push_summary(&mut self, _summary: Summary) -> Result<()> {
        Err(crate::Error::Decline("summary for a sink that did not ask"))
    }

    /// Bytes that it holds now, for EXPLAIN.
    fn memory(&self) -> usize {
        0
    }

    /// Brings what it has to the shared part.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// An operator that has to see all rows first.
pub trait Sink: Send + Sync {
    /// A thread's own part.
    fn make(&self) -> Result<Box<dyn SinkLocal>>;

    /// All rows were seen: what comes out. Called once, on the main thread.
    fn complete(&self) -> Result<Box<dyn Source>>;

    /// What it has to know of each column of its pipeline's source to take summaries instead of rows; None
    /// when it needs rows.
    fn wants_summary(&self) -> Option<Vec<SummaryNeed>> {
        None
    }

    /// Must run on the host's main thread.
    fn needs_host(&self) -> bool {
        false
    }

    /// Itself, for a caller that knows what it made.
    fn as_any(&self) -> &dyn Any;

    /// For EXPLAIN.
    fn name(&self) -> String;
}

/// A pipeline that has to run into its sink before the one that it belongs to: the kept side of a join.
pub struct Build {
    /// What runs.
    pub pipeline: Pipeline,
    /// Where its rows go. What it gives when it is complete is not read.
    pub sink: Arc<dyn Sink>,
}

/// A source and what its rows go through.
pub struct Pipeline {
    /// What runs first, in order.
    pub builds: Vec<Build>,
    /// Where rows come from.
    pub source: Box<dyn Source>,
    /// What they go through, in order.
    pub transforms: Vec<Arc<dyn TransformFactory>>,
    /// Whether rows have to reach the end in the source's order, if it has one.
    pub keep_order: bool,
}

impl Pipeline {
    /// A pipeline that passes the source's rows on.
    pub fn new(source: Box<dyn Source>) -> Self {
        Self { builds: Vec::new(), source, transforms: Vec::new(), keep_order: false }
    }

    /// True where a step must run on the host's main thread.
    pub fn needs_host(&self) -> bool {
        self.source.needs_host() || self.transforms.iter().any(|transform| transform.needs_host())
    }

    /// True where several threads may run its units.
    pub fn is_parallel(&self) -> bool {
        !(self.needs_host() || self.keep_order && self.source.is_ordered())
    }

    /// Runs what has to run first. False: no row can come out of the pipeline.
    pub fn prepare(&mut self, runner: &mut crate::Runner<'_>) -> Result<bool> {
        for build in self.builds.drain(..) {
            runner.run(build.pipeline, build.sink.as_ref())?;
            build.sink.complete()?;
        }
        let mut rows = true;
        for transform in &self.transforms {
            // A join that lets no row through does not end what a later one has of its own: rows without a
            // match.
            rows = transform.prepare(runner, self.source.as_mut())? && (rows || transform.has_rest());
        }
        Ok(rows)
    }

    /// Which column of the source a column of the rows that come out is, where it is one.
    pub fn source_column(&self, column: usize) -> Option<usize> {
        self.transforms.iter().rev().try_fold(column, |column, transform| transform.input_column(column))
    }
}

/// A sink's rows as a source: the pipeline below runs when the first unit is asked for.
pub(crate) struct Breaker {
    pending: Option<(Pipeline, Arc<dyn Sink>)>,
    ordered: bool,
    /// For each column of the sink's rows the column of the pipeline's that decides which of them go
    /// together: without a value there, the rows with that value here are missing and nothing else changes.
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

    /// The same where columns of the rows that come out are columns of the pipeline's rows that they were
    /// grouped by.
    pub fn grouped(mut self, deciding: Vec<Option<usize>>) -> Self {
        self.deciding = deciding;
        self
    }

    /// The source below and its column that a column of this one is.
    fn below(&mut self, column: usize) -> Option<(&mut dyn Source, usize)> {
        let deciding = self.deciding.get(column).copied().flatten()?;
        let (pipeline, _) = self.pending.as_mut()?;
        let column = pipeline.source_column(deciding)?;
        Some((pipeline.source.as_mut(), column))
    }
}

impl Source for Breaker {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn crate::Unit>>> {
        if let Some((pipeline, sink)) = self.pending.take() {
            crate::Runner::new(host, &self.context).run(pipeline, sink.as_ref())?;
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
