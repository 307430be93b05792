//! From a plan to pipelines.
//!
//! Called once for each execution. It goes down the plan, knows which columns are read above each node, and
//! which sinks need their rows in the source's order.

use std::sync::Arc;

use vector::LogicalType;

use super::Context;
use crate::operators;
use crate::pipeline::Breaker;
use crate::{Aggregate, AggregateFunction, Error, Expression, Pipeline, Plan, Result, Sink, Source};
use vector::flow::Nothing;

/// The pipeline whose rows are those of a plan. `wanted` says which of its columns are read; the others may
/// hold anything of their type.
pub(crate) fn build(
    plan: &Plan,
    wanted: &[bool],
    sources: &mut [Option<Box<dyn Source>>],
    context: &Context,
) -> Result<Pipeline> {
    let pipeline = node(plan, wanted, sources, context)?;
    Ok(match &context.profile {
        Some(profile) => profile.wrap(plan, pipeline),
        None => pipeline,
    })
}

fn node(
    plan: &Plan,
    wanted: &[bool],
    sources: &mut [Option<Box<dyn Source>>],
    context: &Context,
) -> Result<Pipeline> {
    Ok(match plan {
        Plan::Scan { source, .. } => {
            let taken = sources.get_mut(*source).and_then(Option::take);
            let mut taken = taken.ok_or(Error::Decline("source"))?;
            taken.read_only(wanted);
            Pipeline::new(taken)
        }
        Plan::Filter { input, condition } => {
            let mut wanted = wanted.to_vec();
            condition.mark_columns(&mut wanted);
            let mut pipeline = build(input, &wanted, sources, context)?;
            operators::in_portions(&mut pipeline, [condition], wanted.len());
            pipeline.transforms.push(operators::filter(condition, input));
            pipeline
        }
        Plan::Repeat { input, count } => {
            let mut wanted = wanted.to_vec();
            count.mark_columns(&mut wanted);
            let mut pipeline = build(input, &wanted, sources, context)?;
            pipeline.transforms.push(operators::repeat(count));
            pipeline
        }
        Plan::Project { input, expressions } => {
            let mut wanted = vec![false; input.types().len()];
            expressions.iter().for_each(|expression| expression.mark_columns(&mut wanted));
            let mut pipeline = build(input, &wanted, sources, context)?;
            operators::in_portions(&mut pipeline, expressions, wanted.len());
            pipeline.transforms.push(operators::project(expressions, &input.types()));
            pipeline
        }
        Plan::Aggregate { input, keys, aggregates, .. }
        | Plan::GroupingSets { input, keys, aggregates, .. } => {
            let mut wanted = vec![false; input.types().len()];
            let arguments = aggregates.iter().flat_map(|aggregate| {
                let order = aggregate.order_by.iter().map(|key| &key.expression);
                aggregate.arguments.iter().chain(&aggregate.filter).chain(order)
            });
            let read = keys.iter().chain(arguments).collect::<Vec<_>>();
            read.iter().for_each(|expression| expression.mark_columns(&mut wanted));
            let sink = operators::aggregate(plan, &context.settings)?;
            let mut pipeline = build(input, &wanted, sources, context)?;
            operators::in_portions(&mut pipeline, read, wanted.len());
            // Concatenation takes values as they come where it has no order of its own.
            pipeline.keep_order =
                aggregates.iter().any(|aggregate| aggregate.is_ordered() && aggregate.order_by.is_empty());
            breaker(plan, pipeline, sink, false, context)
        }
        Plan::Sort { input, keys, .. } | Plan::DistinctOn { input, keys, .. } => {
            let mut wanted = wanted.to_vec();
            keys.iter().for_each(|key| key.expression.mark_columns(&mut wanted));
            let mut pipeline = build(input, &wanted, sources, context)?;
            let sink = operators::sort(plan, &mut pipeline, &context.settings)?;
            breaker(plan, pipeline, sink, true, context)
        }
        // Nothing below may run: it could raise errors.
        Plan::Limit { limit: Some(0), .. } => Pipeline::new(Box::new(Nothing)),
        Plan::Limit { input, .. } => {
            let sink = operators::limit(plan, &context.settings)?;
            let mut pipeline = build(input, wanted, sources, context)?;
            pipeline.keep_order = true;
            let ordered = pipeline.source.is_ordered();
            breaker(plan, pipeline, sink, ordered, context)
        }
        Plan::Join { kind, left, right, keys, condition } => {
            let width = left.types().len();
            // Which columns of both sides are read above.
            let mut above = vec![false; if kind.gives_left() { 0 } else { width }];
            above.extend(wanted);
            above.resize(width + right.types().len(), false);
            let mut wanted_here = above.clone();
            condition.iter().for_each(|condition| condition.mark_columns(&mut wanted_here));
            let (wanted_left, wanted_right) = wanted_here.split_at_mut(width);
            for (left_key, right_key) in keys {
                left_key.mark_columns(wanted_left);
                right_key.mark_columns(wanted_right);
            }
            let right = build(right, wanted_right, sources, context)?;
            let mut pipeline = build(left, wanted_left, sources, context)?;
            operators::join(plan, right, &mut pipeline, above, &context.settings)?;
            pipeline
        }
        Plan::Append { inputs, .. } => {
            let parts = inputs.iter().map(|input| build(input, wanted, sources, context));
            Pipeline::new(operators::append(parts.collect::<Result<Vec<_>>>()?, context))
        }
        Plan::Window { input, partition, order, functions, .. } => {
            let width = input.types().len();
            let read_above = wanted.get(..width).unwrap_or_default();
            let mut wanted = read_above.to_vec();
            let arguments = functions.iter().flat_map(|call| &call.arguments);
            let own = partition.iter().chain(order).chain(arguments);
            own.for_each(|expression| expression.mark_columns(&mut wanted));
            let pipeline = build(input, &wanted, sources, context)?;
            Pipeline::new(operators::window(plan, pipeline, read_above, context)?)
        }
    })
}

/// For each column of an aggregation's groups the column of its input that it is, where groups of some values
/// may be left out: nothing that is computed for them can end the query.
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

fn breaker(
    plan: &Plan,
    pipeline: Pipeline,
    mut sink: Arc<dyn Sink>,
    ordered: bool,
    context: &Context,
) -> Pipeline {
    if let Some(profile) = &context.profile {
        sink = profile.wrap_sink(plan, sink);
    }
    Pipeline::new(Box::new(Breaker::new(pipeline, sink, ordered, context.clone()).grouped(deciding(plan))))
}
