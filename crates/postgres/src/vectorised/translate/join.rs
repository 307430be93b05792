//! Hash joins.
//!
//! The server's inner side is the one that is kept, but for semi and anti joins, which keep the side that is
//! expected to have fewer rows, and inner joins whose outer side is expected to be far smaller. Join clauses
//! are pairs of expressions over the outer and the inner side; further clauses of the join decide about
//! pairs, conditions of the node about joined rows.

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag};
use query::{Expression, JoinKind, Plan};

use super::expressions;
use super::scope::Scope;
use super::{Context, Order, Relation, decline, functions, input, keys as key_values, subplan, target_list};
use crate::host::tree;
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

/// `outer = inner`: an operator with columns of the outer side on its left and of the inner side on its
/// right.
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
        let vars = tree::pulled(node, flags);
        !vars.is_empty() && vars.into_iter().all(|var| (*var.cast::<pg_sys::Var>()).varno == side)
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
        let plan = &raw mut (*node).plan;
        let outer_plan = (*plan).lefttree;
        let kind = existence_kept(kind((*node).jointype)?, outer_plan, inner_plan);
        let (quals, after) = match kind {
            JoinKind::Inner => subplan::of_inner_join(quals, (*plan).qual),
            _ => (quals, (*plan).qual),
        };
        let mut outer = input(context, outer_plan, Order::Any)?.plain();
        let mut inner = input(context, inner_plan, Order::Any)?.plain();
        let keys = clauses
            .iter()
            .map(|&clause| key(context, clause, &outer.columns, &inner.columns))
            .collect::<Result<(Vec<_>, Vec<_>), Reason>>()?;
        let keys = (key_values::below(&mut outer, keys.0), key_values::below(&mut inner, keys.1));
        let keys = keys.0.into_iter().zip(keys.1).collect::<Vec<_>>();
        let (of_outer, of_inner) = (outer.plan.types(), inner.plan.types());
        // Whether the inner side is the right one of the join's, which is kept.
        let keeps_inner =
            kind.gives_left() && !(kind == JoinKind::Inner && is_far_smaller(outer_plan, inner_plan));
        let (outer_at, inner_at) = if keeps_inner { (0, of_outer.len()) } else { (of_inner.len(), 0) };
        let (outers, inners) = (shifted(&outer.columns, outer_at)?, shifted(&inner.columns, inner_at)?);
        let mut conditions =
            expressions::conditions(context, quals, Scope::Inputs { outer: &outers, inner: &inners })?;
        let calls = |part: &Expression| part.needs_host();
        if conditions.iter().any(calls) || keys.iter().any(|(outer, inner)| calls(outer) || calls(inner)) {
            return decline("function of the server's in a join");
        }
        let condition = conditions.pop();
        let types = if outer_at == 0 { [of_outer, of_inner].concat() } else { [of_inner, of_outer].concat() };
        if !(kind.gives_left() && kind.gives_right())
            && condition.as_ref().is_some_and(|condition| condition.can_raise(&types))
        {
            // The server looks for the first match only.
            return decline("condition of a semi join that may raise an error");
        }
        // What stands above a join that keeps its outer side sees nothing but that.
        let outers = if kind.gives_left() { outers } else { outer.columns.clone() };
        let scope = Scope::Inputs { outer: &outers, inner: &inners };
        let columns = target_list(context, plan, scope)?;
        if kind == JoinKind::Inner && condition.is_none() && after.is_null() {
            let mut read = vec![false; types.len()];
            columns.iter().for_each(|part| part.mark_columns(&mut read));
            let (left, right) = read.split_at(outer_at.max(inner_at));
            let (read_outer, read_inner) = if keeps_inner { (left, right) } else { (right, left) };
            let flipped =
                keys.iter().map(|(outer, inner)| (inner.clone(), outer.clone())).collect::<Vec<_>>();
            let semi = match (read_outer.contains(&true), read_inner.contains(&true)) {
                (false, _) => of_distinct(&outer.plan, outer_plan, &keys, &inner.plan, inner_plan),
                (_, false) => of_distinct(&inner.plan, inner_plan, &flipped, &outer.plan, outer_plan),
                _ => None,
            };
            if let Some(semi) = semi {
                let scope = Scope::Inputs { outer: &outer.columns, inner: &inner.columns };
                return Ok(Relation { plan: semi, columns: target_list(context, plan, scope)? });
            }
        }
        let (left, right, keys) = match keeps_inner {
            true => (outer.plan, inner.plan, keys),
            false => {
                (inner.plan, outer.plan, keys.into_iter().map(|(outer, inner)| (inner, outer)).collect())
            }
        };
        let joined = Plan::Join { kind, left: Box::new(left), right: Box::new(right), keys, condition };
        Ok(Relation { plan: subplan::filtered(context, joined, after, scope)?, columns })
    }
}

/// Whether the outer side of an inner join takes so much less memory that it is kept instead: the scan of the
/// other side then decodes most columns for rows with a partner only. The server has reasons to keep the
/// inner side that do not show in a plan, so it has to be much.
unsafe fn is_far_smaller(outer: *mut pg_sys::Plan, inner: *mut pg_sys::Plan) -> bool {
    const TIMES: f64 = 4.0;
    const MANY_ROWS: f64 = 10_000.0;
    // SAFETY: plan nodes.
    unsafe {
        let bytes = |plan: *mut pg_sys::Plan| (*plan).plan_rows * f64::from((*plan).plan_width.max(8));
        (*inner).plan_rows >= MANY_ROWS
            && (*outer).plan_rows < (*inner).plan_rows
            && bytes(outer) * TIMES < bytes(inner)
    }
}

/// A semi or anti join keeps whichever side the server expects to be smaller.
unsafe fn existence_kept(kind: JoinKind, outer: *mut pg_sys::Plan, inner: *mut pg_sys::Plan) -> JoinKind {
    // SAFETY: plan nodes.
    let outer_is_smaller = unsafe { (*outer).plan_rows < (*inner).plan_rows };
    match kind {
        JoinKind::Semi if outer_is_smaller => JoinKind::RightSemi,
        JoinKind::Anti if outer_is_smaller => JoinKind::RightAnti,
        _ => kind,
    }
}

/// The server may join the distinct rows of one side where the query only asks whether there is one. Where
/// none of their columns is read and the other side is expected to be smaller than what they are made from,
/// that is a semi join with the other side kept: nothing has to be made distinct.
unsafe fn of_distinct(
    distinct: &Plan,
    distinct_node: *mut pg_sys::Plan,
    keys: &[(Expression, Expression)],
    other: &Plan,
    other_node: *mut pg_sys::Plan,
) -> Option<Plan> {
    let Plan::Aggregate { input, keys: groups, aggregates, .. } = distinct else { return None };
    // SAFETY: plan nodes, the one below null or a plan node.
    let is_larger = unsafe {
        let from = (*distinct_node).lefttree;
        !from.is_null() && (*from).plan_rows > (*other_node).plan_rows
    };
    if !aggregates.is_empty() || !is_larger {
        return None;
    }
    let mut compared = vec![false; groups.len()];
    let keys = keys
        .iter()
        .map(|(key, other)| {
            let Expression::Column(at) = key else { return None };
            *compared.get_mut(*at)? = true;
            Some((groups.get(*at)?.clone(), other.clone()))
        })
        .collect::<Option<Vec<_>>>()?;
    (!compared.contains(&false)).then(|| Plan::Join {
        kind: JoinKind::RightSemi,
        left: input.clone(),
        right: Box::new(other.clone()),
        keys,
        condition: None,
    })
}

/// Plain columns, so many places further.
fn shifted(columns: &[Expression], by: usize) -> Result<Vec<Expression>, Reason> {
    let columns = columns.iter().map(|column| match column {
        Expression::Column(at) => Ok(Expression::Column(at + by)),
        _ => decline("computed column in a join"),
    });
    columns.collect()
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
