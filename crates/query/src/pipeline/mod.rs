//! Pipelines: a source, the transforms that its rows go through, and what drives them.
//!
//! `operators` and `execution` use this folder; it uses neither of them. The files:
//! - `operator` has the traits that operators implement;
//! - `run` drives a pipeline into its sink, with the workers of `pool`;
//! - `pull` fetches a pipeline's rows one batch after the other, for operators that read their input in
//!   order;
//! - `push` sends batches through transforms and keeps what comes out;
//! - `breaker` makes a source of a sink;
//! - `spilled` counts what goes to temporary files.
//!
//! Invariant: sources are asked on the main thread only.

mod breaker;
mod operator;
mod pool;
mod pull;
mod push;
mod run;
mod spilled;

use std::sync::Arc;

pub(crate) use self::breaker::Breaker;
pub use self::operator::{Emit, Sink, SinkLocal, Transform, TransformFactory};
pub(crate) use self::pool::{Job, Lane, Pool};
pub(crate) use self::pull::Pull;
pub(crate) use self::push::PushQueue;
pub use self::run::Runner;
pub(crate) use self::spilled::{count_spilled, measure_spilled};
use crate::{Result, SharedTempFiles, Source};

/// Units that the main thread runs alone before it looks for help.
pub(crate) const ALONE: usize = 1;

/// Limits of one execution.
#[derive(Clone)]
pub struct Settings {
    /// Bytes that one operator, all threads together, may hold before it spills.
    pub memory: usize,
    /// Threads that compute, the main thread among them; at least 1.
    pub threads: usize,
    /// Where spilled rows go.
    pub temp_files: Option<SharedTempFiles>,
}

/// The data that the pipelines of an execution share.
#[derive(Clone)]
pub(crate) struct Context {
    pub settings: Arc<Settings>,
    pub pool: Arc<Pool>,
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

    /// Transforms for one thread.
    ///
    /// # Errors
    /// A transform that cannot be made.
    pub fn make_transforms(&self) -> Result<Vec<Box<dyn Transform>>> {
        self.transforms.iter().map(|factory| factory.make()).collect()
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
    pub fn prepare(&mut self, runner: &mut Runner<'_>) -> Result<bool> {
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
