//! The operators, one a file or folder. Each makes what `pipeline` asks for: a transform factory, or a sink.

mod aggregate;
mod append;
mod filter;
mod join;
mod limit;
mod project;
mod repeat;
mod sort;
mod split_batches;
mod window;

use std::sync::Arc;

pub use aggregate::is_fraction;
pub(crate) use append::append;
pub use join::join;
pub use sort::Bound;
pub(crate) use window::window;

use vector::LogicalType;

use crate::{Expression, Pipeline, Plan, Result, Settings, Sink, TransformFactory};

/// Keeps rows of `input` for which the condition is TRUE.
pub fn filter(condition: &Expression, input: &Plan) -> Arc<dyn TransformFactory> {
    Arc::new(filter::Filter::new(condition, input))
}

/// Computes the columns of a projection.
pub fn project(expressions: &[Expression], input: &[LogicalType]) -> Arc<dyn TransformFactory> {
    Arc::new(project::Project::new(expressions, input))
}

/// Has what follows see few rows at a time where it makes long values of them; `width` columns are what it
/// reads from.
pub fn split_batches<'a>(
    pipeline: &mut Pipeline,
    expressions: impl IntoIterator<Item = &'a Expression>,
    width: usize,
) {
    if let Some(split) = split_batches::SplitBatches::of(expressions, width) {
        pipeline.transforms.push(Arc::new(split));
    }
}

/// Gives each row as often as the count says.
pub fn repeat(count: &Expression) -> Arc<dyn TransformFactory> {
    Arc::new(repeat::Repeat::new(count))
}

/// The sink of a `Plan::Aggregate` or `Plan::GroupingSets`.
pub fn aggregate(plan: &Plan, settings: &Arc<Settings>) -> Result<Arc<dyn Sink>> {
    Ok(match plan {
        Plan::GroupingSets { .. } => Arc::new(aggregate::SetsSink::new(plan, settings)?),
        _ => Arc::new(aggregate::AggregateSink::new(plan, settings)?),
    })
}

/// The sink of a `Plan::Sort`, which may narrow the source of its pipeline, or of a `Plan::DistinctOn`.
pub fn sort(plan: &Plan, pipeline: &mut Pipeline, settings: &Arc<Settings>) -> Result<Arc<dyn Sink>> {
    Ok(Arc::new(sort::Sort::new(plan, pipeline, settings)?))
}

/// The sink of a `Plan::Limit`.
pub fn limit(plan: &Plan, settings: &Settings) -> Result<Arc<dyn Sink>> {
    Ok(Arc::new(limit::Limit::new(plan, settings)?))
}
