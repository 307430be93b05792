//! Hash joins.
//!
//! The server's inner side is the one that is kept. Its join clauses are pairs of expressions over the outer and the inner side; further clauses of the join decide about pairs,
//! conditions of the node about joined rows.

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag};
use query::{Expression, JoinKind, Plan};

use super::expressions::{self, Scope};
use super::{Context, Order, Relation, decline, functions, input, scan, target_list};
use crate::vectorised::translated::Reason;

/// A hash join.
///
/// # Safety
/// A finished plan node.
pub unsafe fn hash_join(context: &mut Context<'_>, join: *mut pg_sys::HashJoin) -> Result<Relation, Reason> {
    // SAFETY: a hash join's inner side is a Hash; the lists hold expressions.
    unsafe {
        let node = &raw mut (*join).join;
        let hash = (*node).plan.righttree;
        if (*hash).type_ != NodeTag::T_Hash {
            return decline("hash join without its hash");
        }
        let clauses = PgList::<pg_sys::Node>::from_pg((*join).hashclauses);
        let clauses = clauses.iter_ptr().collect::<Vec<_>>();
        joined(context, node, (*hash).lefttree, &clauses, (*node).joinqual)
    }
}

/// A merge join: its sorts are left out, so nobody may rely on the order of its rows.
///
/// # Safety
/// A finished plan node.
pub unsafe fn merge_join(
    context: &mut Context<'_>,
    join: *mut pg_sys::MergeJoin,
    order: Order,
) -> Result<Relation, Reason> {
    if order == Order::Kept {
        return decline("merge join whose order may be relied on");
    }
    // SAFETY: the lists hold expressions.
    unsafe {
        let node = &raw mut (*join).join;
        let clauses = PgList::<pg_sys::Node>::from_pg((*join).mergeclauses);
        let clauses = clauses.iter_ptr().collect::<Vec<_>>();
        joined(context, node, (*node).plan.righttree, &clauses, (*node).joinqual)
    }
}

/// A nested loop without parameters: what it compares for equality becomes the keys.
///
/// # Safety
/// A finished plan node.
pub unsafe fn nested_loop(
    context: &mut Context<'_>,
    join: *mut pg_sys::NestLoop,
    order: Order,
) -> Result<Relation, Reason> {
    if order == Order::Kept {
        return decline("nested loop whose order may be relied on");
    }
    // SAFETY: the lists hold expressions.
    unsafe {
        if !(*join).nestParams.is_null() {
            return decline("nested loop with parameters");
        }
        let node = &raw mut (*join).join;
        let mut clauses = Vec::new();
        let mut others = std::ptr::null_mut();
        for clause in PgList::<pg_sys::Node>::from_pg((*node).joinqual).iter_ptr() {
            match is_outer_with_inner(clause) {
                true => clauses.push(clause),
                false => others = pg_sys::lappend(others, clause.cast()),
            }
        }
        // Without keys every pair is looked at, which only pays where one side is known to be tiny.
        if clauses.is_empty() && (*(*node).plan.righttree).plan_rows > 1.5 {
            return decline("nested loop without an equality");
        }
        joined(context, node, (*node).plan.righttree, &clauses, others)
    }
}

/// `outer = inner`: an operator with columns of the outer side on its left and of the inner side on its right.
unsafe fn is_outer_with_inner(clause: *mut pg_sys::Node) -> bool {
    // SAFETY: a valid expression; the cast follows the tag.
    unsafe {
        if (*clause).type_ != NodeTag::T_OpExpr {
            return false;
        }
        let expr = &*clause.cast::<pg_sys::OpExpr>();
        let args = PgList::<pg_sys::Node>::from_pg(expr.args);
        let (Some(left), Some(right)) = (args.get_ptr(0), args.get_ptr(1)) else { return false };
        functions::is_equality(expr) && only_of(left, pg_sys::OUTER_VAR) && only_of(right, pg_sys::INNER_VAR)
    }
}

/// Columns of one side, and at least one.
unsafe fn only_of(node: *mut pg_sys::Node, side: i32) -> bool {
    // SAFETY: a valid expression.
    unsafe {
        let flags = pg_sys::PVC_RECURSE_AGGREGATES | pg_sys::PVC_RECURSE_PLACEHOLDERS;
        let vars = PgList::<pg_sys::Var>::from_pg(pg_sys::pull_var_clause(node, flags as i32));
        !vars.is_empty() && vars.iter_ptr().all(|var| (*var).varno == side)
    }
}

/// A join of a node's outer side with `inner_plan` on `clauses` and `quals`.
unsafe fn joined(
    context: &mut Context<'_>,
    node: *mut pg_sys::Join,
    inner_plan: *mut pg_sys::Plan,
    clauses: &[*mut pg_sys::Node],
    quals: *mut pg_sys::List,
) -> Result<Relation, Reason> {
    // SAFETY: the caller passes the parts of a finished plan node.
    unsafe {
        let kind = kind((*node).jointype)?;
        let outer = input(context, (*node).plan.lefttree, Order::Any)?.plain();
        let inner = input(context, inner_plan, Order::Any)?.plain();
        let keys = clauses
            .iter()
            .map(|&clause| key(context, clause, &outer.columns, &inner.columns))
            .collect::<Result<Vec<_>, Reason>>()?;
        let width = outer.plan.types().len();
        let shifted = inner
            .columns
            .iter()
            .map(|column| match column {
                Expression::Column(at) => Ok(Expression::Column(at + width)),
                _ => decline("computed column in a join"),
            })
            .collect::<Result<Vec<_>, Reason>>()?;
        let scope = Scope::Inputs { outer: &outer.columns, inner: &shifted };
        let mut conditions = expressions::conditions(context, quals, scope)?;
        let calls = |part: &Expression| part.needs_host();
        if conditions.iter().any(calls) || keys.iter().any(|(outer, inner)| calls(outer) || calls(inner)) {
            return decline("function of the server's in a join");
        }
        let condition = conditions.pop();
        let plan = &raw mut (*node).plan;
        let after = expressions::conditions(context, (*plan).qual, scope)?;
        let columns = target_list(context, plan, scope)?;
        let joined =
            Plan::Join { kind, left: Box::new(outer.plan), right: Box::new(inner.plan), keys, condition };
        Ok(Relation { plan: scan::filtered(joined, after), columns })
    }
}

fn kind(jointype: pg_sys::JoinType::Type) -> Result<JoinKind, Reason> {
    use pg_sys::JoinType as J;
    Ok(match jointype {
        J::JOIN_INNER => JoinKind::Inner,
        J::JOIN_LEFT => JoinKind::Left,
        J::JOIN_RIGHT => JoinKind::Right,
        J::JOIN_FULL => JoinKind::Full,
        J::JOIN_SEMI => JoinKind::Semi,
        J::JOIN_ANTI => JoinKind::Anti,
        _ => return decline("join type"),
    })
}

/// One pair of keys: the sides of an equality, cast to what they are compared as.
unsafe fn key(
    context: &mut Context<'_>,
    clause: *mut pg_sys::Node,
    outer: &[Expression],
    inner: &[Expression],
) -> Result<(Expression, Expression), Reason> {
    // SAFETY: the cast follows the tag.
    unsafe {
        if (*clause).type_ != NodeTag::T_OpExpr {
            return decline("join clause that is no operator");
        }
        let none: &[Expression] = &[];
        let outer = Scope::Inputs { outer, inner: none };
        let inner = Scope::Inputs { outer: none, inner };
        functions::join_key(context, &*clause.cast(), outer, inner)
    }
}
