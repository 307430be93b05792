//! What the server knows of an expression: its type, what it mentions, whether it equals another.
//!
//! Each is a function of the server's that only reads the tree, and raises an ERROR where it does not know a
//! node. Invariant: an ERROR unwinds.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag, Oid};

use super::list::List;
use super::node::Node;
use super::{guarded, walk};

/// Makes methods that ask one function of the server's.
macro_rules! asked {
    ($($(#[$doc:meta])* $method:ident($($name:ident: $kind:ty)?) -> $answer:ty = $function:ident;)*) => {
        impl Node<'_> { $(
            $(#[$doc])*
            #[inline]
            pub fn $method(self $(, $name: $kind)?) -> $answer {
                // SAFETY: a valid node, which is only read.
                unsafe { pg_sys::$function(self.as_ptr() $(, $name)?) }
            }
        )* }
    };
}

asked! {
    /// The type of its value.
    type_oid() -> Oid = exprType;
    /// The modifier of its type, or -1.
    typmod() -> i32 = exprTypmod;
    /// The collation of its value.
    collation() -> Oid = exprCollation;
    /// Whether it mentions columns of this query.
    has_columns() -> bool = contain_var_clause;
    /// Whether it mentions aggregates.
    has_aggregates() -> bool = contain_agg_clause;
    /// Whether it mentions window functions.
    has_window_functions() -> bool = contain_window_function;
    /// Whether it mentions sub-plans.
    has_sub_plans() -> bool = contain_subplans;
    /// Whether it calls volatile functions.
    is_volatile() -> bool = contain_volatile_functions;
    /// Whether it calls functions that are not immutable.
    is_mutable() -> bool = contain_mutable_functions;
    /// Whether it mentions columns of the query so many levels out.
    has_columns_of_level(level: i32) -> bool = contain_vars_of_level;
    /// Whether it mentions aggregates of the query so many levels out.
    has_aggregates_of_level(level: i32) -> bool = contain_aggs_of_level;
}

impl<'a> Node<'a> {
    /// Whether it is the same as another expression.
    pub fn equals(self, other: Node<'_>) -> bool {
        // SAFETY: two valid nodes, which are only read.
        unsafe { pg_sys::equal(self.as_ptr().cast(), other.as_ptr().cast()) }
    }

    /// What the server pulls out of an expression, or of a list of them: its variables, and what the flags
    /// (PVC_...) ask for.
    pub fn pulled(self, flags: u32) -> Vec<Node<'a>> {
        // SAFETY: the list is new, and its elements are parts of the tree. Plans are translated at each start
        // of a node: the list would be kept until the query's end.
        unsafe {
            let list = pg_sys::pull_var_clause(self.as_ptr(), flags as i32);
            let found = List::<Node<'a>>::new(list).iter().collect();
            pg_sys::list_free(list);
            found
        }
    }

    /// Whether a part of an expression, or the whole, is such.
    pub fn contains(self, is_such: fn(NodeTag) -> bool) -> bool {
        unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, data: *mut c_void) -> bool {
            // SAFETY: the server passes valid nodes, or null, and the function below.
            unsafe {
                !node.is_null()
                    && ((*data.cast::<fn(NodeTag) -> bool>())((*node).type_) || walk(node, visit, data))
            }
        }
        let mut data = is_such;
        // SAFETY: the function lives as long as the walk.
        unsafe { guarded(|| visit(self.as_ptr(), (&raw mut data).cast())) }
    }

    /// Whether an expression has more levels than this; it goes no further down.
    pub fn is_deeper(self, levels: usize) -> bool {
        unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, data: *mut c_void) -> bool {
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
        // A node's list of arguments is visited, too.
        let mut left = levels * 2;
        // SAFETY: the counter lives as long as the walk.
        unsafe { guarded(|| visit(self.as_ptr(), (&raw mut left).cast())) }
    }
}

impl<'a, E> List<'a, E> {
    /// As of `Node`.
    pub fn pulled(self, flags: u32) -> Vec<Node<'a>> {
        self.node().map_or_else(Vec::new, |list| list.pulled(flags))
    }

    /// As of `Node`.
    pub fn is_volatile(self) -> bool {
        self.node().is_some_and(Node::is_volatile)
    }
}
