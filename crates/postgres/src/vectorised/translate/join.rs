//! Hash joins.
//!
//! The server's inner side is the one that is kept. Its join clauses are pairs of expressions over the outer and the inner side; further clauses of the join decide about pairs,
//! conditions of the node about joined rows.

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag};
use query::{Expression, JoinKind, Plan};

use super::expressions::{self, Scope};
use super::{Context, Order, Relation, decline, functions, input, scan, targets};
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
        let condition = expressions::condition(context, quals, scope)?;
        let plan = &raw mut (*node).plan;
        let after = expressions::condition(context, (*plan).qual, scope)?;
        let columns = targets(plan)
            .into_iter()
            .map(|target| expressions::expression(context, target, scope))
            .collect::<Result<Vec<_>, Reason>>()?;
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
