//! Rows that a node takes from the server's executor before its reader asks for them.
//!
//! Called by `replace`. The vectorised node reads some thousand rows of a source at a time. If the reader
//! stops early (LIMIT, EXISTS), the server's executor would not have come to most of them, nor to an ERROR in
//! their expressions. ERRORs of expressions inside the node can be held back (`attempt`), ERRORs in a source
//! of rows cannot. So subtrees that may meet one are left to the server.

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, NodeTag, Oid};
use query::Plan;

use super::plan_parts::{computed, inputs};
use super::translated::{SourceSpec, Translated};
use crate::host::tree::{self, Node, PlanNode};

/// Whether an ERROR could come from a row that is not asked for. `partly`: the reader may stop before the
/// last row.
///
/// # Safety
/// The translation of a finished plan, which has not changed since.
pub unsafe fn may_fail(
    translated: &Translated,
    statement: tree::FinishedStatement<'_>,
    partly: bool,
) -> bool {
    let mut sources = Vec::new();
    read_partly(&translated.plan, partly, &mut sources);
    let rows = sources.into_iter().filter_map(|at| match translated.sources.get(at) {
        // SAFETY: a node of the caller's plan.
        Some(SourceSpec::Rows { plan }) => unsafe { tree::Plan::new(*plan) },
        _ => None,
    });
    let mut seen = Vec::new();
    rows.into_iter().any(|plan| can_raise(plan, statement, &mut seen))
}

/// The sources that are read no further than the reader reads.
fn read_partly(plan: &Plan, partly: bool, found: &mut Vec<usize>) {
    match plan {
        Plan::Scan { source, .. } if partly => found.push(*source),
        Plan::Scan { .. }
        | Plan::Aggregate { .. }
        | Plan::GroupingSets { .. }
        | Plan::Sort { .. }
        | Plan::DistinctOn { .. } => {
            plan.inputs().into_iter().for_each(|input| read_partly(input, false, found))
        }
        // Its table is made of all rows of the other side.
        Plan::Join { left, right, .. } => {
            read_partly(left, partly, found);
            read_partly(right, false, found);
        }
        Plan::Window { input, partition, order, .. } => {
            read_partly(input, partly && partition.is_empty() && order.is_empty(), found);
        }
        Plan::Limit { input, limit, .. } => read_partly(input, partly || limit.is_some(), found),
        Plan::Filter { .. } | Plan::Project { .. } | Plan::Repeat { .. } | Plan::Append { .. } => {
            plan.inputs().into_iter().for_each(|input| read_partly(input, partly, found));
        }
    }
}

/// Whether an expression of the plan may raise an ERROR about the values of a row; CTEs that were `seen` do
/// not.
fn can_raise(plan: tree::Plan<'_>, statement: tree::FinishedStatement<'_>, seen: &mut Vec<usize>) -> bool {
    if let PlanNode::CteScan(scan) = plan.kind() {
        let number = usize::try_from(scan.ctePlanId).unwrap_or(0);
        if !seen.contains(&number) {
            seen.push(number);
            let below = statement.subplans().get(number.wrapping_sub(1));
            if below.is_none_or(|below| can_raise(below, statement, seen)) {
                return true;
            }
        }
    }
    // SAFETY: the walk begins at a valid node, under guard.
    let is_leaky = |part: Node<'_>| unsafe { tree::guarded(|| leaks(part.as_ptr(), std::ptr::null_mut())) };
    plan.targets().iter().map(|target| target.expr()).chain(computed(plan)).any(is_leaky)
        || inputs(plan).into_iter().any(|input| can_raise(input, statement, seen))
}

/// Whether an expression calls what may raise an ERROR: functions that the server's authors have looked
/// through for that are marked as leakproof.
#[pg_guard]
unsafe extern "C-unwind" fn leaks(node: *mut pg_sys::Node, data: *mut c_void) -> bool {
    // SAFETY: an expression of a plan, or a list of them, or null.
    unsafe {
        !node.is_null()
            && (matches!((*node).type_, NodeTag::T_SubPlan | NodeTag::T_CoerceToDomain)
                || pg_sys::check_functions_in_node(node, Some(is_leaky), data)
                || tree::walk(node, leaks, data))
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_leaky(function: Oid, _data: *mut c_void) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { !pg_sys::get_func_leakproof(function) }
}
