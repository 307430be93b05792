//! Running a pipeline into its sink.

use std::sync::Arc;

use super::pool::{Job, Lane, Pool};
use super::push::push;
use super::{ALONE, Context, Pipeline, Settings, Sink, TransformFactory};
use crate::{Host, Result};

/// What a pipeline needs while it runs.
pub struct Runner<'a> {
    /// The host.
    pub host: &'a mut dyn Host,
    /// Limits.
    pub settings: &'a Arc<Settings>,
    pool: &'a Arc<Pool>,
}

impl<'a> Runner<'a> {
    /// A runner on the host's main thread.
    pub(crate) fn new(host: &'a mut dyn Host, context: &'a Context) -> Self {
        Self { host, settings: &context.settings, pool: &context.pool }
    }

    /// Runs all rows of a pipeline into a sink.
    pub fn run(&mut self, mut pipeline: Pipeline, sink: &dyn Sink) -> Result<()> {
        let wanted = pipeline.prepare(self)?;
        if pipeline.transforms.is_empty()
            && let Some(needs) = sink.wants_summary()
        {
            pipeline.source.allow_summaries(&needs);
        }
        let mut lane = lane(&pipeline, sink)?;
        let mut job = None;
        if wanted && self.run_units(&mut pipeline, sink, &mut lane, &mut job)? {
            self.run_rest(&pipeline.transforms, &mut lane)?;
        }
        match job {
            None => lane.local.finish(),
            Some(job) => job.finish(lane, self.host),
        }
    }

    /// Runs the source's units, with workers where there are more than a few. False: the sink wants no more.
    fn run_units(
        &mut self,
        pipeline: &mut Pipeline,
        sink: &dyn Sink,
        lane: &mut Lane,
        job: &mut Option<Job>,
    ) -> Result<bool> {
        let mut parallel = self.pool.may_start() && pipeline.is_parallel() && !sink.needs_host();
        let mut units = 0;
        while let Some(unit) = pipeline.source.next_unit(self.host)? {
            if let Some(job) = job
                && !job.check()?
            {
                break;
            }
            units += 1;
            if parallel && units > ALONE && job.is_none() {
                let workers = self.pool.start(self.host);
                parallel = workers > 0;
                if parallel {
                    let mut make = |_: &Arc<_>| self::lane(pipeline, sink);
                    *job = Some(Job::new(self.pool, workers, &mut make)?);
                }
            }
            match job {
                Some(job) if job.has_room() => job.submit(unit),
                _ => {
                    if !run_here(self.host, lane, unit, job.as_ref())? {
                        break;
                    }
                }
            }
        }
        let Some(job) = job else { return Ok(lane.wanted) };
        loop {
            self.host.check_interrupts()?;
            if !job.check()? || !lane.wanted {
                job.end();
            } else if let Some(unit) = job.take_unit() {
                run_here(self.host, lane, unit, Some(job))?;
                continue;
            }
            if job.is_idle() {
                return job.check();
            }
            job.wait();
        }
    }

    /// Runs the rows that transforms have left when all others were seen.
    fn run_rest(&mut self, factories: &[Arc<dyn TransformFactory>], lane: &mut Lane) -> Result<()> {
        for (at, factory) in factories.iter().enumerate() {
            while lane.wanted
                && let Some(batch) = factory.rest()?
            {
                self.host.check_interrupts()?;
                let Lane { transforms, local, wanted } = lane;
                push(transforms.get_mut(at + 1..).unwrap_or_default(), batch, &mut |batch| {
                    if batch.rows > 0 {
                        *wanted = *wanted && local.push(batch)?;
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

fn lane(pipeline: &Pipeline, sink: &dyn Sink) -> Result<Lane> {
    Ok(Lane { transforms: pipeline.make_transforms()?, local: sink.make()?, wanted: true })
}

/// Runs a unit on the main thread. False: no more rows are wanted.
fn run_here(
    host: &mut dyn Host,
    lane: &mut Lane,
    unit: Box<dyn crate::Unit>,
    job: Option<&Job>,
) -> Result<bool> {
    let outcome = lane.run(unit, &mut || {
        host.check_interrupts()?;
        job.map_or(Ok(()), Job::stopped)
    });
    match (outcome, job) {
        // Stopped by a worker, or an error beside a worker's: the first one is told.
        (Err(error), Some(job)) => match job.check() {
            Ok(false) if error == crate::Error::Cancelled => Ok(false),
            Ok(_) => Err(error),
            Err(first) => Err(first),
        },
        (outcome, _) => outcome,
    }
}
