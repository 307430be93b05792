//! OFFSET and LIMIT: the sink of `Plan::Limit`. It keeps the rows that are wanted and says when it has them, which ends the pipeline.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::{Batch, Error, Host, Plan, Result, Sink, SinkLocal, Source, Unit};

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
    kept: VecDeque<Batch>,
}

impl Limit {
    /// The sink of a limit plan.
    pub fn new(plan: &Plan) -> Result<Self> {
        let Plan::Limit { offset, limit, .. } = plan else { return Err(Error::Decline("not a limit")) };
        let state = State { skip: *offset, left: limit.unwrap_or(u64::MAX), kept: VecDeque::new() };
        Ok(Self { state: Arc::new(Mutex::new(state)), offset: *offset, limit: *limit })
    }
}

const POISONED: Error = Error::Decline("a thread panicked");

impl Sink for Limit {
    fn make(&self) -> Result<Box<dyn SinkLocal>> {
        Ok(Box::new(Local(Arc::clone(&self.state))))
    }

    fn complete(&self) -> Result<Box<dyn Source>> {
        Ok(Box::new(Kept(std::mem::take(&mut self.state.lock().map_err(|_| POISONED)?.kept))))
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

struct Local(Arc<Mutex<State>>);

impl SinkLocal for Local {
    fn push(&mut self, batch: Batch) -> Result<bool> {
        let mut state = self.0.lock().map_err(|_| POISONED)?;
        let rows = batch.rows as u64;
        let skipped = state.skip.min(rows);
        let taken = state.left.min(rows - skipped);
        state.skip -= skipped;
        state.left -= taken;
        if taken > 0 {
            state.kept.push_back(batch.slice(skipped as usize, taken as usize));
        }
        Ok(state.left > 0)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct Kept(VecDeque<Batch>);

impl Source for Kept {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        Ok(self.0.pop_front().map(|batch| Box::new(Some(batch)) as Box<dyn Unit>))
    }
}
