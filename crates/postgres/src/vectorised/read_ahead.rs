//! Rows that a node takes from the server's executor before anybody asks for them.
//!
//! Called by `rewrite`. A source of rows is read some thousands at a time; where the reader stops early (LIMIT, EXISTS), the server's executor would not have come to most of them, nor
//! to an ERROR in their expressions. Unlike those of expressions inside the node (`attempt`), such ERRORs cannot be held back, so subtrees that may meet one are left to the server.

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag};
use query::Plan;

use super::rewrite::{children, expressions};
use super::translated::{SourceSpec, Translated};

/// Whether an ERROR could come from a row that is not asked for. `partly`: the reader may stop before the last row.
///
/// # Safety
/// The translation of a finished plan, and the sub-plans of its statement.
pub unsafe fn may_fail(translated: &Translated, subplans: *mut pg_sys::List, partly: bool) -> bool {
    let mut sources = Vec::new();
    read_partly(&translated.plan, partly, &mut sources);
    let rows = sources.into_iter().filter_map(|at| match translated.sources.get(at) {
        Some(SourceSpec::Rows { plan }) => Some(*plan),
        _ => None,
    });
    // SAFETY: the caller's promise.
    rows.into_iter().any(|plan| unsafe { can_raise(plan, subplans) })
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

/// Whether an expression of the plan may raise an ERROR about the values of a row.
unsafe fn can_raise(plan: *mut pg_sys::Plan, subplans: *mut pg_sys::List) -> bool {
    // SAFETY: casts follow the tags; target lists are lists of entries.
    unsafe {
        let of_cte = (*plan).type_ == NodeTag::T_CteScan && {
            let number = usize::try_from((*plan.cast::<pg_sys::CteScan>()).ctePlanId).unwrap_or(0);
            let below = PgList::<pg_sys::Plan>::from_pg(subplans).get_ptr(number.wrapping_sub(1));
            below.is_none_or(|below| can_raise(below, subplans))
        };
        let targets = PgList::<pg_sys::TargetEntry>::from_pg((*plan).targetlist);
        let shown = targets.iter_ptr().map(|target| (*target).expr.cast());
        // Functions that the server's authors have looked through for ERRORs about values are marked as leakproof.
        of_cte
            || shown
                .chain(expressions(plan).into_iter().skip(1))
                .any(|part| pg_sys::contain_leaked_vars(part))
            || children(plan).into_iter().any(|child| can_raise(*child, subplans))
    }
}
