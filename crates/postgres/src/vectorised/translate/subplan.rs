//! Sub-plans as joins. `x NOT IN (SELECT y ...)` that the server keeps as a sub-plan becomes a null-aware
//! anti join. `x IN (SELECT y ...)` that it could not pull up becomes a semi join.
//!
//! Called with the conditions of scans, subqueries and joins. The sub-plan must not depend on the outer row,
//! and it must compare columns for equality. A condition only has to say whether it is TRUE for a row, so
//! NULL counts as false. Invariant: conditions are evaluated in the server's order. Conditions before the
//! sub-plan are evaluated on the rows that it has not yet seen.

use pgrx::pg_sys;
use query::{Expression, JoinKind, Plan};
use vector::LogicalType;

use super::expressions;
use super::functions::{self, Sides};
use super::scope::Scope;
use super::{Context, Order, Relation, decline, input, scan};
use crate::host::tree::{Expression as E, List, Node, Typed};
use crate::vectorised::plan_parts;
use crate::vectorised::translated::Reason;

/// The rows of `plan` for which all conditions, over what `scope` names, are TRUE.
pub fn filtered<'a>(
    context: &mut Context<'_>,
    mut plan: Plan,
    conditions: impl IntoIterator<Item = Node<'a>>,
    scope: Scope<'_>,
) -> Result<Plan, Reason> {
    let mut before = Vec::new();
    for condition in conditions {
        let Some((kind, subplan)) = membership(condition) else {
            before.push(condition);
            continue;
        };
        plan = scan::filtered(plan, expressions::conditions(context, before.drain(..), scope)?);
        let (keys, rows) = joined(context, subplan, scope, &plan.types())?;
        plan = Plan::Join { kind, left: Box::new(plan), right: Box::new(rows), keys, condition: None };
    }
    Ok(scan::filtered(plan, expressions::conditions(context, before, scope)?))
}

/// Splits an inner join's conditions into conditions of pairs and conditions to evaluate afterwards. The
/// latter are memberships in sub-plans, then `after`. For an inner join both ways give the same rows.
pub fn of_inner_join<'a>(conditions: &[Node<'a>], after: List<'a>) -> (Vec<Node<'a>>, Vec<Node<'a>>) {
    let (mut later, of_pairs): (Vec<_>, Vec<_>) =
        conditions.iter().partition(|&&condition| membership(condition).is_some());
    later.extend(after.iter());
    (of_pairs, later)
}

/// The join that a condition is, and its sub-plan.
fn membership(condition: Node<'_>) -> Option<(JoinKind, Typed<'_, pg_sys::SubPlan>)> {
    let (kind, node) = match condition.expression() {
        E::BoolExpr(expr) if expr.boolop == pg_sys::BoolExprType::NOT_EXPR => {
            (JoinKind::NullAwareAnti, expr.args().get(0)?)
        }
        _ => (JoinKind::Semi, condition),
    };
    let subplan = node.as_a::<pg_sys::SubPlan>()?;
    (subplan.subLinkType == pg_sys::SubLinkType::ANY_SUBLINK).then_some((kind, subplan))
}

/// The keys of the join with a sub-plan, and the sub-plan's rows. Its test compares with parameters that
/// stand for its columns.
fn joined(
    context: &mut Context<'_>,
    subplan: Typed<'_, pg_sys::SubPlan>,
    scope: Scope<'_>,
    outer: &[LogicalType],
) -> Result<(Vec<(Expression, Expression)>, Plan), Reason> {
    if !subplan.parParam.is_null() {
        return decline("sub-plan that depends on the row");
    }
    let tests: Vec<_> = match subplan.test().expression() {
        E::BoolExpr(expr) if expr.boolop == pg_sys::BoolExprType::AND_EXPR => expr.args().iter().collect(),
        _ => vec![subplan.test()],
    };
    // A sub-plan's number is its place in the statement's list.
    let place = usize::try_from(subplan.plan_id - 1).unwrap_or(usize::MAX);
    let Some(plan) = context.statement.subplans().get(place) else {
        return decline("sub-plan that is not there");
    };
    let Relation { plan: rows, columns } =
        input(context, plan_parts::kept(plan).unwrap_or(plan), Order::Any)?.plain();
    let inner = Scope::Inputs { outer: &[], inner: &columns };
    let mut keys = Vec::with_capacity(tests.len());
    for test in tests {
        let key = functions::join_key(context, of_columns(test, subplan)?, scope, inner)?;
        if key.0.needs_host() || key.1.needs_host() {
            return decline("function of the server's in a sub-plan's test");
        }
        // If the sub-plan has no rows, the server does not compute the values that it would compare with
        // them.
        if key.0.can_raise(outer) {
            return decline("sub-plan compared with what may raise an error");
        }
        keys.push(key);
    }
    Ok((keys, rows))
}

/// A test with the sub-plan's column in place of the parameter.
fn of_columns<'a>(test: Node<'a>, subplan: Typed<'a, pg_sys::SubPlan>) -> Result<Sides<'a>, Reason> {
    let Some(test) = test.as_a::<pg_sys::OpExpr>() else {
        return decline("sub-plan with a test that is no comparison");
    };
    let (Some(left), Some(right)) = (test.args().get(0), test.args().get(1)) else {
        return decline("sub-plan with a test of one argument");
    };
    let Some(right) = of_column(right, subplan.parameters()) else {
        return decline("sub-plan whose column is not compared as it is");
    };
    Ok(Sides { operator: test.opno, collation: test.inputcollid, left, right })
}

/// A parameter, or what it is relabelled as, as the column of the inner side that it stands for.
fn of_column<'a>(node: Node<'a>, parameters: List<'_, i32>) -> Option<Node<'a>> {
    match node.expression() {
        E::RelabelType(relabel) => {
            let arg = of_column(relabel.arg(), parameters)?;
            // SAFETY: a copy of the whole is a tree of its own; nobody frees what is made here before the
            // translation ends.
            unsafe {
                let copy = pg_sys::copyObjectImpl(relabel.as_ptr().cast()).cast::<pg_sys::RelabelType>();
                (*copy).arg = arg.as_ptr().cast();
                Node::new(copy.cast())
            }
        }
        E::Param(param) if param.paramkind == pg_sys::ParamKind::PARAM_EXEC => {
            let at = parameters.iter().position(|number| number == param.paramid)?;
            let (kind, typmod, collation) = (param.paramtype, param.paramtypmod, param.paramcollid);
            let number = i16::try_from(at + 1).ok()?;
            // SAFETY: a new node; as above.
            unsafe {
                Node::new(pg_sys::makeVar(pg_sys::INNER_VAR, number, kind, typmod, collation, 0).cast())
            }
        }
        _ => None,
    }
}
