//! Walks expressions.
//!
//! pgrx's own walkers put a guard around each level. So a deep expression takes ten times the server's stack.
//! An ERROR in it (too little stack) becomes a panic that would have to unwind through the server's frames,
//! which aborts the process. Here the guard is around the whole walk ([`guarded`]), and callbacks recurse
//! through [`walk`] and [`mutate`] without one.
//!
//! Invariant: a callback that recurses owns nothing, because the server's longjmp may pass it. A callback
//! that calls anything else of the server has `#[pg_guard]`.

use std::ffi::c_void;

use pgrx::PgList;
use pgrx::pg_sys::{self, Node, Query};

pub use pgrx::pg_sys::ffi::pg_guard_ffi_boundary as guarded;

/// The function that is called for each node of an expression. True ends the walk.
pub type Visit = unsafe extern "C-unwind" fn(node: *mut Node, data: *mut c_void) -> bool;
/// The function that makes a new node from another one.
pub type Change = unsafe extern "C-unwind" fn(node: *mut Node, data: *mut c_void) -> *mut Node;

mod server {
    use std::ffi::c_int;

    use super::{Change, Node, Query, Visit, c_void};

    unsafe extern "C-unwind" {
        pub fn expression_tree_walker(node: *mut Node, walker: Option<Visit>, context: *mut c_void) -> bool;
        pub fn expression_tree_mutator(
            node: *mut Node,
            mutator: Option<Change>,
            context: *mut c_void,
        ) -> *mut Node;
        pub fn query_tree_mutator(
            query: *mut Query,
            mutator: Option<Change>,
            context: *mut c_void,
            flags: c_int,
        ) -> *mut Query;
        pub fn equal(a: *const c_void, b: *const c_void) -> bool;
    }
}

/// Visits the parts of a node.
///
/// # Safety
/// A valid expression, below [`guarded`]; see the module.
pub unsafe fn walk(node: *mut Node, visit: Visit, data: *mut c_void) -> bool {
    // SAFETY: the caller's promise.
    unsafe { server::expression_tree_walker(node, Some(visit), data) }
}

/// A copy of a node whose parts were changed.
///
/// # Safety
/// As `walk`.
pub unsafe fn mutate(node: *mut Node, change: Change, data: *mut c_void) -> *mut Node {
    // SAFETY: the caller's promise.
    unsafe { server::expression_tree_mutator(node, Some(change), data) }
}

/// A copy of a query whose parts were changed.
///
/// # Safety
/// As `walk`, with a query.
pub unsafe fn mutate_query(query: *mut Query, change: Change, data: *mut c_void) -> *mut Query {
    // SAFETY: the caller's promise.
    unsafe { server::query_tree_mutator(query, Some(change), data, 0) }
}

/// What the server pulls out of an expression or a list of expressions: the variables, and what the flags
/// (PVC_...) ask for.
///
/// # Safety
/// A valid expression, or null.
pub unsafe fn pulled(node: *mut Node, flags: u32) -> Vec<*mut Node> {
    // SAFETY: the caller's promise; the list is new, and plans are translated at each start of a node: it
    // would be kept until the query's end.
    unsafe {
        let list = pg_sys::pull_var_clause(node, flags as i32);
        let found = PgList::from_pg(list).iter_ptr().collect();
        pg_sys::list_free(list);
        found
    }
}

/// Whether two expressions are equal.
///
/// # Safety
/// As `walk`.
pub unsafe fn are_equal(one: *mut Node, other: *mut Node) -> bool {
    // SAFETY: the caller's promise.
    unsafe { server::equal(one.cast(), other.cast()) }
}

/// Whether `is_such` accepts the expression or a part of it.
///
/// # Safety
/// A valid expression, or null.
pub unsafe fn contains(node: *mut Node, is_such: fn(pg_sys::NodeTag) -> bool) -> bool {
    unsafe extern "C-unwind" fn visit(node: *mut Node, data: *mut c_void) -> bool {
        // SAFETY: the server passes valid nodes, or null, and the function below.
        unsafe {
            !node.is_null()
                && ((*data.cast::<fn(pg_sys::NodeTag) -> bool>())((*node).type_) || walk(node, visit, data))
        }
    }
    let mut data = is_such;
    // SAFETY: the function lives as long as the walk.
    unsafe { guarded(|| visit(node, (&raw mut data).cast())) }
}

/// Whether an expression has more than `levels` levels. It looks no deeper than that.
///
/// # Safety
/// A valid expression, or null.
pub unsafe fn is_deeper(node: *mut Node, levels: usize) -> bool {
    unsafe extern "C-unwind" fn visit(node: *mut Node, data: *mut c_void) -> bool {
        // SAFETY: the server passes valid nodes, or null, and the counter below.
        unsafe {
            if node.is_null() {
                return false;
            }
            let left = data.cast::<usize>();
            if *left == 0 {
                return true;
            }
            *left -= 1;
            let found = walk(node, visit, data);
            *left += 1;
            found
        }
    }
    // The walk also visits lists of arguments, which are levels of their own.
    let mut left = levels * 2;
    // SAFETY: the counter lives as long as the walk.
    unsafe { guarded(|| visit(node, (&raw mut left).cast())) }
}
