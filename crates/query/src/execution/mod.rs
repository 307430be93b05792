//! Running a plan: builds its pipelines and drives them.
//!
//! The host makes an `Execution` and pulls batches from it on its main thread. A pipeline runs when its rows
//! are asked for. So a breaker (sort, aggregate, the build side of a join) runs all of its input at the first
//! pull. `build` makes the pipelines, `profile` measures them, and this file drives the topmost one, whose
//! rows go to the host. Invariant: sources are asked on the main thread only.

mod build;
mod profile;

use std::sync::Arc;

use vector::LogicalType;

use self::build::Builder;
pub use self::profile::{Figures, Profile};
use crate::pipeline::{ALONE, Context, Job, Lane, Pool, PushQueue};
use crate::{Batch, Error, Host, Pipeline, Plan, Result, Runner, Settings, Source, Step, Unit, interrupt};

/// A plan that is running. Dropping it ends what its threads do, and the threads.
pub struct Execution {
    // First: workers are done with the pipeline before the rest of it is dropped.
    running: Option<Running>,
    pipeline: Pipeline,
    ended: bool,
    context: Context,
    types: Vec<LogicalType>,
}

/// The topmost pipeline once it is prepared. Rows come from `queue`, the main thread's transforms, and from
/// the job's workers.
struct Running {
    job: Option<Job>,
    queue: PushQueue,
    unit: Option<Box<dyn Unit>>,
    parallel: bool,
    units: usize,
    source_ended: bool,
    rest: usize,
}

impl Execution {
    /// Builds the pipelines of a plan over these sources. Nothing runs yet.
    ///
    /// # Errors
    /// `Decline` for a plan that names a source twice or one that is not there, or an operator that cannot do
    /// what it asks.
    pub fn new(plan: &Plan, sources: Vec<Box<dyn Source>>, settings: Settings) -> Result<Self> {
        Self::measured(plan, sources, settings, None)
    }

    /// The same, with a profile of this very plan to be filled in.
    ///
    /// # Errors
    /// As `new`.
    pub fn measured(
        plan: &Plan,
        sources: Vec<Box<dyn Source>>,
        settings: Settings,
        profile: Option<Arc<Profile>>,
    ) -> Result<Self> {
        let pool = Pool::new(settings.threads);
        let context = Context { settings: Arc::new(settings), pool };
        let types = plan.types();
        let pipeline = Builder::new(sources, &context, profile).build(plan, &vec![true; types.len()])?;
        Ok(Self { running: None, pipeline, ended: false, context, types })
    }

    /// The types of the columns it gives.
    pub fn types(&self) -> &[LogicalType] {
        &self.types
    }

    /// The next rows, None at the end.
    pub fn next(&mut self, host: &mut dyn Host) -> Result<Option<Batch>> {
        if self.ended {
            return Ok(None);
        }
        let asking = interrupt::ask(host.interrupted());
        let next = self.advance(host);
        drop(asking);
        if !matches!(next, Ok(Some(_))) {
            // Nothing of it runs on after the end or an error.
            self.ended = true;
            self.running = None;
        }
        next
    }

    fn advance(&mut self, host: &mut dyn Host) -> Result<Option<Batch>> {
        host.check_interrupts()?;
        let running = match &mut self.running {
            Some(running) => running,
            None => {
                if !self.pipeline.prepare(&mut Runner::new(host, &self.context))? {
                    return Ok(None);
                }
                // The host takes rows in the order of an ordered source, whether it needs that or not.
                self.pipeline.keep_order = true;
                self.running.insert(Running {
                    job: None,
                    queue: PushQueue::new(self.pipeline.make_transforms()?),
                    unit: None,
                    parallel: self.context.pool.may_start() && self.pipeline.is_parallel(),
                    units: 0,
                    source_ended: false,
                    rest: 0,
                })
            }
        };
        running.advance(&mut self.pipeline, &self.context, host)
    }
}

impl Running {
    fn advance(
        &mut self,
        pipeline: &mut Pipeline,
        context: &Context,
        host: &mut dyn Host,
    ) -> Result<Option<Batch>> {
        loop {
            match self.queue.next(&mut || host.check_interrupts())? {
                Some(batch) if batch.rows > 0 => return Ok(Some(batch)),
                Some(_) => continue,
                None => {}
            }
            if let Some(job) = &self.job {
                job.check()?;
                // Workers get units first, so that they have work while the host reads rows.
                if !self.source_ended && job.has_room() {
                    match pipeline.source.next_unit(host)? {
                        Some(unit) => job.submit(unit),
                        None => self.source_ended = true,
                    }
                }
                let batch = job.ready();
                if batch.is_some() {
                    return Ok(batch);
                }
            }
            host.check_interrupts()?;
            if let Some(unit) = &mut self.unit {
                match unit.next()? {
                    Step::Batch(batch) => self.queue.put(batch, 0),
                    Step::Summary(_) => return Err(Error::Decline("summary of rows that are wanted")),
                    Step::Done => self.unit = None,
                }
            } else if !self.source_ended {
                match pipeline.source.next_unit(host)? {
                    Some(unit) => self.take(unit, pipeline, context, host)?,
                    None => self.source_ended = true,
                }
            } else if let Some(job) = &self.job
                && !job.is_idle()
            {
                match job.take_unit() {
                    Some(unit) => self.unit = Some(unit),
                    None => job.wait(),
                }
            } else if let Some(batch) = self.job.as_ref().and_then(Job::ready) {
                return Ok(Some(batch));
            } else {
                if let Some(job) = &self.job {
                    job.check()?;
                }
                let Some(factory) = pipeline.transforms.get(self.rest) else { return Ok(None) };
                match factory.rest()? {
                    Some(batch) => self.queue.put(batch, self.rest + 1),
                    None => self.rest += 1,
                }
            }
        }
    }

    /// A unit goes to the workers, or to the main thread when they have enough.
    fn take(
        &mut self,
        unit: Box<dyn Unit>,
        pipeline: &Pipeline,
        context: &Context,
        host: &mut dyn Host,
    ) -> Result<()> {
        self.units += 1;
        if self.parallel && self.job.is_none() && self.units > ALONE {
            let workers = context.pool.start(host);
            self.parallel = workers > 0;
            if self.parallel {
                self.job = Some(Job::new(&context.pool, workers, &mut |core| {
                    Ok(Lane {
                        transforms: pipeline.make_transforms()?,
                        local: Box::new(Arc::clone(core)),
                        wanted: true,
                    })
                })?);
            }
        }
        match &self.job {
            Some(job) if job.has_room() => job.submit(unit),
            _ => self.unit = Some(unit),
        }
        Ok(())
    }
}
