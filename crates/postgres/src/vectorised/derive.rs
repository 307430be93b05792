//! Decides which questions about documents go down to the scan as derived columns (`query::derive_columns`).
//! If a column is read for such questions only, its documents need not be put together.
//!
//! Called by the node on each translation, after the plan is known. Invariant: only columnar scans compute
//! columns, and only for questions that the paths of shredded documents answer.

use std::sync::Arc;

use query::{HostFunction, Plan};

use super::documents::Ask;

/// What a source gives besides and instead of its attributes.
pub type Derived = query::DerivedColumns<Ask>;

/// Moves questions into the columnar scans of a plan, given which of its sources are; what each source has to
/// give.
pub fn derive(plan: &mut Plan, columnar: impl Iterator<Item = bool>) -> Vec<Derived> {
    query::derive_columns(plan, columnar, question)
}

/// A question that can be answered from paths.
fn question(function: &Arc<dyn HostFunction>) -> Option<Arc<Ask>> {
    let ask = function.as_any().downcast_ref::<Ask>()?;
    ask.has_paths().then(|| Arc::new(ask.clone()))
}
