//! Hash joins.
//!
//! A join keeps the server's inner side, with two exceptions. Semi and anti joins keep the side that is
//! expected to have fewer rows. An inner join keeps its outer side if that is expected to be far smaller.
//! Join clauses are pairs of expressions over the outer and the inner side. Further clauses of the join
//! decide about pairs, conditions of the node about joined rows.

use pgrx::pg_sys;
use query::{Expression, JoinKind, Plan};

use super::expressions;
use super::scope::Scope;
use super::{Context, Order, Relation, decline, functions, input, keys as key_values, subplan, target_list};
use crate::compat;
use crate::host::tree::{self, Node, PlanNode, Typed};
use crate::vectorised::translated::Reason;

/// A hash join.
pub fn hash_join(context: &mut Context<'_>, join: Typed<'_, pg_sys::HashJoin>) -> Result<Relation, Reason> {
    let node = join.join();
    let PlanNode::Hash(hash) = node.plan().second_input().kind() else {
        return decline("hash join without its hash");
    };
    let clauses: Vec<_> = join.hash_clauses().iter().collect();
    let quals: Vec<_> = node.conditions().iter().collect();
    joined(context, node, hash.plan().input(), &clauses, &quals)
}

/// A merge join. Its sorts are left out, so its reader must not rely on the order of its rows.
pub fn merge_join(
    context: &mut Context<'_>,
    join: Typed<'_, pg_sys::MergeJoin>,
    order: Order,
) -> Result<Relation, Reason> {
    if order == Order::Kept {
        return decline("merge join whose order may be relied on");
    }
    let node = join.join();
    let clauses: Vec<_> = join.merge_clauses().iter().collect();
    let quals: Vec<_> = node.conditions().iter().collect();
    joined(context, node, node.plan().second_input(), &clauses, &quals)
}

/// A nested loop without parameters. The expressions that it compares for equality become the keys.
pub fn nested_loop(
    context: &mut Context<'_>,
    join: Typed<'_, pg_sys::NestLoop>,
    order: Order,
) -> Result<Relation, Reason> {
    if order == Order::Kept {
        return decline("nested loop whose order may be relied on");
    }
    if !join.parameters().is_empty() {
        return decline("nested loop with parameters");
    }
    let node = join.join();
    let (clauses, others): (Vec<_>, Vec<_>) =
        node.conditions().iter().partition(|&clause| is_outer_with_inner(clause));
    let inner = node.plan().second_input();
    // Without keys every pair is compared, which only pays where one side is known to be tiny.
    if clauses.is_empty() && inner.plan_rows > 1.5 {
        return decline("nested loop without an equality");
    }
    joined(context, node, inner, &clauses, &others)
}

/// `outer = inner`: an operator with columns of the outer side on its left and of the inner side on its
/// right.
fn is_outer_with_inner(clause: Node<'_>) -> bool {
    let Some(expr) = clause.as_a::<pg_sys::OpExpr>() else { return false };
    let (Some(left), Some(right)) = (expr.args().get(0), expr.args().get(1)) else { return false };
    functions::is_equality(&expr) && only_of(left, pg_sys::OUTER_VAR) && only_of(right, pg_sys::INNER_VAR)
}

/// Columns of one side, and at least one.
fn only_of(node: Node<'_>, side: i32) -> bool {
    let flags = pg_sys::PVC_RECURSE_AGGREGATES | pg_sys::PVC_RECURSE_PLACEHOLDERS;
    let vars = node.pulled(flags);
    let is_of_side = |node: Node<'_>| node.as_a::<pg_sys::Var>().is_some_and(|var| var.varno == side);
    !vars.is_empty() && vars.into_iter().all(is_of_side)
}

/// A join of a node's outer side with `inner_plan` on `clauses` and `quals`.
fn joined(
    context: &mut Context<'_>,
    node: Typed<'_, pg_sys::Join>,
    inner_plan: tree::Plan<'_>,
    clauses: &[Node<'_>],
    quals: &[Node<'_>],
) -> Result<Relation, Reason> {
    let plan = node.plan();
    // A join that asks which rows of its inner side have a match is one whose sides have changed places.
    let flipped = is_of_inner(node.jointype);
    let (outer_plan, inner_plan) =
        if flipped { (inner_plan, plan.input()) } else { (plan.input(), inner_plan) };
    let kind = existence_kept(kind(node.jointype)?, outer_plan, inner_plan);
    let (quals, after) = match kind {
        JoinKind::Inner => subplan::of_inner_join(quals, plan.conditions()),
        _ => (quals.to_vec(), plan.conditions().iter().collect()),
    };
    let mut outer = input(context, outer_plan, Order::Any)?.plain();
    let mut inner = input(context, inner_plan, Order::Any)?.plain();
    let keys = clauses
        .iter()
        .map(|&clause| match flipped {
            true => key(context, clause, &inner.columns, &outer.columns).map(|(inner, outer)| (outer, inner)),
            false => key(context, clause, &outer.columns, &inner.columns),
        })
        .collect::<Result<(Vec<_>, Vec<_>), Reason>>()?;
    let keys = (key_values::below(&mut outer, keys.0), key_values::below(&mut inner, keys.1));
    let keys = keys.0.into_iter().zip(keys.1).collect::<Vec<_>>();
    let (of_outer, of_inner) = (outer.plan.types(), inner.plan.types());
    // Whether the inner side is the right one of the join's, which is kept.
    let keeps_inner =
        kind.gives_left() && !(kind == JoinKind::Inner && is_far_smaller(outer_plan, inner_plan));
    let (outer_at, inner_at) = if keeps_inner { (0, of_outer.len()) } else { (of_inner.len(), 0) };
    let (outers, inners) = (shifted(&outer.columns, outer_at)?, shifted(&inner.columns, inner_at)?);
    let of_pairs = sides(flipped, &outers, &inners);
    let mut conditions = expressions::conditions(context, quals, of_pairs)?;
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
    // A semi or anti join that keeps its outer side gives only the columns of that side.
    let outers = if kind.gives_left() { outers } else { outer.columns.clone() };
    let scope = sides(flipped, &outers, &inners);
    let columns = target_list(context, plan, scope)?;
    if kind == JoinKind::Inner && condition.is_none() && after.is_empty() {
        let mut read = vec![false; types.len()];
        columns.iter().for_each(|part| part.mark_columns(&mut read));
        let (left, right) = read.split_at(outer_at.max(inner_at));
        let (read_outer, read_inner) = if keeps_inner { (left, right) } else { (right, left) };
        let flipped = keys.iter().map(|(outer, inner)| (inner.clone(), outer.clone())).collect::<Vec<_>>();
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
        false => (inner.plan, outer.plan, keys.into_iter().map(|(outer, inner)| (inner, outer)).collect()),
    };
    let joined = Plan::Join { kind, left: Box::new(left), right: Box::new(right), keys, condition };
    Ok(Relation { plan: subplan::filtered(context, joined, after, scope)?, columns })
}

/// Whether the outer side of an inner join takes so much less memory that it is kept instead. The scan of the
/// other side then decodes most columns only for rows with a partner. The difference has to be large, because
/// the server has reasons to keep the inner side that do not show in a plan.
fn is_far_smaller(outer: tree::Plan<'_>, inner: tree::Plan<'_>) -> bool {
    const TIMES: f64 = 4.0;
    const MANY_ROWS: f64 = 10_000.0;
    let bytes = |plan: tree::Plan<'_>| plan.plan_rows * f64::from(plan.plan_width.max(8));
    inner.plan_rows >= MANY_ROWS && outer.plan_rows < inner.plan_rows && bytes(outer) * TIMES < bytes(inner)
}

/// A semi or anti join keeps the side that the server expects to be smaller.
fn existence_kept(kind: JoinKind, outer: tree::Plan<'_>, inner: tree::Plan<'_>) -> JoinKind {
    let outer_is_smaller = outer.plan_rows < inner.plan_rows;
    match kind {
        JoinKind::Semi if outer_is_smaller => JoinKind::RightSemi,
        JoinKind::Anti if outer_is_smaller => JoinKind::RightAnti,
        _ => kind,
    }
}

/// A semi join that keeps the `other` side, in place of a join with distinct rows. The server may join the
/// distinct rows of one side where the query only asks whether there is one. If no column of the distinct
/// rows is read, a semi join gives the same, and no rows have to be made distinct. It is used if the other
/// side is expected to be smaller than the input of the distinct rows.
fn of_distinct(
    distinct: &Plan,
    distinct_node: tree::Plan<'_>,
    keys: &[(Expression, Expression)],
    other: &Plan,
    other_node: tree::Plan<'_>,
) -> Option<Plan> {
    let Plan::Aggregate { input, keys: groups, aggregates, .. } = distinct else { return None };
    let is_larger = distinct_node.outer().is_some_and(|from| from.plan_rows > other_node.plan_rows);
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

/// Plain columns, `by` places further.
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
        other if compat::RIGHT_SEMI == Some(other) => JoinKind::Semi,
        other if compat::RIGHT_ANTI == Some(other) => JoinKind::Anti,
        _ => return decline("join type"),
    })
}

/// Whether a join asks which rows of its inner side have a match.
fn is_of_inner(jointype: pg_sys::JoinType::Type) -> bool {
    compat::RIGHT_SEMI == Some(jointype) || compat::RIGHT_ANTI == Some(jointype)
}

/// What the server calls the outer and the inner side. `flipped`: they have changed places.
const fn sides<'a>(flipped: bool, outer: &'a [Expression], inner: &'a [Expression]) -> Scope<'a> {
    match flipped {
        true => Scope::Inputs { outer: inner, inner: outer },
        false => Scope::Inputs { outer, inner },
    }
}

/// One pair of keys: the sides of an equality, cast to what they are compared as.
fn key(
    context: &mut Context<'_>,
    clause: Node<'_>,
    outer: &[Expression],
    inner: &[Expression],
) -> Result<(Expression, Expression), Reason> {
    let Some(expr) = clause.as_a::<pg_sys::OpExpr>() else {
        return decline("join clause that is no operator");
    };
    let none: &[Expression] = &[];
    let outer = Scope::Inputs { outer, inner: none };
    let inner = Scope::Inputs { outer: none, inner };
    functions::join_key_of(context, expr, outer, inner)
}
