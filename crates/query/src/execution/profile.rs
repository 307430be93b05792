//! Measuring the operators of a plan, for EXPLAIN ANALYZE.
//!
//! A host that wants figures hands in a `Profile` of the plan; `build` then wraps what it makes for each
//! node. The figures of a node:
//! - time: the node's own, added up over all threads. The time of nodes below it that it calls on the same
//!   thread is subtracted.
//! - temporary files: the files that the node's own calls make.
//! - rows: the rows that come out.
//! - memory: the bytes that sinks and sources say that they hold, after each batch.
//!
//! Invariant: wrapping changes nothing but the time it takes to read the clock twice a batch.

use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use vector::Predicate;

use crate::pipeline::measure_spilled;
use crate::{
    Batch, Edge, Emit, Host, Members, Pipeline, Plan, Ranking, Result, RowFilter, Runner, Sink, SinkLocal,
    Source, Step, Summary, SummaryNeed, Transform, TransformFactory, Unit,
};

/// The figures measured of one node.
#[derive(Debug, Default)]
pub struct Figures {
    rows: AtomicU64,
    nanoseconds: AtomicU64,
    files: AtomicU64,
    spilled: AtomicU64,
    /// Bytes that its threads hold now, and held at most.
    held: AtomicU64,
    memory: AtomicU64,
}

thread_local! {
    /// Nanoseconds that were measured inside of what is being measured.
    static INSIDE: Cell<u64> = const { Cell::new(0) };
}

impl Figures {
    /// Rows that came out.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Time of its own, of all threads together.
    pub fn nanoseconds(&self) -> u64 {
        self.nanoseconds.load(Ordering::Relaxed)
    }

    /// Temporary files that it made.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Bytes that it wrote to them.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    /// Most bytes that it held, all threads together; 0 for operators that gather nothing.
    pub fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Notes how many bytes one of the node's threads holds now, and how many it held when it last reported.
    fn holds(&self, now: usize, before: &mut usize) {
        let (grown, before) = (now as u64, std::mem::replace(before, now) as u64);
        // Wraps where it shrinks, and back in the sum.
        let change = grown.wrapping_sub(before);
        let all = self.held.fetch_add(change, Ordering::Relaxed).wrapping_add(change);
        self.memory.fetch_max(all, Ordering::Relaxed);
    }

    fn count(&self, step: &Step) {
        let rows = match step {
            Step::Batch(batch) => batch.rows as u64,
            Step::Summary(summary) => summary.rows,
            Step::Done => 0,
        };
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Adds the time that `work` takes, except the time that other measurements inside it take.
    fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let outside = INSIDE.replace(0);
        let start = Instant::now();
        let (done, (files, bytes)) = measure_spilled(work);
        let all = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let own = all.saturating_sub(INSIDE.get());
        self.nanoseconds.fetch_add(own, Ordering::Relaxed);
        INSIDE.set(outside.saturating_add(all));
        self.files.fetch_add(files, Ordering::Relaxed);
        self.spilled.fetch_add(bytes, Ordering::Relaxed);
        done
    }
}

/// The figures of a plan's nodes.
#[derive(Debug, Default)]
pub struct Profile {
    nodes: Vec<Arc<Figures>>,
    /// By the address of a plan's node.
    places: HashMap<usize, usize>,
}

impl Profile {
    /// Nothing measured yet, for a plan that stays where it is until its execution has been made.
    pub fn of(plan: &Plan) -> Arc<Self> {
        let mut profile = Self::default();
        profile.enter(plan);
        Arc::new(profile)
    }

    fn enter(&mut self, plan: &Plan) {
        self.places.insert(address(plan), self.nodes.len());
        self.nodes.push(Arc::default());
        plan.inputs().into_iter().for_each(|input| self.enter(input));
    }

    /// One for each node: itself, then those of its inputs in order.
    pub fn nodes(&self) -> &[Arc<Figures>] {
        &self.nodes
    }

    fn figures(&self, plan: &Plan) -> Option<Arc<Figures>> {
        self.nodes.get(*self.places.get(&address(plan))?).cloned()
    }

    /// Measures what was made for a node that passes rows on.
    pub(super) fn wrap(&self, plan: &Plan, mut pipeline: Pipeline) -> Pipeline {
        let Some(figures) = self.figures(plan) else { return pipeline };
        match plan {
            Plan::Scan { .. } | Plan::Append { .. } | Plan::Window { .. } => {
                pipeline.source = Box::new(Measured::new(pipeline.source, figures));
            }
            Plan::Filter { .. } | Plan::Project { .. } | Plan::Repeat { .. } | Plan::Join { .. } => {
                if let Some(last) = pipeline.transforms.last_mut() {
                    *last = Arc::new(Measured::new(Arc::clone(last), Arc::clone(&figures)));
                }
                if matches!(plan, Plan::Join { .. })
                    && let Some(build) = pipeline.builds.last_mut()
                {
                    build.sink = Arc::new(Measured::new(Arc::clone(&build.sink), figures));
                }
            }
            // Their sinks are measured.
            Plan::Aggregate { .. }
            | Plan::GroupingSets { .. }
            | Plan::Sort { .. }
            | Plan::DistinctOn { .. }
            | Plan::Limit { .. } => {}
        }
        pipeline
    }

    /// Measures a node's sink.
    pub(super) fn wrap_sink(&self, plan: &Plan, sink: Arc<dyn Sink>) -> Arc<dyn Sink> {
        match self.figures(plan) {
            Some(figures) => Arc::new(Measured::new(sink, figures)),
            None => sink,
        }
    }
}

fn address(plan: &Plan) -> usize {
    std::ptr::from_ref(plan).addr()
}

/// An operator whose calls are measured.
struct Measured<T> {
    inner: T,
    figures: Arc<Figures>,
    /// Bytes that it held when it was last asked.
    held: usize,
}

impl<T> Measured<T> {
    const fn new(inner: T, figures: Arc<Figures>) -> Self {
        Self { inner, figures, held: 0 }
    }
}

impl Source for Measured<Box<dyn Source>> {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        let Self { inner, figures, held } = self;
        let unit = figures.time(|| inner.next_unit(host))?;
        figures.holds(inner.memory(), held);
        Ok(unit.map(|inner| Box::new(Measured::new(inner, Arc::clone(figures))) as Box<dyn Unit>))
    }

    fn narrow(&mut self, predicate: Predicate) {
        self.inner.narrow(predicate);
    }

    fn narrow_members(&mut self, column: usize, members: &Arc<dyn Members>) -> bool {
        self.inner.narrow_members(column, members)
    }

    fn rank(&mut self, column: usize, bound: &Arc<dyn Ranking>) -> bool {
        self.inner.rank(column, bound)
    }

    fn edge(&mut self) -> Result<Option<Edge>> {
        let Self { inner, figures, .. } = self;
        figures.time(|| inner.edge())
    }

    fn filter(&mut self, condition: &Arc<dyn RowFilter>) -> bool {
        self.inner.filter(condition)
    }

    fn needs_host(&self) -> bool {
        self.inner.needs_host()
    }

    fn is_ordered(&self) -> bool {
        self.inner.is_ordered()
    }

    fn allow_summaries(&mut self, columns: &[SummaryNeed]) {
        self.inner.allow_summaries(columns);
    }
}

impl Unit for Measured<Box<dyn Unit>> {
    fn next(&mut self) -> Result<Step> {
        let Self { inner, figures, .. } = self;
        let step = figures.time(|| inner.next())?;
        figures.count(&step);
        Ok(step)
    }
}

impl TransformFactory for Measured<Arc<dyn TransformFactory>> {
    fn prepare(&self, runner: &mut Runner<'_>, source: &mut dyn Source) -> Result<bool> {
        self.figures.time(|| self.inner.prepare(runner, source))
    }

    fn make(&self) -> Result<Box<dyn Transform>> {
        Ok(Box::new(Measured::new(self.inner.make()?, Arc::clone(&self.figures))))
    }

    fn rest(&self) -> Result<Option<Batch>> {
        let rest = self.figures.time(|| self.inner.rest())?;
        self.figures.rows.fetch_add(rest.as_ref().map_or(0, |batch| batch.rows as u64), Ordering::Relaxed);
        Ok(rest)
    }

    fn has_rest(&self) -> bool {
        self.inner.has_rest()
    }

    fn input_column(&self, column: usize) -> Option<usize> {
        self.inner.input_column(column)
    }

    fn needs_host(&self) -> bool {
        self.inner.needs_host()
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}

impl Transform for Measured<Box<dyn Transform>> {
    fn push(&mut self, batch: Batch, emit: &mut Emit<'_>) -> Result<()> {
        let Self { inner, figures, .. } = self;
        // The time after the rows have left is not this node's time.
        let after = Figures::default();
        figures.time(|| {
            inner.push(batch, &mut |batch| {
                figures.rows.fetch_add(batch.rows as u64, Ordering::Relaxed);
                after.time(|| emit(batch))
            })
        })
    }
}

impl Sink for Measured<Arc<dyn Sink>> {
    fn make(&self) -> Result<Box<dyn SinkLocal>> {
        Ok(Box::new(Measured::new(self.inner.make()?, Arc::clone(&self.figures))))
    }

    fn complete(&self) -> Result<Box<dyn Source>> {
        let inner = self.figures.time(|| self.inner.complete())?;
        Ok(Box::new(Measured::new(inner, Arc::clone(&self.figures))))
    }

    fn wants_summary(&self) -> Option<Vec<SummaryNeed>> {
        self.inner.wants_summary()
    }

    fn needs_host(&self) -> bool {
        self.inner.needs_host()
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}

impl SinkLocal for Measured<Box<dyn SinkLocal>> {
    fn push(&mut self, batch: Batch) -> Result<bool> {
        let Self { inner, figures, held } = self;
        let pushed = figures.time(|| inner.push(batch));
        figures.holds(inner.memory(), held);
        pushed
    }

    fn push_summary(&mut self, summary: Summary) -> Result<()> {
        let Self { inner, figures, .. } = self;
        figures.time(|| inner.push_summary(summary))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { inner, figures, .. } = *self;
        figures.time(|| inner.finish())
    }
}
