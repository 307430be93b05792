//! Where the rows of a vectorised plan come from: columnar tables, and other plan nodes that the server's
//! executor runs.
//!
//! `node` opens one source for each leaf at each start. Invariant: a source only points at its initialised
//! plan node, which belongs to the node above, so that it may be dropped at any time.

mod columnar;
mod rows;

use pgrx::pg_sys;
use query::{Host, Source, Unit};

use super::derive::Derived;
use super::node::Leaf;
use super::translated::SourceSpec;

/// The source of a leaf, from its first row.
///
/// # Safety
/// The leaf is initialised, stays so for as long as the source is used, and was restarted after earlier use,
/// or is due to be. `threads`: units may be worked on by other threads.
pub unsafe fn open(leaf: &Leaf, derived: &Derived, threads: bool) -> query::Result<Box<dyn Source>> {
    // SAFETY: the caller's promise.
    unsafe {
        Ok(match &leaf.spec {
            SourceSpec::Columnar { attributes, .. } => {
                // Others restart themselves when they are first asked, in that order: they may share
                // sub-plans, each with a table of its own.
                if !(*leaf.state).chgParam.is_null() {
                    pg_sys::ExecReScan(leaf.state);
                }
                Box::new(columnar::Columnar::open(leaf.state, attributes, derived, threads)?)
            }
            SourceSpec::Rows { .. } => Box::new(rows::Rows::open(leaf.state)),
        })
    }
}

/// The source of a leaf that has no rows for the current values. Its node is not asked.
pub fn idle() -> Box<dyn Source> {
    Box::new(Idle)
}

struct Idle;

impl Source for Idle {
    fn next_unit(&mut self, _host: &mut dyn Host) -> query::Result<Option<Box<dyn Unit>>> {
        Ok(None)
    }
}
