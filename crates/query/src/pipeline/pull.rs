//! A pipeline whose rows are pulled on the main thread, batch by batch and in order.
//!
//! For operators that look at rows one after the other (windows), and for parts of an append that have rows
//! after all others.

use super::{Context, Pipeline, PushQueue, Runner};
use crate::{Batch, Error, Host, Result, Step, Unit};

/// Where such a pipeline stands.
#[derive(Default)]
pub(crate) struct Pull(State);

#[derive(Default)]
enum State {
    /// It was not prepared yet.
    #[default]
    Waiting,
    /// Transforms, the unit that runs, and whose rest comes next when there is no unit any more.
    Running {
        queue: PushQueue,
        unit: Option<Box<dyn Unit>>,
        rest: Option<usize>,
    },
    Ended,
}

impl Pull {
    /// Of a pipeline that was prepared.
    pub fn of_prepared(pipeline: &Pipeline) -> Result<Self> {
        let queue = PushQueue::new(pipeline.make_transforms()?);
        Ok(Self(State::Running { queue, unit: None, rest: None }))
    }

    /// The next rows of the pipeline, always the same one; None at the end. After a long time without a row
    /// an empty batch comes.
    pub fn next(
        &mut self,
        pipeline: &mut Pipeline,
        host: &mut dyn Host,
        context: &Context,
    ) -> Result<Option<Batch>> {
        if let State::Waiting = self.0 {
            *self = match pipeline.prepare(&mut Runner::new(host, context))? {
                true => Self::of_prepared(pipeline)?,
                false => Self(State::Ended),
            };
        }
        loop {
            let State::Running { queue, unit, rest } = &mut self.0 else { return Ok(None) };
            if let Some(batch) = queue.next(&mut || host.check_interrupts())? {
                return Ok(Some(batch));
            }
            host.check_interrupts()?;
            match (&mut *unit, &mut *rest) {
                (Some(part), _) => match part.next()? {
                    Step::Batch(batch) if pipeline.transforms.is_empty() => return Ok(Some(batch)),
                    Step::Batch(batch) => queue.put(batch, 0),
                    Step::Summary(_) => return Err(Error::Decline("summary of rows that are wanted")),
                    Step::Done => *unit = None,
                },
                (None, Some(at)) => match pipeline.transforms.get(*at) {
                    None => self.0 = State::Ended,
                    Some(factory) => match factory.rest()? {
                        Some(batch) => queue.put(batch, *at + 1),
                        None => *at += 1,
                    },
                },
                (None, None) => {
                    *unit = pipeline.source.next_unit(host)?;
                    if unit.is_none() {
                        *rest = Some(0);
                    }
                }
            }
        }
    }
}
