//! From a plan to pipelines.
//!
//! Called once for each execution. It goes down the plan, knows which columns are read above each node, and
//! which sinks need their rows in the source's order.

use std::sync::Arc;

use vector::LogicalType;

use super::Profile;
use crate::operators;
use crate::pipeline::{Breaker, Context};
use crate::{Aggregate, AggregateFunction, Error, Expression, Pipeline, Plan, Result, Sink, Source};
use vector::flow::Nothing;

/// Makes the pipelines of one plan.
pub(super) struct Builder<'a> {
    /// None: a scan has taken it.
    sources: Vec<Option<Box<dyn Source>>>,
    context: &'a Context,
    /// Where operators are measured, if they are.
    profile: Option<Arc<Profile>>,
}

impl<'a> Builder<'a> {
    /// A builder for a plan over these sources.
    pub fn new(sources: Vec<Box<dyn Source>>, context: &'a Context, profile: Option<Arc<Profile>>) -> Self {
        Self { sources: sources.into_iter().map(Some).collect(), context, profile }
    }

    /// The pipeline whose rows are those of a plan. `wanted` says which of its columns are read; the others
    /// may hold anything of their type.
    pub fn build(&mut self, plan: &Plan, wanted: &[bool]) -> Result<Pipeline> {
        let pipeline = self.node(plan, wanted)?;
        Ok(match &self.profile {
            Some(profile) => profile.wrap(plan, pipeline),
            None => pipeline,
        })
    }

    fn node(&mut self, plan: &Plan, wanted: &[bool]) -> Result<Pipeline> {
        match plan {
            Plan::Scan { source, .. } => {
                let taken = self.sources.get_mut(*source).and_then(Option::take);
                let mut taken = taken.ok_or(Error::Decline("source"))?;
                taken.read_only(wanted);
                Ok(Pipeline::new(taken))
            }
            Plan::Filter { input, condition } => {
                let wanted = with_columns(wanted, [condition]);
                let mut pipeline = self.build(input, &wanted)?;
                operators::split_batches(&mut pipeline, [condition], wanted.len());
                pipeline.transforms.push(operators::filter(condition, input));
                Ok(pipeline)
            }
            Plan::Repeat { input, count } => {
                let mut pipeline = self.build(input, &with_columns(wanted, [count]))?;
                pipeline.transforms.push(operators::repeat(count));
                Ok(pipeline)
            }
            Plan::Project { input, expressions } => {
                let wanted = columns_of(input, expressions);
                let mut pipeline = self.build(input, &wanted)?;
                operators::split_batches(&mut pipeline, expressions, wanted.len());
                pipeline.transforms.push(operators::project(expressions, &input.types()));
                Ok(pipeline)
            }
            Plan::Aggregate { input, keys, aggregates, .. }
            | Plan::GroupingSets { input, keys, aggregates, .. } => {
                self.aggregation(plan, input, keys, aggregates)
            }
            Plan::Sort { input, keys, .. } | Plan::DistinctOn { input, keys, .. } => {
                let wanted = with_columns(wanted, keys.iter().map(|key| &key.expression));
                let mut pipeline = self.build(input, &wanted)?;
                let sink = operators::sort(plan, &mut pipeline, &self.context.settings)?;
                Ok(self.breaker(plan, pipeline, sink, true))
            }
            // Nothing below may run: it could raise errors.
            Plan::Limit { limit: Some(0), .. } => Ok(Pipeline::new(Box::new(Nothing))),
            Plan::Limit { input, .. } => {
                let sink = operators::limit(plan, &self.context.settings)?;
                let mut pipeline = self.build(input, wanted)?;
                pipeline.keep_order = true;
                let ordered = pipeline.source.is_ordered();
                Ok(self.breaker(plan, pipeline, sink, ordered))
            }
            Plan::Join { .. } => self.join(plan, wanted),
            Plan::Append { inputs, .. } => {
                let parts = inputs.iter().map(|input| self.build(input, wanted));
                let parts = parts.collect::<Result<Vec<_>>>()?;
                Ok(Pipeline::new(operators::append(parts, self.context)))
            }
            Plan::Window { input, partition, order, functions, .. } => {
                let read_above = wanted.get(..input.types().len()).unwrap_or_default();
                let arguments = functions.iter().flat_map(|call| &call.arguments);
                let own = partition.iter().chain(order).chain(arguments);
                let pipeline = self.build(input, &with_columns(read_above, own))?;
                Ok(Pipeline::new(operators::window(plan, pipeline, read_above, self.context)?))
            }
        }
    }

    fn aggregation(
        &mut self,
        plan: &Plan,
        input: &Plan,
        keys: &[Expression],
        aggregates: &[Aggregate],
    ) -> Result<Pipeline> {
        let arguments = aggregates.iter().flat_map(|aggregate| {
            let order = aggregate.order_by.iter().map(|key| &key.expression);
            aggregate.arguments.iter().chain(&aggregate.filter).chain(order)
        });
        let read = keys.iter().chain(arguments).collect::<Vec<_>>();
        let wanted = columns_of(input, read.iter().copied());
        let sink = operators::aggregate(plan, &self.context.settings)?;
        let mut pipeline = self.build(input, &wanted)?;
        operators::split_batches(&mut pipeline, read, wanted.len());
        // Concatenation takes values as they come where it has no order of its own.
        pipeline.keep_order =
            aggregates.iter().any(|aggregate| aggregate.is_ordered() && aggregate.order_by.is_empty());
        Ok(self.breaker(plan, pipeline, sink, false))
    }

    fn join(&mut self, plan: &Plan, wanted: &[bool]) -> Result<Pipeline> {
        let Plan::Join { kind, left, right, keys, condition } = plan else {
            return Err(Error::Decline("not a join"));
        };
        let width = left.types().len();
        // Which columns of both sides are read above.
        let mut above = vec![false; if kind.gives_left() { 0 } else { width }];
        above.extend(wanted);
        above.resize(width + right.types().len(), false);
        let mut wanted_here = with_columns(&above, condition);
        let (wanted_left, wanted_right) = wanted_here.split_at_mut(width);
        for (left_key, right_key) in keys {
            left_key.mark_columns(wanted_left);
            right_key.mark_columns(wanted_right);
        }
        let right = self.build(right, wanted_right)?;
        let mut pipeline = self.build(left, wanted_left)?;
        operators::join(plan, right, &mut pipeline, above, &self.context.settings)?;
        Ok(pipeline)
    }

    /// A pipeline whose source is what the sink gives when it has seen all rows of `pipeline`.
    fn breaker(&self, plan: &Plan, pipeline: Pipeline, mut sink: Arc<dyn Sink>, ordered: bool) -> Pipeline {
        if let Some(profile) = &self.profile {
            sink = profile.wrap_sink(plan, sink);
        }
        let breaker = Breaker::new(pipeline, sink, ordered, self.context.clone());
        Pipeline::new(Box::new(breaker.grouped(deciding(plan))))
    }
}

/// These columns, and those that the expressions read.
fn with_columns<'e>(wanted: &[bool], expressions: impl IntoIterator<Item = &'e Expression>) -> Vec<bool> {
    let mut wanted = wanted.to_vec();
    expressions.into_iter().for_each(|expression| expression.mark_columns(&mut wanted));
    wanted
}

/// The columns of a plan's rows that the expressions read.
fn columns_of<'e>(input: &Plan, expressions: impl IntoIterator<Item = &'e Expression>) -> Vec<bool> {
    with_columns(&vec![false; input.types().len()], expressions)
}

/// For each key of an aggregation the column of its input that the key is, if it is one. Through these
/// columns a condition on the groups may leave out rows of the input. No columns if something that is
/// computed for the rows left out could end the query.
fn deciding(plan: &Plan) -> Vec<Option<usize>> {
    let Plan::Aggregate { input, keys, aggregates, .. } = plan else { return Vec::new() };
    let types = input.types();
    let certain = |aggregate: &Aggregate| {
        use AggregateFunction as A;
        let exact =
            |part: &Expression| !matches!(part.logical(&types), LogicalType::Float32 | LogicalType::Float64);
        let certain = match aggregate.function {
            A::CountRows | A::Count | A::Min | A::Max | A::BoolAnd | A::BoolOr => true,
            A::Sum | A::Avg => aggregate.arguments.iter().all(exact),
            _ => false,
        };
        certain && !aggregate.arguments.iter().chain(&aggregate.filter).any(|part| part.can_raise(&types))
    };
    if !aggregates.iter().all(certain) || keys.iter().any(|key| key.can_raise(&types)) {
        return Vec::new();
    }
    let column = |key: &Expression| if let Expression::Column(at) = key { Some(*at) } else { None };
    keys.iter().map(column).collect()
}
