//! Whether the user may call the functions of a kept subtree.
//!
//! Called by the node when it begins, because the right may have been taken away since the plan was made. The server asks when it initialises an aggregate or an expression, which
//! those of a kept subtree never are. Where the answer is no, the node runs the subtree through the server, which raises the error in its own words.

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Node, Oid, Plan};

use super::rewrite::{children, expressions};
use crate::compat;

/// True where the current user may call every function and aggregate of the subtree.
///
/// # Safety
/// A finished plan.
pub unsafe fn may_call_all(plan: *mut Plan) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        !expressions(plan).into_iter().any(|part| forbidden(part, std::ptr::null_mut()))
            && children(plan).into_iter().all(|child| may_call_all(*child))
    }
}

/// Whether an expression calls what the user may not.
#[pg_guard]
unsafe extern "C-unwind" fn forbidden(node: *mut Node, context: *mut c_void) -> bool {
    // SAFETY: an expression of a plan, or a list of them, or null.
    unsafe {
        !node.is_null()
            && (pg_sys::check_functions_in_node(node, Some(is_forbidden), context)
                || pg_sys::expression_tree_walker(node, Some(forbidden), context))
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_forbidden(function: Oid, _context: *mut c_void) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { !compat::may_execute(function) }
}
