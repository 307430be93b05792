//! The rows of several pipelines, one after the other, as a source.
//!
//! `execution` makes it for `Plan::Append`. A unit of a part is handed out together with transforms of that
//! part, so that any thread can run it. A pool keeps the transforms, because what they remember between
//! batches is worth keeping. Some parts have rows that come after all others (the rest of a right join). This
//! file cannot tell when other threads are done with the units of such a part, so the part runs on the main
//! thread.
//!
//! A sort may want the first rows only (`Source::rank`). Then the part whose next rows can come first is
//! always asked next, and all parts have one bound.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use vector::Predicate;

use crate::pipeline::{Context, Pull, PushQueue};
use crate::{Edge, Error, Host, Members, Pipeline, Ranking, Result, Runner, Source, Step, SummaryNeed, Unit};

/// Transforms that no unit uses just now.
type IdleQueues = Arc<Mutex<Vec<PushQueue>>>;

/// The rows of several pipelines, one after the other.
pub(crate) fn append(parts: Vec<Pipeline>, context: &Context) -> Box<dyn Source> {
    let parts = parts.into_iter().map(Part::new).collect();
    Box::new(Append { parts, bound: None, started: false, context: context.clone() })
}

struct Append {
    /// With a bound, and once started, in the order of their edges.
    parts: VecDeque<Part>,
    /// The bound up to which a sort wants rows, if some part asks it.
    bound: Option<Arc<dyn Ranking>>,
    /// Parts know their edges.
    started: bool,
    context: Context,
}

struct Part {
    pipeline: Pipeline,
    state: State,
    /// Whether the part asks the bound.
    ranked: bool,
    /// How early in the sort's order the part's next rows can come.
    edge: Edge,
}

impl Append {
    /// Has all parts that ask the bound find out how early their rows can come.
    fn start(&mut self, bound: &dyn Ranking, host: &mut dyn Host) -> Result<()> {
        let mut parts = Vec::with_capacity(self.parts.len());
        for mut part in self.parts.drain(..) {
            if part.start(host, &self.context)? {
                parts.push(part);
            }
        }
        parts.sort_by(|a, b| bound.compare(&a.edge, &b.edge));
        self.parts = parts.into();
        self.started = true;
        Ok(())
    }

    /// The next unit of the part whose rows can come first.
    fn next_first(&mut self, bound: &dyn Ranking, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        if !self.started {
            self.start(bound, host)?;
        }
        while let Some(mut part) = self.parts.pop_front() {
            let unit = part.next_unit(host, &self.context)?;
            if unit.is_some() {
                if part.look()? {
                    let before = |other: &Part| bound.compare(&other.edge, &part.edge).is_lt();
                    self.parts.insert(self.parts.partition_point(before), part);
                }
                return Ok(unit);
            }
        }
        Ok(None)
    }
}

enum State {
    /// Its first unit was not asked for.
    Waiting,
    /// Units go out with transforms of this pool.
    Running(IdleQueues),
    /// On the main thread.
    Alone(Pull),
}

impl Source for Append {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        if let Some(bound) = self.bound.clone() {
            return self.next_first(bound.as_ref(), host);
        }
        while let Some(part) = self.parts.front_mut() {
            if let Some(unit) = part.next_unit(host, &self.context)? {
                return Ok(Some(unit));
            }
            self.parts.pop_front();
        }
        Ok(None)
    }

    fn narrow(&mut self, predicate: Predicate) {
        for part in &mut self.parts {
            let columns = |column| part.pipeline.source_column(column);
            let mut predicate = predicate.clone();
            if predicate.rename(&columns) {
                part.pipeline.source.narrow(predicate);
            }
        }
    }

    fn narrow_members(&mut self, column: usize, members: &Arc<dyn Members>) -> bool {
        let mut all = true;
        for part in &mut self.parts {
            let asks = part.pipeline.source_column(column);
            all &= asks.is_some_and(|column| part.pipeline.source.narrow_members(column, members));
        }
        all
    }

    fn rank(&mut self, column: usize, bound: &Arc<dyn Ranking>) -> bool {
        for part in &mut self.parts {
            // Work before a part's first row runs for one part at a time. So a part with such work is not
            // asked how early its rows come.
            let alone = !part.pipeline.builds.is_empty()
                || part.pipeline.transforms.iter().any(|transform| transform.has_rest());
            let column = part.pipeline.source_column(column).filter(|_| !alone);
            part.ranked = column.is_some_and(|column| part.pipeline.source.rank(column, bound));
        }
        let any = self.parts.iter().any(|part| part.ranked);
        self.bound = any.then(|| Arc::clone(bound));
        any
    }

    fn needs_host(&self) -> bool {
        self.parts.iter().any(|part| part.pipeline.needs_host())
    }

    fn is_ordered(&self) -> bool {
        self.parts.iter().any(|part| part.pipeline.source.is_ordered())
    }

    fn allow_summaries(&mut self, columns: &[SummaryNeed]) {
        for part in self.parts.iter_mut().filter(|part| part.pipeline.transforms.is_empty()) {
            part.pipeline.source.allow_summaries(columns);
        }
    }
}

impl Part {
    const fn new(pipeline: Pipeline) -> Self {
        Self { pipeline, state: State::Waiting, ranked: false, edge: Edge::Anywhere }
    }

    /// Prepares a part that asks the bound. False: no row comes of it.
    fn start(&mut self, host: &mut dyn Host, context: &Context) -> Result<bool> {
        if !self.ranked {
            return Ok(true);
        }
        if !self.pipeline.prepare(&mut Runner::new(host, context))? {
            return Ok(false);
        }
        self.state = State::Running(Arc::default());
        self.look()
    }

    /// Asks how early the next rows can come. False: there are none.
    fn look(&mut self) -> Result<bool> {
        if self.ranked {
            match self.pipeline.source.edge()? {
                Some(edge) => self.edge = edge,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn next_unit(&mut self, host: &mut dyn Host, context: &Context) -> Result<Option<Box<dyn Unit>>> {
        if let State::Waiting = self.state {
            if !self.pipeline.prepare(&mut Runner::new(host, context))? {
                return Ok(None);
            }
            self.state = match self.pipeline.transforms.iter().any(|transform| transform.has_rest()) {
                true => State::Alone(Pull::of_prepared(&self.pipeline)?),
                false => State::Running(Arc::default()),
            };
        }
        match &mut self.state {
            State::Waiting => Ok(None),
            State::Running(pool) => {
                let Some(unit) = self.pipeline.source.next_unit(host)? else { return Ok(None) };
                if self.pipeline.transforms.is_empty() {
                    return Ok(Some(unit));
                }
                let pool = Arc::clone(pool);
                let pooled = pool.lock().map_err(|_| Error::Decline("a thread failed"))?.pop();
                let queue = match pooled {
                    Some(queue) => queue,
                    None => PushQueue::new(self.pipeline.make_transforms()?),
                };
                Ok(Some(Box::new(PartUnit { unit, queue: Some(queue), pool })))
            }
            State::Alone(pull) => Ok(match pull.next(&mut self.pipeline, host, context)? {
                Some(batch) => Some(Box::new(Some(batch))),
                None => None,
            }),
        }
    }
}

/// A unit of a part and what its rows go through.
struct PartUnit {
    unit: Box<dyn Unit>,
    /// Taken from the pool and put back at the end.
    queue: Option<PushQueue>,
    pool: IdleQueues,
}

impl Unit for PartUnit {
    fn next(&mut self) -> Result<Step> {
        let Some(queue) = &mut self.queue else { return Ok(Step::Done) };
        loop {
            if let Some(batch) = queue.next(&mut || Ok(()))? {
                return Ok(Step::Batch(batch));
            }
            match self.unit.next()? {
                // An empty batch lets the caller check whether to go on.
                Step::Batch(batch) if batch.rows == 0 => return Ok(Step::Batch(batch)),
                Step::Batch(batch) => queue.put(batch, 0),
                Step::Summary(_) => return Err(Error::Decline("summary of rows that are wanted")),
                Step::Done => {
                    if let (Ok(mut pool), Some(queue)) = (self.pool.lock(), self.queue.take()) {
                        pool.push(queue);
                    }
                    return Ok(Step::Done);
                }
            }
        }
    }
}
