//! The list of columns of a vectorised node, for EXPLAIN and extensions that look where a value comes from.
//!
//! Called by `replace` for each node that it makes. The server expects that the list of columns of a custom
//! scan mentions tables, never nodes below it. But the list of the kept subtree mentions such nodes. EXPLAIN
//! finds them, because the new node names the same plans below it. pg_qualstats looks for their states and
//! finds none, which ended the server. So a column that is only handed on from a node below is replaced by
//! what it comes from, down to columns of tables. Expressions stay as they are, because no reader follows
//! them, but for calls of window functions where EXPLAIN shows these in their own nodes only.
//!
//! Expressions that use one another several times would become too long. Such an expression is hidden in a
//! cast that does nothing.
//!
//! Invariant: type, modifier and collation of a column stay.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use crate::compat;
use crate::host::tree::{self, Node, Plan, PlanNode, Targets, Typed};

/// Nodes that one column may take when it is followed: few enough for the stack, were each below the other.
const MOST_OF_COLUMN: usize = 1_000;
/// Nodes that all columns of a node may take.
const MOST: usize = 100_000;

/// Where references are looked up, and how many nodes there may still be; 0 once there were too many, or a
/// reference led nowhere.
struct Place<'a> {
    plan: Plan<'a>,
    left: usize,
    /// The place that led here. Null at the top.
    above: *const Self,
}

/// The list of columns of `plan`, whose references are set, for the node that takes its place.
pub fn columns(plan: Plan<'_>) -> *mut pg_sys::List {
    let mut list = std::ptr::null_mut();
    let mut left = MOST;
    for target in plan.targets().iter() {
        let expression = target.expr();
        // SAFETY: entries are copied before they are changed; the place lives as long as the walk.
        unsafe {
            let entry = pg_sys::flatCopyTargetEntry(target.as_ptr());
            if reference(expression).is_some() {
                let allowed = left.min(MOST_OF_COLUMN);
                let mut place = Place { plan, left: allowed, above: std::ptr::null() };
                let followed = tree::guarded(|| follow(expression.as_ptr(), (&raw mut place).cast()));
                (*entry).expr = if place.left > 0 { followed.cast() } else { hidden(expression) };
                left -= allowed - place.left;
            } else if expression.contains(|tag| tag == NodeTag::T_WindowFunc) {
                let calls = || window_calls(expression.as_ptr(), std::ptr::null_mut());
                (*entry).expr = tree::guarded(calls).cast();
            }
            list = pg_sys::lappend(list, entry.cast());
        }
    }
    list
}

/// A copy of an expression in which EXPLAIN can show the calls of window functions.
unsafe extern "C-unwind" fn window_calls(node: *mut pg_sys::Node, data: *mut c_void) -> *mut pg_sys::Node {
    // SAFETY: the server passes valid nodes, or null.
    unsafe {
        let Some(part) = Node::new(node) else { return node };
        let copy = tree::mutate(node, window_calls, data);
        shown_call(part, copy)
    }
}

/// What EXPLAIN is shown of a node that was copied.
///
/// # Safety
/// Both are valid and of one kind.
unsafe fn shown_call(node: Node<'_>, copy: *mut pg_sys::Node) -> *mut pg_sys::Node {
    if node.as_a::<pg_sys::WindowFunc>().is_none() {
        return copy;
    }
    // SAFETY: the caller's promise.
    unsafe { compat::shown_window_call(copy.cast()) }.map_or(copy, |shown| shown.cast())
}

/// A copy of an expression with what its references stand for.
unsafe extern "C-unwind" fn follow(node: *mut pg_sys::Node, data: *mut c_void) -> *mut pg_sys::Node {
    // SAFETY: the server passes valid nodes, or null, and the place of `columns`; nothing here is owned.
    unsafe {
        let place = data.cast::<Place<'_>>();
        let Some(part) = Node::new(node).filter(|_| (*place).left > 0) else { return node };
        (*place).left -= 1;
        let Some(var) = reference(part) else {
            let param = part.as_a::<pg_sys::Param>();
            return match param.and_then(|param| passed(data.cast(), param)) {
                Some((value, outer)) => follow_in(outer, value, data.cast()),
                None => shown_call(part, tree::mutate(node, follow, data)),
            };
        };
        if is_of_parent((*place).plan, var) {
            let column = tree::mutate(node, follow, data).cast::<pg_sys::Var>();
            (*column).varno = var.varnosyn.cast_signed();
            (*column).varattno = var.varattnosyn;
            return column.cast();
        }
        let Some((plan, found)) = target((*place).plan, var) else {
            (*place).left = 0;
            return node;
        };
        let below = Place { plan, left: (*place).left, above: place };
        follow_in(below, found, place)
    }
}

/// What an expression stands for at a place that was reached from another one.
unsafe fn follow_in(mut place: Place<'_>, node: Node<'_>, from: *mut Place<'_>) -> *mut pg_sys::Node {
    // SAFETY: as `follow`; the place lives as long as the walk.
    unsafe {
        let followed = follow(node.as_ptr(), (&raw mut place).cast());
        (*from).left = place.left;
        followed
    }
}

/// The value that a nested loop above passes to its inner side as this parameter, and the place where the
/// value is an expression. EXPLAIN does not find the loop from the new node, which is above it.
unsafe fn passed<'a>(
    place: *const Place<'a>,
    param: Typed<'_, pg_sys::Param>,
) -> Option<(Node<'a>, Place<'a>)> {
    if param.paramkind != pg_sys::ParamKind::PARAM_EXEC {
        return None;
    }
    // SAFETY: places above live as long as those that they led to.
    unsafe {
        let (mut at, left) = (place, (*place).left);
        while let Some(above) = (*at).above.as_ref() {
            if let PlanNode::NestLoop(join) = above.plan.kind()
                && above.plan.inner().map(Plan::as_ptr) == Some((*at).plan.as_ptr())
                && let Some(found) = join.parameters().iter().find(|found| found.paramno == param.paramid)
            {
                return Some((found.value(), Place { plan: above.plan, left, above: above.above }));
            }
            at = above;
        }
        None
    }
}

/// An expression that is a column of a node below, or of what an index or a remote scan gives.
fn reference(node: Node<'_>) -> Option<Typed<'_, pg_sys::Var>> {
    let var = node.as_a::<pg_sys::Var>()?;
    matches!(var.varno, pg_sys::OUTER_VAR | pg_sys::INNER_VAR | pg_sys::INDEX_VAR).then_some(var)
}

/// Whether a column of an Append is one of the table that its children are partitions of.
fn is_of_parent(plan: Plan<'_>, var: Typed<'_, pg_sys::Var>) -> bool {
    const BITS: u32 = u64::BITS;
    let parents = match plan.kind() {
        PlanNode::Append(append) => append.apprelids,
        PlanNode::MergeAppend(append) => append.apprelids,
        _ => return false,
    };
    // SAFETY: a set of the plan's, or null, which has as many words as it says.
    let word = unsafe {
        let Some(parents) = parents.as_ref() else { return false };
        let words = parents.words.as_slice(usize::try_from(parents.nwords).unwrap_or(0));
        words.get((var.varnosyn / BITS) as usize).copied().unwrap_or(0)
    };
    word >> (var.varnosyn % BITS) & 1 == 1
}

/// The meaning of a reference in a plan's expressions, and the plan to which that meaning refers.
fn target<'a>(plan: Plan<'a>, var: Typed<'_, pg_sys::Var>) -> Option<(Plan<'a>, Node<'a>)> {
    let (plan, list): (_, Targets<'a>) = match (var.varno, plan.kind()) {
        (pg_sys::INDEX_VAR, PlanNode::IndexOnlyScan(scan)) => (plan, scan.columns()),
        (pg_sys::INDEX_VAR, PlanNode::ForeignScan(scan)) => (plan, scan.columns()),
        (pg_sys::INDEX_VAR, PlanNode::CustomScan(scan)) => (plan, scan.columns()),
        (pg_sys::INDEX_VAR, _) => return None,
        (which, kind) => {
            let below = match kind {
                _ if which == pg_sys::INNER_VAR => plan.inner(),
                PlanNode::Append(append) => append.inputs().get(0),
                PlanNode::MergeAppend(append) => append.inputs().get(0),
                _ => plan.outer(),
            }?;
            (below, below.targets())
        }
    };
    let entry = list.iter().find(|entry| entry.resno == var.varattno)?;
    Some((plan, entry.expr()))
}

/// The same expression inside a cast that no reader follows. EXPLAIN shows the inner expression.
fn hidden(node: Node<'_>) -> *mut pg_sys::Expr {
    let (kind, typmod, collation) = (node.type_oid(), node.typmod(), node.collation());
    let form = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
    // SAFETY: a new node over a valid one.
    unsafe { pg_sys::makeRelabelType(node.as_ptr().cast(), kind, typmod, collation, form).cast() }
}
