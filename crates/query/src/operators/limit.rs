//! OFFSET and LIMIT: the sink of `Plan::Limit`. It keeps the rows that are wanted and says when it has them,
//! which ends the pipeline.

use std::any::Any;
use std::sync::{Arc, Mutex};

use crate::row_container::BatchQueue;
use crate::{Batch, Error, Host, Plan, Result, Settings, Sink, SinkLocal, Source, Unit};

/// The shared part.
pub struct Limit {
    state: Arc<Mutex<State>>,
    offset: u64,
    limit: Option<u64>,
}

struct State {
    /// Rows to leave out yet.
    skip: u64,
    /// Rows wanted yet.
    left: u64,
    /// None once they were taken out.
    kept: Option<BatchQueue>,
}

impl Limit {
    /// The sink of a limit plan.
    pub fn new(plan: &Plan, settings: &Settings) -> Result<Self> {
        let Plan::Limit { offset, limit, .. } = plan else { return Err(Error::Decline("not a limit")) };
        let kept = BatchQueue::new(&plan.types(), settings.memory, settings.temp_files.clone());
        let state = State { skip: *offset, left: limit.unwrap_or(u64::MAX), kept: Some(kept) };
        Ok(Self { state: Arc::new(Mutex::new(state)), offset: *offset, limit: *limit })
    }
}

const POISONED: Error = Error::Decline("a thread panicked");

impl Sink for Limit {
    fn make(&self) -> Result<Box<dyn SinkLocal>> {
        Ok(Box::new(Local { state: Arc::clone(&self.state), held: 0 }))
    }

    fn complete(&self) -> Result<Box<dyn Source>> {
        let kept = self.state.lock().map_err(|_| POISONED)?.kept.take();
        Ok(Box::new(Kept(kept.ok_or(Error::Decline("rows of a limit, twice"))?)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> String {
        match self.limit {
            Some(limit) => format!("Limit: {limit} after {}", self.offset),
            None => format!("Limit: all after {}", self.offset),
        }
    }
}

struct Local {
    state: Arc<Mutex<State>>,
    /// The bytes that this thread has added to the memory held, less the bytes it has freed by spilling. The
    /// sum over all threads is the memory held.
    held: usize,
}

impl SinkLocal for Local {
    fn push(&mut self, batch: Batch) -> Result<bool> {
        let mut state = self.state.lock().map_err(|_| POISONED)?;
        let rows = batch.rows as u64;
        let skipped = state.skip.min(rows);
        let taken = state.left.min(rows - skipped);
        state.skip -= skipped;
        state.left -= taken;
        if taken > 0
            && let Some(kept) = &mut state.kept
        {
            let before = kept.bytes();
            kept.push(batch.slice(skipped as usize, taken as usize))?;
            self.held = self.held.wrapping_add(kept.bytes()).wrapping_sub(before);
        }
        Ok(state.left > 0)
    }

    fn memory(&self) -> usize {
        self.held
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct Kept(BatchQueue);

impl Source for Kept {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        Ok(self.0.read()?.map(|batch| Box::new(Some(batch)) as Box<dyn Unit>))
    }
}
