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
        let mut wanted = pipeline.prepare(self)?;
        let factories = std::mem::take(&mut pipeline.transforms);
        if factories.is_empty()
            && let Some(needs) = sink.wants_summary()
        {
            pipeline.source.allow_summaries(&needs);
        }
        let mut transforms = factories.iter().map(|factory| factory.make()).collect::<Result<Vec<_>>>()?;
        let mut local = sink.make()?;
        'units: while wanted && let Some(mut unit) = pipeline.source.next_unit(self.host)? {
            loop {
                self.host.check_interrupts()?;
                match unit.next()? {
                    Step::Done => break,
                    Step::Summary(summary) => local.push_summary(summary)?,
                    Step::Batch(batch) => push(&mut transforms, batch, &mut |batch| match batch.rows {
                        0 => self.host.check_interrupts(),
                        _ => {
                            wanted = wanted && local.push(batch)?;
                            Ok(())
                        }
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
                    if batch.rows > 0 {
                        wanted = wanted && local.push(batch)?;
                    }
                    Ok(())
                })?;
            }
        }
        local.finish()
    }
}

/// Sends a batch through transforms into `end`. An empty one goes there at once: a transform that works long without giving rows emits it so that the host can look
/// whether to go on.
pub(crate) fn push(
    transforms: &mut [Box<dyn Transform>],
    batch: Batch,
    end: &mut dyn FnMut(Batch) -> Result<()>,
) -> Result<()> {
    if batch.rows == 0 {
        return end(batch);
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
        let types = plan.types();
        let pipeline = build(plan, &vec![true; types.len()], &mut sources, &settings)?;
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
                if !self.pipeline.prepare(&mut Runner::new(host, &self.settings))? {
                    self.ended = true;
                    continue;
                }
                let made = self.pipeline.transforms.iter().map(|factory| factory.make());
                self.transforms = Some(made.collect::<Result<Vec<_>>>()?);
            }
            let Some(transforms) = &mut self.transforms else { return Err(Error::Decline("no transforms")) };
            let ready = &mut self.ready;
            if self.rest == 0 && self.unit.is_none() {
                self.unit = self.pipeline.source.next_unit(host)?;
            }
            let mut keep = |batch: Batch| {
                if batch.rows == 0 {
                    return host.check_interrupts();
                }
                ready.push_back(batch);
                Ok(())
            };
            if self.rest == 0 {
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

/// The pipeline whose rows are those of a plan. `wanted` says which of its columns are read; the others may hold anything of their type.
pub(crate) fn build(
    plan: &Plan,
    wanted: &[bool],
    sources: &mut [Option<Box<dyn Source>>],
    settings: &Arc<Settings>,
) -> Result<Pipeline> {
    Ok(match plan {
        Plan::Scan { source, .. } => {
            let taken = sources.get_mut(*source).and_then(Option::take);
            Pipeline::new(taken.ok_or(Error::Decline("source"))?)
        }
        Plan::Filter { input, condition } => {
            let mut wanted = wanted.to_vec();
            condition.mark_columns(&mut wanted);
            let mut pipeline = build(input, &wanted, sources, settings)?;
            pipeline.transforms.push(operators::filter(condition));
            pipeline
        }
        Plan::Project { input, expressions } => {
            let mut wanted = vec![false; input.types().len()];
            expressions.iter().for_each(|expression| expression.mark_columns(&mut wanted));
            let mut pipeline = build(input, &wanted, sources, settings)?;
            pipeline.transforms.push(operators::project(expressions));
            pipeline
        }
        Plan::Aggregate { input, keys, aggregates, .. } => {
            let mut wanted = vec![false; input.types().len()];
            let arguments = aggregates.iter().flat_map(|aggregate| {
                let order = aggregate.order_by.iter().map(|key| &key.expression);
                aggregate.arguments.iter().chain(&aggregate.filter).chain(order)
            });
            keys.iter().chain(arguments).for_each(|expression| expression.mark_columns(&mut wanted));
            let sink = operators::aggregate(plan, settings)?;
            breaker(build(input, &wanted, sources, settings)?, sink, settings)
        }
        Plan::Sort { input, keys, .. } => {
            let mut wanted = wanted.to_vec();
            keys.iter().for_each(|key| key.expression.mark_columns(&mut wanted));
            let sink = operators::sort(plan, settings)?;
            breaker(build(input, &wanted, sources, settings)?, sink, settings)
        }
        Plan::Limit { input, .. } => {
            let sink = operators::limit(plan)?;
            breaker(build(input, wanted, sources, settings)?, sink, settings)
        }
        Plan::Window { input, .. } => {
            let sink = operators::window(plan, settings)?;
            breaker(build(input, &vec![true; input.types().len()], sources, settings)?, sink, settings)
        }
        Plan::Join { left, right, keys, condition, .. } => {
            let width = left.types().len();
            let mut wanted_here = wanted.to_vec();
            wanted_here.resize(width + right.types().len(), false);
            condition.iter().for_each(|condition| condition.mark_columns(&mut wanted_here));
            let (wanted_left, wanted_right) = wanted_here.split_at_mut(width);
            for (left_key, right_key) in keys {
                left_key.mark_columns(wanted_left);
                right_key.mark_columns(wanted_right);
            }
            let right = build(right, wanted_right, sources, settings)?;
            let mut pipeline = build(left, wanted_left, sources, settings)?;
            operators::join(plan, right, &mut pipeline, wanted, settings)?;
            pipeline
        }
        Plan::Append { inputs } => {
            let parts = inputs.iter().map(|input| build(input, wanted, sources, settings));
            Pipeline::new(operators::append(parts.collect::<Result<Vec<_>>>()?, settings))
        }
    })
}

fn breaker(pipeline: Pipeline, sink: Arc<dyn Sink>, settings: &Arc<Settings>) -> Pipeline {
    Pipeline::new(Box::new(Breaker::new(pipeline, sink, Arc::clone(settings))))
}
