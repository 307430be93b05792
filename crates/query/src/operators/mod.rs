//! The operators, one a file or folder. Each makes what `pipeline` asks for: a transform factory, or a sink.

mod append;
mod filter;
mod join;
mod project;

use std::sync::Arc;

pub use append::append;
pub use join::join;

use crate::{Error, Expression, Plan, Result, Settings, Sink, TransformFactory};

/// Keeps rows for which the condition is TRUE.
pub fn filter(condition: &Expression) -> Arc<dyn TransformFactory> {
    Arc::new(filter::Filter::new(condition))
}

/// Computes the columns of a projection.
pub fn project(expressions: &[Expression]) -> Arc<dyn TransformFactory> {
    Arc::new(project::Project::new(expressions))
}

/// The sink of a `Plan::Aggregate`.
pub fn aggregate(_plan: &Plan, _settings: &Arc<Settings>) -> Result<Arc<dyn Sink>> {
    Err(Error::Decline("aggregate"))
}

/// The sink of a `Plan::Sort`.
pub fn sort(_plan: &Plan, _settings: &Arc<Settings>) -> Result<Arc<dyn Sink>> {
    Err(Error::Decline("sort"))
}

/// The sink of a `Plan::Limit`.
pub fn limit(_plan: &Plan) -> Result<Arc<dyn Sink>> {
    Err(Error::Decline("limit"))
}

/// The sink of a `Plan::Window`.
pub fn window(_plan: &Plan, _settings: &Arc<Settings>) -> Result<Arc<dyn Sink>> {
    Err(Error::Decline("window"))
}
