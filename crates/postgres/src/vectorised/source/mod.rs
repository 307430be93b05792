//! Where the rows of a vectorised plan come from: columnar tables, and other plan nodes that the server's executor runs.
//!
//! `node` opens one source for each leaf at each start. Invariant: a source only points at its initialised plan node, which belongs to the node above, so that it may be dropped
//! at any time.

mod columnar;
mod rows;

use query::Source;

use super::derive::Derived;
use super::node::Leaf;
use super::translated::SourceSpec;

/// The source of a leaf, from its first row.
///
/// # Safety
/// The leaf is initialised, stays so for as long as the source is used, and was restarted after earlier use. `threads`: units may be
/// worked on by other threads.
pub unsafe fn open(leaf: &Leaf, derived: &Derived, threads: bool) -> query::Result<Box<dyn Source>> {
    // SAFETY: the caller's promise.
    unsafe {
        Ok(match &leaf.spec {
            SourceSpec::Columnar { attributes, .. } => {
                Box::new(columnar::Columnar::open(leaf.state, attributes, derived, threads)?)
            }
            SourceSpec::Rows { .. } => Box::new(rows::Rows::open(leaf.state)),
        })
    }
}
