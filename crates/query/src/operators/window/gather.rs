//! Gathering rows into chunks of whole partitions, on the main thread.
//!
//! A chunk ends where a partition does, once it has enough rows. The columns that are only passed on go to a temporary file where a chunk outgrows the operator's memory; what functions look at
//! stays in memory.

use std::sync::Arc;

use vector::{LogicalType, Vector};

use super::Spec;
use super::boundaries::Boundaries;
use super::unit::WindowUnit;
use crate::execution::{Context, Pull};
use crate::row_container::{BatchQueue, flat};
use crate::{Batch, Error, Evaluator, Expression, Host, Pipeline, Result, Source, Unit};

/// Rows of a chunk, at least: enough that handing it to another thread costs nothing.
const CHUNK: usize = 1 << 15;

/// Expressions over the input that have to be computed.
pub struct Keys {
    /// Equal in a partition.
    pub partition: Vec<Expression>,
    /// Equal among peers.
    pub order: Vec<Expression>,
    /// Arguments of all functions.
    pub arguments: Vec<Expression>,
}

/// The source.
pub struct Gather {
    pipeline: Pipeline,
    pull: Pull,
    context: Context,
    spec: Arc<Spec>,
    partition: Vec<Evaluator>,
    order: Vec<Evaluator>,
    arguments: Vec<Evaluator>,
    partitions: Boundaries,
    peers: Boundaries,
    passed: Arc<Passed>,
    chunk: Chunk,
    ended: bool,
}

/// Which columns of the input are passed on.
pub struct Passed {
    /// Types of all.
    pub types: Vec<LogicalType>,
    /// Those that are read.
    pub wanted: Vec<bool>,
}

impl Passed {
    fn kept(&self) -> impl Iterator<Item = (usize, LogicalType)> {
        let columns = self.types.iter().zip(&self.wanted).enumerate();
        columns.filter(|(_, (_, wanted))| **wanted).map(|(at, (logical, _))| (at, *logical))
    }
}

/// Rows of whole partitions.
pub struct Chunk {
    /// How many.
    pub rows: usize,
    /// Where partitions begin.
    pub partitions: Vec<u32>,
    /// Where groups of peers begin.
    pub peers: Vec<u32>,
    /// Each argument's pieces.
    pub arguments: Vec<Vec<Vector>>,
    /// Their bytes.
    pub held: usize,
    /// The columns that are passed on.
    pub passing: BatchQueue,
}

impl Gather {
    /// The source of a window over the rows of `pipeline`.
    pub fn new(
        pipeline: Pipeline,
        spec: Spec,
        keys: Keys,
        types: &[LogicalType],
        wanted: &[bool],
        context: &Context,
    ) -> Self {
        let evaluators = |of: &[Expression]| of.iter().map(Evaluator::new).collect();
        let passed = Arc::new(Passed { types: types.to_vec(), wanted: wanted.to_vec() });
        Self {
            pipeline,
            pull: Pull::default(),
            context: context.clone(),
            spec: Arc::new(spec),
            partition: evaluators(&keys.partition),
            order: evaluators(&keys.order),
            arguments: evaluators(&keys.arguments),
            partitions: Boundaries::default(),
            peers: Boundaries::default(),
            chunk: Chunk::new(&passed, context),
            passed,
            ended: false,
        }
    }

    /// Takes a batch; a chunk that it completes.
    fn take(&mut self, batch: &Batch) -> Result<Option<Chunk>> {
        let compute = |of: &mut [Evaluator]| {
            of.iter_mut().map(|evaluator| evaluator.evaluate(batch)).collect::<Result<Vec<_>>>()
        };
        let (partition, order) = (compute(&mut self.partition)?, compute(&mut self.order)?);
        let arguments = compute(&mut self.arguments)?;
        let starts = self.partitions.next(&partition, batch.rows, None)?;
        let peers = self.peers.next(&order, batch.rows, Some(starts))?;
        let columns = self.passed.kept().map(|(at, _)| batch.columns.get(at).cloned());
        let columns =
            columns.collect::<Option<Vec<_>>>().ok_or(Error::Decline("column outside its input"))?;
        let passed = Batch::new(batch.rows, columns);
        let cut = starts.iter().rposition(|&start| start).filter(|&cut| self.chunk.rows + cut >= CHUNK);
        let Some(cut) = cut else {
            self.chunk.append(&passed, &arguments, starts, peers)?;
            return Ok(None);
        };
        let halves = |from: usize, len: usize| {
            let arguments = arguments.iter().map(|argument| Arc::new(argument.slice(from, len)));
            (passed.slice(from, len), arguments.collect::<Vec<_>>())
        };
        let (before, after) = (halves(0, cut), halves(cut, batch.rows - cut));
        let ((starts, next_starts), (peers, next_peers)) = (starts.split_at(cut), peers.split_at(cut));
        self.chunk.append(&before.0, &before.1, starts, peers)?;
        let complete = std::mem::replace(&mut self.chunk, Chunk::new(&self.passed, &self.context));
        self.chunk.append(&after.0, &after.1, next_starts, next_peers)?;
        Ok(Some(complete))
    }
}

impl Chunk {
    fn new(passed: &Passed, context: &Context) -> Self {
        let types: Vec<_> = passed.kept().map(|(_, logical)| logical).collect();
        let settings = &context.settings;
        Self {
            rows: 0,
            partitions: Vec::new(),
            peers: Vec::new(),
            arguments: Vec::new(),
            held: 0,
            passing: BatchQueue::new(&types, settings.memory, settings.temp_files.clone()),
        }
    }

    fn append(
        &mut self,
        batch: &Batch,
        arguments: &[Arc<Vector>],
        starts: &[bool],
        peers: &[bool],
    ) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        let Some(first) = u32::try_from(self.rows + batch.rows).ok().map(|_| self.rows as u32) else {
            return Err(Error::Decline("a partition of 4 billion rows"));
        };
        let positions = |flags: &[bool], to: &mut Vec<u32>| {
            to.extend((first..).zip(flags).filter(|(_, flag)| **flag).map(|(row, _)| row));
        };
        positions(starts, &mut self.partitions);
        positions(peers, &mut self.peers);
        self.arguments.resize_with(arguments.len(), Vec::new);
        for (kept, argument) in self.arguments.iter_mut().zip(arguments) {
            let argument = flat(argument);
            self.held += argument.bytes();
            kept.push(Arc::unwrap_or_clone(argument));
        }
        self.rows += batch.rows;
        self.passing.push(batch.clone())
    }
}

impl Source for Gather {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        while !self.ended {
            let complete = match self.pull.next(&mut self.pipeline, host, &self.context)? {
                Some(batch) if batch.rows == 0 => None,
                Some(batch) => self.take(&batch)?,
                None => {
                    self.ended = true;
                    Some(std::mem::replace(&mut self.chunk, Chunk::new(&self.passed, &self.context)))
                        .filter(|chunk| chunk.rows > 0)
                }
            };
            if let Some(chunk) = complete {
                let unit = WindowUnit::new(chunk, Arc::clone(&self.spec), Arc::clone(&self.passed))?;
                return Ok(Some(Box::new(unit)));
            }
        }
        Ok(None)
    }

    fn memory(&self) -> usize {
        self.chunk.held + self.chunk.passing.bytes()
    }

    fn is_ordered(&self) -> bool {
        true
    }
}
