//! Whether the user may call the functions of a kept subtree.
//!
//! Called by the node when it begins, because the right may have been taken away since the plan was made. The
//! server asks when it initialises an aggregate or an expression, which those of a kept subtree never are.
//! Where the answer is no, the node runs the subtree through the server, which raises the error in its own
//! words.

use std::ffi::c_void;

use pgrx::pg_sys::{self, Node, NodeTag, Oid, Plan};
use pgrx::{PgList, pg_guard};

use super::replace::{children, expressions};
use crate::compat;
use crate::host::tree;

/// True where the current user may call every function and aggregate of the subtree.
///
/// # Safety
/// A finished plan.
pub unsafe fn may_call_all(plan: *mut Plan) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        !expressions(plan).into_iter().any(|part| tree::guarded(|| forbidden(part, std::ptr::null_mut())))
            && groups_by(plan).into_iter().all(may_compare)
            && children(plan).into_iter().all(|child| may_call_all(*child))
    }
}

/// The operators by which a node tells groups apart: the server asks about their functions where it prepares
/// to compare groups (`ExecBuildGroupingEqual`).
unsafe fn groups_by(plan: *mut Plan) -> Vec<Oid> {
    // SAFETY: the casts follow the tag; the arrays have as many entries as the node says.
    unsafe {
        let all = |count: i32, operators: *mut Oid| match usize::try_from(count) {
            Ok(count) if count > 0 => std::slice::from_raw_parts(operators, count).to_vec(),
            _ => Vec::new(),
        };
        match (*plan).type_ {
            NodeTag::T_Agg => {
                let agg = &*plan.cast::<pg_sys::Agg>();
                let mut operators = all(agg.numCols, agg.grpOperators);
                for further in PgList::<Plan>::from_pg(agg.chain).iter_ptr() {
                    operators.extend(groups_by(further));
                }
                operators
            }
            NodeTag::T_Group => {
                let group = &*plan.cast::<pg_sys::Group>();
                all(group.numCols, group.grpOperators)
            }
            NodeTag::T_Unique => {
                let unique = &*plan.cast::<pg_sys::Unique>();
                all(unique.numCols, unique.uniqOperators)
            }
            NodeTag::T_SetOp => {
                let set = &*plan.cast::<pg_sys::SetOp>();
                all(set.numCols, set.dupOperators)
            }
            NodeTag::T_WindowAgg => {
                let window = &*plan.cast::<pg_sys::WindowAgg>();
                let mut operators = all(window.partNumCols, window.partOperators);
                operators.extend(all(window.ordNumCols, window.ordOperators));
                operators
            }
            _ => Vec::new(),
        }
    }
}

fn may_compare(operator: Oid) -> bool {
    // SAFETY: catalog look-ups.
    unsafe { compat::may_execute(pg_sys::get_opcode(operator)) }
}

/// Whether DISTINCT in an aggregate compares rows of several arguments by what the user may not call; that of
/// one argument is not asked about.
unsafe fn distinct_forbidden(node: *mut Node) -> bool {
    // SAFETY: the cast follows the tag; DISTINCT is a list of clauses.
    unsafe {
        if (*node).type_ != NodeTag::T_Aggref {
            return false;
        }
        let columns =
            PgList::<pg_sys::SortGroupClause>::from_pg((*node.cast::<pg_sys::Aggref>()).aggdistinct);
        columns.len() > 1 && columns.iter_ptr().any(|column| !may_compare((*column).eqop))
    }
}

/// Whether an expression calls what the user may not.
#[pg_guard]
unsafe extern "C-unwind" fn forbidden(node: *mut Node, context: *mut c_void) -> bool {
    // SAFETY: an expression of a plan, or a list of them, or null.
    unsafe {
        !node.is_null()
            && (distinct_forbidden(node)
                || pg_sys::check_functions_in_node(node, Some(is_forbidden), context)
                || tree::walk(node, forbidden, context))
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_forbidden(function: Oid, _context: *mut c_void) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { !compat::may_execute(function) }
}
