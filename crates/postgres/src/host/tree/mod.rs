//! The server's trees: expressions, statements and finished plans.
//!
//! `node` has the types by which everybody above goes through them: the promise that a tree is valid is given
//! once, where it is made a [`Node`], and casts that follow a tag are made here. `list` has the server's
//! lists, `expression`, `plan` and `statement` the kinds of nodes, `asked` what the server knows of them.
//!
//! Below are the walks over expressions that look at every part, or change it.
//! pgrx's own walkers put a guard around each level: a deep expression takes ten times the server's stack,
//! and an ERROR in it (too little of that) becomes a panic that would have to unwind through the server's
//! frames, which aborts the process. Here the guard is around the whole walk ([`guarded`]), and callbacks
//! recurse through [`walk`] and [`mutate`] without one.
//! Invariant: a callback owns nothing where it recurses, as the server's longjmp may pass it, and has
//! `#[pg_guard]` where it calls anything else of the server's.

use std::ffi::c_void;

use pgrx::pg_sys::{self, Query};

mod asked;
mod expression;
mod list;
mod node;
mod plan;
mod statement;

pub use expression::Expression;
pub use list::List;
pub use node::{Node, Tagged, Typed};
pub use plan::{EqualColumn, FinishedStatement, OrderColumn, Plan, PlanNode, Targets};

pub use pgrx::pg_sys::ffi::pg_guard_ffi_boundary as guarded;

/// What is called for a node of an expression; true ends the walk.
pub type Visit = unsafe extern "C-unwind" fn(node: *mut pg_sys::Node, data: *mut c_void) -> bool;
/// What makes a node of another one.
pub type Change =
    unsafe extern "C-unwind" fn(node: *mut pg_sys::Node, data: *mut c_void) -> *mut pg_sys::Node;

use crate::compat::tree as server;

unsafe extern "C-unwind" {
    fn equal(a: *const c_void, b: *const c_void) -> bool;
}

/// Visits the parts of a node.
///
/// # Safety
/// A valid expression, below [`guarded`]; see the module.
pub unsafe fn walk(node: *mut pg_sys::Node, visit: Visit, data: *mut c_void) -> bool {
    // SAFETY: a valid node, under guard; the callback is given its parts.
    unsafe { server::expression_tree_walker(node, Some(visit), data) }
}

/// A copy of a node whose parts were changed.
///
/// # Safety
/// As `walk`.
pub unsafe fn mutate(node: *mut pg_sys::Node, change: Change, data: *mut c_void) -> *mut pg_sys::Node {
    // SAFETY: a valid node, under guard; the callback is given its parts.
    unsafe { server::expression_tree_mutator(node, Some(change), data) }
}

/// A copy of a query whose parts were changed.
///
/// # Safety
/// As `walk`, with a query.
pub unsafe fn mutate_query(query: *mut Query, change: Change, data: *mut c_void) -> *mut Query {
    // SAFETY: a valid query, under guard; the callback is given its parts.
    unsafe { server::query_tree_mutator(query, Some(change), data, 0) }
}

/// Whether two expressions are equal.
///
/// # Safety
/// As `walk`.
pub unsafe fn are_equal(one: *mut pg_sys::Node, other: *mut pg_sys::Node) -> bool {
    // SAFETY: two valid nodes, under guard.
    unsafe { equal(one.cast(), other.cast()) }
}
