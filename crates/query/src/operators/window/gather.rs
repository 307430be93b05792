//! Gathering rows into chunks of whole partitions, on the main thread.
//!
//! A chunk ends where a partition does, once it has enough rows. If it outgrows the operator's memory, its
//! rows go to two temporary files, which are read side by side. One file has the columns that are only passed
//! on. The other has the columns that functions look at, in smaller pages (`input`).

use std::sync::Arc;

use vector::{Bitmap, LogicalType};

use super::Spec;
use super::boundaries::Boundaries;
use super::unit::WindowUnit;
use crate::pipeline::{Context, Pull};
use crate::row_container::{BatchQueue, flat};
use crate::{Batch, Error, Evaluator, Expression, Host, Pipeline, Result, Source, Unit};

/// Rows of a chunk, at least: enough that handing it to another thread costs nothing.
const CHUNK: usize = 1 << 15;

/// Bytes of a page of what functions look at: each of them holds a few while it goes through a file.
const PAGES: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 20;
/// Pages that the operator's memory has room for, at least.
const ROOM: usize = 32;

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
    /// Types of the arguments.
    types: Arc<[LogicalType]>,
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
    /// A bit for each row: it begins a group of peers.
    pub peers: Bitmap,
    /// All functions' arguments, flat.
    pub arguments: BatchQueue,
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
        let types: Arc<[_]> = keys.arguments.iter().map(|argument| argument.logical(types)).collect();
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
            chunk: Chunk::new(&passed, &types, context),
            passed,
            types,
            ended: false,
        }
    }

    /// Takes a batch; a chunk that it completes.
    fn take(&mut self, batch: &Batch) -> Result<Option<Chunk>> {
        let compute = |of: &mut [Evaluator]| {
            of.iter_mut().map(|evaluator| evaluator.evaluate(batch)).collect::<Result<Vec<_>>>()
        };
        let (partition, order) = (compute(&mut self.partition)?, compute(&mut self.order)?);
        let arguments = compute(&mut self.arguments)?.iter().map(flat).collect();
        let arguments = Batch::new(batch.rows, arguments);
        let starts = self.partitions.next(&partition, batch.rows, None)?;
        let peers = self.peers.next(&order, batch.rows, Some(starts))?;
        let columns = self.passed.kept().map(|(at, _)| batch.columns.get(at).cloned());
        let columns =
            columns.collect::<Option<Vec<_>>>().ok_or(Error::Decline("column outside its input"))?;
        let passed = Batch::new(batch.rows, columns);
        let cut = starts.iter().rposition(|&start| start).filter(|&cut| self.chunk.rows + cut >= CHUNK);
        let Some(cut) = cut else {
            self.chunk.append(passed, arguments, starts, peers)?;
            return Ok(None);
        };
        let halves = |from: usize, len: usize| (passed.slice(from, len), arguments.slice(from, len));
        let (before, after) = (halves(0, cut), halves(cut, batch.rows - cut));
        let ((starts, next_starts), (peers, next_peers)) = (starts.split_at(cut), peers.split_at(cut));
        self.chunk.append(before.0, before.1, starts, peers)?;
        let next = Chunk::new(&self.passed, &self.types, &self.context);
        let complete = std::mem::replace(&mut self.chunk, next);
        self.chunk.append(after.0, after.1, next_starts, next_peers)?;
        Ok(Some(complete))
    }
}

impl Chunk {
    fn new(passed: &Passed, arguments: &[LogicalType], context: &Context) -> Self {
        let types: Vec<_> = passed.kept().map(|(_, logical)| logical).collect();
        let settings = &context.settings;
        let memory = settings.memory / 2;
        let page = (memory / ROOM).clamp(*PAGES.start(), *PAGES.end());
        Self {
            rows: 0,
            partitions: Vec::new(),
            peers: Bitmap::new(),
            arguments: BatchQueue::new(arguments, memory, settings.temp_files.clone()).with_pages(page),
            passing: BatchQueue::new(&types, memory, settings.temp_files.clone()),
        }
    }

    fn append(&mut self, passing: Batch, arguments: Batch, starts: &[bool], peers: &[bool]) -> Result<()> {
        let rows = passing.rows;
        if rows == 0 {
            return Ok(());
        }
        let Some(first) = u32::try_from(self.rows + rows).ok().map(|_| self.rows as u32) else {
            return Err(Error::Decline("a partition of 4 billion rows"));
        };
        self.partitions.extend((first..).zip(starts).filter(|(_, flag)| **flag).map(|(row, _)| row));
        peers.iter().for_each(|&flag| self.peers.push(flag));
        self.rows += rows;
        self.arguments.push(arguments)?;
        self.passing.push(passing)
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
                    let next = Chunk::new(&self.passed, &self.types, &self.context);
                    Some(std::mem::replace(&mut self.chunk, next)).filter(|chunk| chunk.rows > 0)
                }
            };
            if let Some(chunk) = complete {
                let (spec, passed, types) = (&self.spec, &self.passed, &self.types);
                return Ok(Some(Box::new(WindowUnit::new(chunk, spec, passed, types)?)));
            }
        }
        Ok(None)
    }

    fn memory(&self) -> usize {
        self.chunk.arguments.bytes() + self.chunk.passing.bytes()
    }

    fn is_ordered(&self) -> bool {
        true
    }
}
