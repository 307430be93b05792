//! What an operator is: a transform that passes rows on batch by batch, or a sink that has to see all rows
//! first.
//!
//! The files of `operators` implement these traits, `run` and `Execution` call them. A factory or sink is
//! shared by all threads; each thread has transforms and a `SinkLocal` of its own, so that nothing is locked
//! while batches flow. Invariant: a sink sees `complete` once, after every local part was finished.

use std::any::Any;

use super::Runner;
use crate::{Batch, Result, Source, Summary, SummaryNeed};

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
    fn prepare(&self, _runner: &mut Runner<'_>, _source: &mut dyn Source) -> Result<bool> {
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
