//! `x NOT IN (SELECT y ...)` that the server keeps as a sub-plan, as a null-aware anti join; `x IN (SELECT y
//! ...)` that it could not pull up, as a semi join.
//!
//! Called with the conditions of scans, subqueries and joins. The sub-plan must not depend on the outer row
//! and compare columns for equality. Whether it is true for a row is all that matters of a condition, so the
//! unknown of NULLs counts as false. Invariant: conditions are looked at in the server's order, those before
//! the sub-plan on the rows that it has not yet seen.

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag};
use query::{Expression, JoinKind, Plan};
use vector::LogicalType;

use super::expressions;
use super::scope::Scope;
use super::{Context, Order, Relation, decline, functions, input, scan};
use crate::vectorised::replace;
use crate::vectorised::translated::Reason;

/// The rows of `plan` for which all conditions are TRUE.
///
/// # Safety
/// A list of conditions of a finished plan's node over what `scope` names.
pub unsafe fn filtered(
    context: &mut Context<'_>,
    mut plan: Plan,
    conditions: *mut pg_sys::List,
    scope: Scope<'_>,
) -> Result<Plan, Reason> {
    // SAFETY: the caller's promise; the lists made here hold the same conditions.
    unsafe {
        let mut before = std::ptr::null_mut();
        for condition in PgList::<pg_sys::Node>::from_pg(conditions).iter_ptr() {
            let Some((kind, subplan)) = membership(condition) else {
                before = pg_sys::lappend(before, condition.cast());
                continue;
            };
            plan = scan::filtered(plan, expressions::conditions(context, before, scope)?);
            before = std::ptr::null_mut();
            let (keys, rows) = joined(context, &*subplan, scope, &plan.types())?;
            plan = Plan::Join { kind, left: Box::new(plan), right: Box::new(rows), keys, condition: None };
        }
        Ok(scan::filtered(plan, expressions::conditions(context, before, scope)?))
    }
}

/// An inner join's conditions: those of pairs, and those to look at afterwards, which is the same:
/// memberships in sub-plans, then `after`.
///
/// # Safety
/// Lists of conditions of a finished plan's node.
pub unsafe fn of_inner_join(
    conditions: *mut pg_sys::List,
    after: *mut pg_sys::List,
) -> (*mut pg_sys::List, *mut pg_sys::List) {
    // SAFETY: the caller's promise; the lists made here hold the same conditions.
    unsafe {
        let (mut of_pairs, mut later) = (std::ptr::null_mut(), std::ptr::null_mut());
        for condition in PgList::<pg_sys::Node>::from_pg(conditions).iter_ptr() {
            let list = if membership(condition).is_some() { &mut later } else { &mut of_pairs };
            *list = pg_sys::lappend(*list, condition.cast());
        }
        for condition in PgList::<pg_sys::Node>::from_pg(after).iter_ptr() {
            later = pg_sys::lappend(later, condition.cast());
        }
        (of_pairs, later)
    }
}

/// The join that a condition is, and its sub-plan.
unsafe fn membership(condition: *mut pg_sys::Node) -> Option<(JoinKind, *mut pg_sys::SubPlan)> {
    // SAFETY: casts follow the tags.
    unsafe {
        let (kind, node) = match (*condition).type_ {
            NodeTag::T_BoolExpr => {
                let expr = &*condition.cast::<pg_sys::BoolExpr>();
                let inside = PgList::<pg_sys::Node>::from_pg(expr.args).get_ptr(0)?;
                if expr.boolop != pg_sys::BoolExprType::NOT_EXPR {
                    return None;
                }
                (JoinKind::NullAwareAnti, inside)
            }
            _ => (JoinKind::Semi, condition),
        };
        let is_any = (*node).type_ == NodeTag::T_SubPlan
            && (*node.cast::<pg_sys::SubPlan>()).subLinkType == pg_sys::SubLinkType::ANY_SUBLINK;
        is_any.then(|| (kind, node.cast()))
    }
}

/// The keys of the join with a sub-plan, and the sub-plan's rows.
unsafe fn joined(
    context: &mut Context<'_>,
    subplan: &pg_sys::SubPlan,
    scope: Scope<'_>,
    outer: &[LogicalType],
) -> Result<(Vec<(Expression, Expression)>, Plan), Reason> {
    // SAFETY: a sub-plan's number is its place in the statement's list; its test compares with parameters
    // that stand for its columns.
    unsafe {
        if !subplan.parParam.is_null() {
            return decline("sub-plan that depends on the row");
        }
        let test = subplan.testexpr;
        let tests = match (*test).type_ {
            NodeTag::T_BoolExpr
                if (*test.cast::<pg_sys::BoolExpr>()).boolop == pg_sys::BoolExprType::AND_EXPR =>
            {
                let parts = PgList::<pg_sys::Node>::from_pg((*test.cast::<pg_sys::BoolExpr>()).args);
                parts.iter_ptr().collect()
            }
            _ => vec![test],
        };
        let plans = PgList::<pg_sys::Plan>::from_pg(context.subplans);
        let place = usize::try_from(subplan.plan_id - 1).unwrap_or(usize::MAX);
        let Some(plan) = plans.get_ptr(place).filter(|plan| !plan.is_null()) else {
            return decline("sub-plan that is not there");
        };
        let Relation { plan: rows, columns } =
            input(context, replace::kept(plan).unwrap_or(plan), Order::Any)?.plain();
        let inner = Scope::Inputs { outer: &[], inner: &columns };
        let mut keys = Vec::with_capacity(tests.len());
        for test in tests {
            if (*test).type_ != NodeTag::T_OpExpr {
                return decline("sub-plan with a test that is no comparison");
            }
            // The test with the sub-plan's column in place of the parameter.
            let test = test.cast::<pg_sys::OpExpr>();
            let args = PgList::<pg_sys::Node>::from_pg((*test).args);
            let (Some(left), Some(right)) = (args.get_ptr(0), args.get_ptr(1)) else {
                return decline("sub-plan with a test of one argument");
            };
            let Some(right) = of_column(right, subplan.paramIds) else {
                return decline("sub-plan whose column is not compared as it is");
            };
            let mut compared = *test;
            compared.args = pg_sys::lappend(pg_sys::lappend(std::ptr::null_mut(), left.cast()), right.cast());
            let key = functions::join_key(context, &compared, scope, inner)?;
            if key.0.needs_host() || key.1.needs_host() {
                return decline("function of the server's in a sub-plan's test");
            }
            // Without rows of the sub-plan the server does not compute what it would compare with them.
            if key.0.can_raise(outer) {
                return decline("sub-plan compared with what may raise an error");
            }
            keys.push(key);
        }
        Ok((keys, rows))
    }
}

/// A parameter, or what it is relabelled as, as the column of the inner side that it stands for.
unsafe fn of_column(node: *mut pg_sys::Node, parameters: *mut pg_sys::List) -> Option<*mut pg_sys::Node> {
    // SAFETY: casts follow the tags; a list of numbers.
    unsafe {
        match (*node).type_ {
            NodeTag::T_RelabelType => {
                let copy = pg_sys::copyObjectImpl(node.cast()).cast::<pg_sys::RelabelType>();
                (*copy).arg = of_column((*copy).arg.cast(), parameters)?.cast();
                Some(copy.cast())
            }
            NodeTag::T_Param => {
                let param = &*node.cast::<pg_sys::Param>();
                if param.paramkind != pg_sys::ParamKind::PARAM_EXEC {
                    return None;
                }
                let count = if parameters.is_null() { 0 } else { (*parameters).length };
                let at = (0..count).find(|&at| pg_sys::list_nth_int(parameters, at) == param.paramid)?;
                let (kind, typmod, collation) = (param.paramtype, param.paramtypmod, param.paramcollid);
                let number = i16::try_from(at + 1).ok()?;
                Some(pg_sys::makeVar(pg_sys::INNER_VAR, number, kind, typmod, collation, 0).cast())
            }
            _ => None,
        }
    }
}
