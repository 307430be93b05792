//! Whether the user may call the functions of a kept subtree.
//!
//! Called by the node when it begins, because the right may have been taken away since the plan was made. The
//! server checks this right when it initialises an aggregate or an expression. But it never initialises those
//! of a kept subtree. If the user lacks the right, the node runs the subtree through the server, which raises
//! the error in its own words.

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Oid};

use super::plan_parts::{computed, inputs};
use crate::host::catalogs;
use crate::host::tree::{self, Node, Plan, PlanNode};

/// True where the current user may call every function and aggregate of the subtree.
pub fn may_call_all(plan: Plan<'_>) -> bool {
    // SAFETY: the walk begins at a valid node, under guard.
    let is_forbidden =
        |part: Node<'_>| unsafe { tree::guarded(|| forbidden(part.as_ptr(), std::ptr::null_mut())) };
    !plan.targets().node().into_iter().chain(computed(plan)).any(is_forbidden)
        && groups_by(plan).into_iter().all(may_compare)
        && inputs(plan).into_iter().all(may_call_all)
}

/// The operators by which a node tells groups apart: the server asks about their functions where it prepares
/// to compare groups (`ExecBuildGroupingEqual`).
fn groups_by(plan: Plan<'_>) -> Vec<Oid> {
    let columns: Vec<_> = match plan.kind() {
        PlanNode::Agg(agg) => {
            let further = agg.chain().iter().flat_map(|further| groups_by(further.plan()));
            return agg.columns().map(|column| column.operator).chain(further).collect();
        }
        PlanNode::Group(group) => group.columns().collect(),
        PlanNode::Unique(unique) => unique.columns().collect(),
        PlanNode::SetOp(operation) => operation.columns().collect(),
        PlanNode::WindowAgg(window) => window.partition().chain(window.order()).collect(),
        _ => Vec::new(),
    };
    columns.into_iter().map(|column| column.operator).collect()
}

fn may_compare(operator: Oid) -> bool {
    // SAFETY: catalog look-ups.
    unsafe { catalogs::may_execute(pg_sys::get_opcode(operator)) }
}

/// Whether DISTINCT in an aggregate compares rows of several arguments by what the user may not call; that of
/// one argument is not asked about.
fn distinct_forbidden(node: Node<'_>) -> bool {
    node.as_a::<pg_sys::Aggref>().is_some_and(|call| {
        let columns = call.distinct();
        columns.len() > 1 && columns.iter().any(|column| !may_compare(column.eqop))
    })
}

/// Whether an expression calls what the user may not.
#[pg_guard]
unsafe extern "C-unwind" fn forbidden(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the server passes valid nodes, or null.
    unsafe {
        Node::new(node).is_some_and(|part| {
            distinct_forbidden(part)
                || pg_sys::check_functions_in_node(node, Some(is_forbidden), context)
                || tree::walk(node, forbidden, context)
        })
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_forbidden(function: Oid, _context: *mut c_void) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { !catalogs::may_execute(function) }
}
