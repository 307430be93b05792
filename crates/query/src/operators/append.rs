//! The rows of several pipelines, one after the other, as a source.
//!
//! `execution` makes it for `Plan::Append`. A unit of a part is handed out together with transforms of that part, so that any thread can run it; transforms are kept in a pool,
//! because what they remember between batches is worth keeping. A part with rows that come after all others (the rest of a right join) cannot tell from here when
//! other threads are done with its units: it runs on the main thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use vector::Predicate;

use crate::execution::push;
use crate::{
    Batch, Error, Host, Members, Pipeline, Result, Runner, Settings, Source, Step, SummaryNeed, Transform,
    Unit,
};

type Transforms = Vec<Box<dyn Transform>>;

/// The rows of several pipelines, one after the other.
pub fn append(parts: Vec<Pipeline>, settings: &Arc<Settings>) -> Box<dyn Source> {
    let parts = parts.into_iter().map(|pipeline| Part { pipeline, state: State::Waiting }).collect();
    Box::new(Append { parts, settings: Arc::clone(settings) })
}

struct Append {
    parts: VecDeque<Part>,
    settings: Arc<Settings>,
}

struct Part {
    pipeline: Pipeline,
    state: State,
}

enum State {
    /// Its first unit was not asked for.
    Waiting,
    /// Units go out with transforms of this pool.
    Running(Arc<Mutex<Vec<Transforms>>>),
    /// On the main thread: transforms, rows that are ready, and where the rest goes on (0 while there are units).
    Alone { transforms: Transforms, ready: VecDeque<Batch>, rest: usize },
}

impl Source for Append {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        while let Some(part) = self.parts.front_mut() {
            if let Some(unit) = part.next_unit(host, &self.settings)? {
                return Ok(Some(unit));
            }
            self.parts.pop_front();
        }
        Ok(None)
    }

    fn narrow(&mut self, predicate: Predicate) {
        for part in &mut self.parts {
            let columns = |column| part.pipeline.source_column(column);
            if let Some(predicate) = moved(&predicate, &columns) {
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

    fn needs_host(&self) -> bool {
        self.parts.iter().any(|part| part.pipeline.needs_host())
    }

    fn allow_summaries(&mut self, columns: &[SummaryNeed]) {
        for part in self.parts.iter_mut().filter(|part| part.pipeline.transforms.is_empty()) {
            part.pipeline.source.allow_summaries(columns);
        }
    }
}

/// The predicate over other columns, if all of them are known.
fn moved(predicate: &Predicate, columns: &dyn Fn(usize) -> Option<usize>) -> Option<Predicate> {
    let all = |parts: &[Predicate]| parts.iter().map(|part| moved(part, columns)).collect::<Option<Vec<_>>>();
    Some(match predicate {
        Predicate::Always(value) => Predicate::Always(*value),
        Predicate::And(parts) => Predicate::And(all(parts)?),
        Predicate::Or(parts) => Predicate::Or(all(parts)?),
        Predicate::Compare { column, op, value } => {
            Predicate::Compare { column: columns(*column)?, op: *op, value: value.clone() }
        }
        Predicate::In { column, values } => {
            Predicate::In { column: columns(*column)?, values: values.clone() }
        }
        Predicate::IsNull { column } => Predicate::IsNull { column: columns(*column)? },
        Predicate::IsNotNull { column } => Predicate::IsNotNull { column: columns(*column)? },
        Predicate::StartsWith { column, prefix } => {
            Predicate::StartsWith { column: columns(*column)?, prefix: prefix.clone() }
        }
    })
}

impl Part {
    fn next_unit(&mut self, host: &mut dyn Host, settings: &Arc<Settings>) -> Result<Option<Box<dyn Unit>>> {
        if let State::Waiting = self.state {
            if !self.pipeline.prepare(&mut Runner::new(host, settings))? {
                return Ok(None);
            }
            self.state = match self.pipeline.transforms.iter().any(|transform| transform.has_rest()) {
                true => State::Alone { transforms: self.transforms()?, ready: VecDeque::new(), rest: 0 },
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
                let transforms = match pooled {
                    Some(transforms) => transforms,
                    None => self.transforms()?,
                };
                Ok(Some(Box::new(PartUnit { unit, transforms, pool, ready: VecDeque::new() })))
            }
            State::Alone { transforms, ready, rest } => loop {
                if let Some(batch) = ready.pop_front() {
                    return Ok(Some(Box::new(Some(batch))));
                }
                let factories = &self.pipeline.transforms;
                if *rest == 0 {
                    let Some(mut unit) = self.pipeline.source.next_unit(host)? else {
                        *rest = 1;
                        continue;
                    };
                    loop {
                        host.check_interrupts()?;
                        match unit.next()? {
                            Step::Done => break,
                            Step::Summary(_) => {
                                return Err(Error::Decline("summary of rows that are wanted"));
                            }
                            Step::Batch(batch) => {
                                push(transforms, batch, &mut |batch| keep(ready, batch, host))?
                            }
                        }
                    }
                    continue;
                }
                let Some(factory) = factories.get(*rest - 1) else { return Ok(None) };
                match factory.rest()? {
                    None => *rest += 1,
                    Some(batch) => {
                        let later = transforms.get_mut(*rest..).unwrap_or_default();
                        push(later, batch, &mut |batch| keep(ready, batch, host))?;
                    }
                }
            },
        }
    }

    fn transforms(&self) -> Result<Transforms> {
        self.pipeline.transforms.iter().map(|factory| factory.make()).collect()
    }
}

fn keep(ready: &mut VecDeque<Batch>, batch: Batch, host: &mut dyn Host) -> Result<()> {
    match batch.rows {
        0 => host.check_interrupts(),
        _ => {
            ready.push_back(batch);
            Ok(())
        }
    }
}

/// A unit of a part and what its rows go through.
struct PartUnit {
    unit: Box<dyn Unit>,
    transforms: Transforms,
    pool: Arc<Mutex<Vec<Transforms>>>,
    ready: VecDeque<Batch>,
}

impl Unit for PartUnit {
    fn next(&mut self) -> Result<Step> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Step::Batch(batch));
            }
            match self.unit.next()? {
                Step::Batch(batch) => {
                    let ready = &mut self.ready;
                    push(&mut self.transforms, batch, &mut |batch| {
                        ready.push_back(batch);
                        Ok(())
                    })?;
                }
                Step::Summary(_) => return Err(Error::Decline("summary of rows that are wanted")),
                Step::Done => {
                    if let Ok(mut pool) = self.pool.lock() {
                        pool.push(std::mem::take(&mut self.transforms));
                    }
                    return Ok(Step::Done);
                }
            }
        }
    }
}
