//! The columns of a vectorised node, for those who look where a value comes from.
//!
//! Called by `replace` for each node that it makes. The server has it that the list of columns of a custom
//! scan mentions tables, never nodes below it. That of the kept subtree mentions those: EXPLAIN finds them,
//! as the new node names the same plans below it, but pg_qualstats looks for their states, finds none, and
//! ended the server. So a column that is only handed on from a node below is replaced by what it comes from,
//! down to columns of tables. Expressions stay as they are: nobody follows them.
//!
//! Invariant: type, modifier and collation of a column stay. What would become too long, as expressions that
//! use one another several times do, is hidden in a cast that does nothing.

use std::ffi::c_void;

use pgrx::PgList;
use pgrx::pg_sys::{self, Node, NodeTag, Plan};

use crate::host::tree;

/// Nodes that one column may take when it is followed: few enough for the stack, were each below the other.
const MOST_OF_COLUMN: usize = 1_000;
/// Nodes that all columns of a node may take.
const MOST: usize = 100_000;

/// Where references are looked up, and how many nodes there may still be; 0 once there were too many, or a
/// reference led nowhere.
struct Place {
    plan: *mut Plan,
    left: usize,
}

/// The list of columns of `plan` for the node that takes its place.
///
/// # Safety
/// A finished plan of the server's, whose references are set.
pub unsafe fn columns(plan: *mut Plan) -> *mut pg_sys::List {
    let mut list = std::ptr::null_mut();
    let mut left = MOST;
    // SAFETY: a list of target entries, which are copied before they are changed; the place lives as long as
    // the walk.
    unsafe {
        for target in PgList::<pg_sys::TargetEntry>::from_pg((*plan).targetlist).iter_ptr() {
            let entry = pg_sys::flatCopyTargetEntry(target);
            let expression: *mut Node = (*entry).expr.cast();
            if is_reference(expression) {
                let allowed = left.min(MOST_OF_COLUMN);
                let mut place = Place { plan, left: allowed };
                let followed = tree::guarded(|| follow(expression, (&raw mut place).cast()));
                (*entry).expr = if place.left > 0 { followed.cast() } else { hidden(expression) };
                left -= allowed - place.left;
            }
            list = pg_sys::lappend(list, entry.cast());
        }
    }
    list
}

/// A copy of an expression with what its references stand for.
unsafe extern "C-unwind" fn follow(node: *mut Node, data: *mut c_void) -> *mut Node {
    // SAFETY: the server passes valid nodes, or null, and the place of `columns`; nothing here is owned.
    unsafe {
        let place = data.cast::<Place>();
        if node.is_null() || (*place).left == 0 {
            return node;
        }
        (*place).left -= 1;
        if !is_reference(node) {
            return tree::mutate(node, follow, data);
        }
        let var = node.cast::<pg_sys::Var>();
        if is_of_parent((*place).plan, var) {
            let column = tree::mutate(node, follow, data).cast::<pg_sys::Var>();
            (*column).varno = (*var).varnosyn.cast_signed();
            (*column).varattno = (*var).varattnosyn;
            return column.cast();
        }
        let Some((plan, found)) = target((*place).plan, var) else {
            (*place).left = 0;
            return node;
        };
        let mut below = Place { plan, left: (*place).left };
        let followed = follow(found, (&raw mut below).cast());
        (*place).left = below.left;
        followed
    }
}

/// Whether an expression is a column of a node below, or of what an index or a remote scan gives.
unsafe fn is_reference(node: *mut Node) -> bool {
    // SAFETY: a valid node; the cast follows the tag.
    unsafe {
        (*node).type_ == NodeTag::T_Var
            && matches!(
                (*node.cast::<pg_sys::Var>()).varno,
                pg_sys::OUTER_VAR | pg_sys::INNER_VAR | pg_sys::INDEX_VAR
            )
    }
}

/// Whether a column of an Append is one of the table that its children are partitions of.
unsafe fn is_of_parent(plan: *mut Plan, var: *mut pg_sys::Var) -> bool {
    const BITS: u32 = u64::BITS;
    // SAFETY: a finished plan; casts follow the tags. A set has as many words as it says.
    unsafe {
        let parents = match (*plan).type_ {
            NodeTag::T_Append => (*plan.cast::<pg_sys::Append>()).apprelids,
            NodeTag::T_MergeAppend => (*plan.cast::<pg_sys::MergeAppend>()).apprelids,
            _ => return false,
        };
        let Some(parents) = parents.as_ref() else { return false };
        let words = parents.words.as_slice(usize::try_from(parents.nwords).unwrap_or(0));
        let word = words.get(((*var).varnosyn / BITS) as usize).copied().unwrap_or(0);
        word >> ((*var).varnosyn % BITS) & 1 == 1
    }
}

/// What a reference in a plan's expressions means, and the plan in whose terms that is.
unsafe fn target(plan: *mut Plan, var: *mut pg_sys::Var) -> Option<(*mut Plan, *mut Node)> {
    // SAFETY: a finished plan; casts follow the tags.
    unsafe {
        let kind = (*plan).type_;
        let (plan, list) = match (*var).varno {
            pg_sys::INDEX_VAR => match kind {
                NodeTag::T_IndexOnlyScan => (plan, (*plan.cast::<pg_sys::IndexOnlyScan>()).indextlist),
                NodeTag::T_ForeignScan => (plan, (*plan.cast::<pg_sys::ForeignScan>()).fdw_scan_tlist),
                NodeTag::T_CustomScan => (plan, (*plan.cast::<pg_sys::CustomScan>()).custom_scan_tlist),
                _ => return None,
            },
            which => {
                let below = match kind {
                    _ if which == pg_sys::INNER_VAR => (*plan).righttree,
                    NodeTag::T_Append => first((*plan.cast::<pg_sys::Append>()).appendplans),
                    NodeTag::T_MergeAppend => first((*plan.cast::<pg_sys::MergeAppend>()).mergeplans),
                    _ => (*plan).lefttree,
                };
                if below.is_null() {
                    return None;
                }
                (below, (*below).targetlist)
            }
        };
        let entries = PgList::<pg_sys::TargetEntry>::from_pg(list);
        let entry = entries.iter_ptr().find(|entry| (**entry).resno == (*var).varattno)?;
        Some((plan, (*entry).expr.cast()))
    }
}

unsafe fn first(plans: *mut pg_sys::List) -> *mut Plan {
    // SAFETY: a list of plans, or null.
    unsafe { PgList::<Plan>::from_pg(plans).get_ptr(0).unwrap_or(std::ptr::null_mut()) }
}

/// The same expression as something that nobody follows. EXPLAIN shows what is inside.
unsafe fn hidden(node: *mut Node) -> *mut pg_sys::Expr {
    // SAFETY: a valid expression.
    unsafe {
        let cast = pg_sys::makeRelabelType(
            node.cast(),
            pg_sys::exprType(node),
            pg_sys::exprTypmod(node),
            pg_sys::exprCollation(node),
            pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
        );
        cast.cast()
    }
}
