//! The operators, one a file or folder. Each makes what `pipeline` asks for: a transform factory, or a sink.

mod filter;
mod project;

use std::sync::Arc;

use crate::{Error, Expression, Pipeline, Plan, Result, Settings, Sink, Source, TransformFactory};

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

/// The probing part of a `Plan::Join`; `right` is the pipeline it keeps, `left` the one it will be part of (whose source may be narrowed).
pub fn join(
    _plan: &Plan,
    _right: Pipeline,
    _left: &mut Pipeline,
    _settings: &Arc<Settings>,
) -> Result<Arc<dyn TransformFactory>> {
    Err(Error::Decline("join"))
}

/// The rows of several pipelines, one after the other.
pub fn append(parts: Vec<Pipeline>) -> Box<dyn Source> {
    drop(parts);
    Box::new(Nothing)
}

struct Nothing;

impl Source for Nothing {
    fn next_unit(&mut self, _host: &mut dyn crate::Host) -> Result<Option<Box<dyn crate::Unit>>> {
        Err(Error::Decline("append"))
    }
}
