//! Running a plan: builds its pipelines and drives them.
//!
//! The host makes an `Execution` and pulls batches from it on its main thread. Pipelines run when somebody asks for their rows, so a breaker (sort, aggregate, the build side
//! of a join) runs all of its input at the first pull. Invariant: sources are asked on the main thread only.

use std::collections::VecDeque;
use std::sync::Arc;

use vector::LogicalType;

use crate::operators;
use crate::pipeline::Breaker;
use crate::{
    Batch, Error, Host, Pipeline, Plan, Result, SharedTempFiles, Sink, Source, Step, Transform, Unit,
};

/// Limits of one execution.
pub struct Settings {
    /// Bytes that one operator, all threads together, may hold before it spills.
    pub memory: usize,
    /// Threads that compute, the main thread among them; at least 1.
    pub threads: usize,
    /// Where spilled rows go.
    pub temp_files: Option<SharedTempFiles>,
}

/// What a pipeline needs while it runs.
pub struct Runner<'a> {
    /// The host.
    pub host: &'a mut dyn Host,
    /// Limits.
    pub settings: &'a Arc<Settings>,
}

impl<'a> Runner<'a> {
    /// A runner on the host's main thread.
    pub fn new(host: &'a mut dyn Host, settings: &'a Arc<Settings>) -> Self {
        Self { host, settings }
    }

    /// Runs all rows of a pipeline into a sink.
    pub fn run(&mut self, mut pipeline: Pipeline, sink: &dyn Sink) -> Result<()> {
        let factories = std::mem::take(&mut pipeline.transforms);
        for factory in &factories {
            factory.prepare(self)?;
        }
        if factories.is_empty()
            && let Some(needs) = sink.wants_summary()
        {
            pipeline.source.allow_summaries(&needs);
        }
        let mut transforms = factories.iter().map(|factory| factory.make()).collect::<Result<Vec<_>>>()?;
        let mut local = sink.make()?;
        let mut wanted = true;
        'units: while let Some(mut unit) = pipeline.source.next_unit(self.host)? {
            loop {
                self.host.check_interrupts()?;
                match unit.next()? {
                    Step::Done => break,
                    Step::Summary(summary) => local.push_summary(summary)?,
                    Step::Batch(batch) => push(&mut transforms, batch, &mut |batch| {
                        wanted = wanted && local.push(batch)?;
                        Ok(())
                    })?,
                }
                if !wanted {
                    break 'units;
                }
            }
        }
        for at in 0..factories.len() {
            while wanted && let Some(batch) = factories.get(at).map_or(Ok(None), |factory| factory.rest())? {
                self.host.check_interrupts()?;
                push(transforms.get_mut(at + 1..).unwrap_or_default(), batch, &mut |batch| {
                    wanted = wanted && local.push(batch)?;
                    Ok(())
                })?;
            }
        }
        local.finish()
    }
}

/// Sends a batch through transforms into `end`.
fn push(
    transforms: &mut [Box<dyn Transform>],
    batch: Batch,
    end: &mut dyn FnMut(Batch) -> Result<()>,
) -> Result<()> {
    if batch.rows == 0 {
        return Ok(());
    }
    match transforms.split_first_mut() {
        Some((first, rest)) => first.push(batch, &mut |batch| push(rest, batch, end)),
        None => end(batch),
    }
}

/// A plan that is running.
pub struct Execution {
    pipeline: Pipeline,
    transforms: Option<Vec<Box<dyn Transform>>>,
    unit: Option<Box<dyn Unit>>,
    ready: VecDeque<Batch>,
    rest: usize,
    ended: bool,
    settings: Arc<Settings>,
    types: Vec<LogicalType>,
}

impl Execution {
    /// Builds the pipelines of a plan over these sources. Nothing runs yet.
    ///
    /// # Errors
    /// `Decline` for a plan that names a source twice or one that is not there, or an operator that cannot do what it asks.
    pub fn new(plan: &Plan, sources: Vec<Box<dyn Source>>, settings: Settings) -> Result<Self> {
        let settings = Arc::new(settings);
        let mut sources = sources.into_iter().map(Some).collect::<Vec<_>>();
        let pipeline = build(plan, &mut sources, &settings)?;
        let types = plan.types();
        Ok(Self {
            pipeline,
            transforms: None,
            unit: None,
            ready: VecDeque::new(),
            rest: 0,
            ended: false,
            settings,
            types,
        })
    }

    /// The types of the columns it gives.
    pub fn types(&self) -> &[LogicalType] {
        &self.types
    }

    /// The next rows, None at the end.
    pub fn next(&mut self, host: &mut dyn Host) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            host.check_interrupts()?;
            if self.transforms.is_none() {
                for factory in &self.pipeline.transforms {
                    factory.prepare(&mut Runner::new(host, &self.settings))?;
                }
                let made = self.pipeline.transforms.iter().map(|factory| factory.make());
                self.transforms = Some(made.collect::<Result<Vec<_>>>()?);
            }
            let Some(transforms) = &mut self.transforms else { return Err(Error::Decline("no transforms")) };
            let ready = &mut self.ready;
            let mut keep = |batch| {
                ready.push_back(batch);
                Ok(())
            };
            if self.rest == 0 {
                if self.unit.is_none() {
                    self.unit = self.pipeline.source.next_unit(host)?;
                }
                match &mut self.unit {
                    Some(unit) => match unit.next()? {
                        Step::Batch(batch) => push(transforms, batch, &mut keep)?,
                        Step::Summary(_) => return Err(Error::Decline("summary of rows that are wanted")),
                        Step::Done => self.unit = None,
                    },
                    None => self.rest = 1,
                }
                continue;
            }
            match self.pipeline.transforms.get(self.rest - 1) {
                None => self.ended = true,
                Some(factory) => match factory.rest()? {
                    Some(batch) => {
                        push(transforms.get_mut(self.rest..).unwrap_or_default(), batch, &mut keep)?;
                    }
                    None => self.rest += 1,
                },
            }
        }
    }
}

/// The pipeline whose rows are those of a plan.
pub(crate) fn build(
    plan: &Plan,
    sources: &mut [Option<Box<dyn Source>>],
    settings: &Arc<Settings>,
) -> Result<Pipeline> {
    Ok(match plan {
        Plan::Scan { source, .. } => {
            let taken = sources.get_mut(*source).and_then(Option::take);
            Pipeline::new(taken.ok_or(Error::Decline("source"))?)
        }
        Plan::Filter { input, condition } => {
            let mut pipeline = build(input, sources, settings)?;
            pipeline.transforms.push(operators::filter(condition));
            pipeline
        }
        Plan::Project { input, expressions } => {
            let mut pipeline = build(input, sources, settings)?;
            pipeline.transforms.push(operators::project(expressions));
            pipeline
        }
        Plan::Aggregate { input, .. } => {
            let sink = operators::aggregate(plan, settings)?;
            breaker(build(input, sources, settings)?, sink, settings)
        }
        Plan::Sort { input, .. } => {
            let sink = operators::sort(plan, settings)?;
            breaker(build(input, sources, settings)?, sink, settings)
        }
        Plan::Limit { input, .. } => {
            let sink = operators::limit(plan)?;
            breaker(build(input, sources, settings)?, sink, settings)
        }
        Plan::Window { input, .. } => {
            let sink = operators::window(plan, settings)?;
            breaker(build(input, sources, settings)?, sink, settings)
        }
        Plan::Join { left, right, .. } => {
            let right = build(right, sources, settings)?;
            let mut pipeline = build(left, sources, settings)?;
            let probe = operators::join(plan, right, &mut pipeline, settings)?;
            pipeline.transforms.push(probe);
            pipeline
        }
        Plan::Append { inputs } => {
            let parts = inputs.iter().map(|input| build(input, sources, settings));
            Pipeline::new(operators::append(parts.collect::<Result<Vec<_>>>()?))
        }
    })
}

fn breaker(pipeline: Pipeline, sink: Arc<dyn Sink>, settings: &Arc<Settings>) -> Pipeline {
    Pipeline::new(Box::new(Breaker::new(pipeline, sink, Arc::clone(settings))))
}
