//! Scans of columnar tables.
//!
//! The scan node stays in the plan as the description of its source: which table, and the clauses that are
//! answered on encoded data (`custom_exprs`). Its other conditions become a filter in the server's order,
//! which is the order that row security wants.

use pgrx::pg_sys::{self, NodeTag};
use query::{Expression, Plan};

use super::expressions;
use super::scope::Scope;
use super::{Context, Order, Relation, decline, input, subplan, target_list, types};
use crate::host::tree;
use crate::scan;
use crate::vectorised::translated::{Reason, SourceSpec};

/// True for our scan node, run by one process.
///
/// # Safety
/// `plan` is a plan node.
pub unsafe fn is_columnar(plan: *mut pg_sys::Plan) -> bool {
    // SAFETY: the cast follows the tag.
    unsafe {
        (*plan).type_ == NodeTag::T_CustomScan
            && (*plan.cast::<pg_sys::CustomScan>()).methods == scan::scan_methods()
            && !(*plan).parallel_aware
    }
}

/// A columnar scan.
///
/// # Safety
/// `is_columnar`.
pub unsafe fn columnar(context: &mut Context<'_>, scan: *mut pg_sys::CustomScan) -> Result<Relation, Reason> {
    // SAFETY: a finished plan node of ours; the lists hold expressions and target entries.
    unsafe {
        let plan = &raw mut (*scan).scan.plan;
        let relid = (*scan).scan.scanrelid;
        let mut columns: Vec<(usize, pg_sys::Oid)> = Vec::new();
        for list in [(*plan).targetlist, (*plan).qual] {
            let flags = pg_sys::PVC_RECURSE_AGGREGATES | pg_sys::PVC_RECURSE_PLACEHOLDERS;
            for var in tree::pulled(list.cast(), flags) {
                let var = var.cast::<pg_sys::Var>();
                let Ok(attno) = usize::try_from((*var).varattno) else { return decline("system column") };
                let Some(attribute) = attno.checked_sub(1) else { return decline("whole row") };
                if !columns.iter().any(|(known, _)| *known == attribute) {
                    columns.push((attribute, (*var).vartype));
                }
            }
        }
        columns.sort_unstable_by_key(|(attribute, _)| *attribute);
        let attributes = columns.iter().map(|(attribute, _)| *attribute).collect::<Vec<_>>();
        let scope = Scope::Table { relid, attributes: &attributes };
        let targets = target_list(context, plan, scope)?;
        let types = columns.iter().map(|(_, type_oid)| types::logical(*type_oid)).collect();
        let source = context.sources.len();
        context.sources.push(SourceSpec::Columnar { scan, attributes: attributes.clone() });
        let rows = subplan::filtered(context, Plan::Scan { source, types }, (*plan).qual, scope)?;
        Ok(Relation { plan: rows, columns: targets })
    }
}

/// A subquery that the planner left as one: its rows under other names.
///
/// # Safety
/// A finished plan node.
pub unsafe fn subquery(
    context: &mut Context<'_>,
    scan: *mut pg_sys::SubqueryScan,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: the node's parts are a plan and lists of expressions.
    unsafe {
        let plan = &raw mut (*scan).scan.plan;
        let below = input(context, (*scan).subplan, order)?.plain();
        let scope = Scope::Subquery { relid: (*scan).scan.scanrelid, columns: &below.columns };
        let columns = target_list(context, plan, scope)?;
        Ok(Relation { plan: subplan::filtered(context, below.plan, (*plan).qual, scope)?, columns })
    }
}

/// A Result that computes columns of its input.
///
/// # Safety
/// A finished plan node.
pub unsafe fn result(
    context: &mut Context<'_>,
    result: *mut pg_sys::Result,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: the node's parts are a plan, or null, and lists of expressions.
    unsafe {
        let plan = &raw mut (*result).plan;
        if (*plan).lefttree.is_null() || !(*result).resconstantqual.is_null() {
            return decline("rows without a table, or a condition on the whole");
        }
        let below = input(context, (*plan).lefttree, order)?.plain();
        let scope = Scope::Inputs { outer: &below.columns, inner: &[] };
        let conditions = expressions::conditions(context, (*plan).qual, scope)?;
        let columns = target_list(context, plan, scope)?;
        Ok(Relation { plan: filtered(below.plan, conditions), columns })
    }
}

/// A plan's rows for which all conditions are TRUE, looked at one after the other.
pub fn filtered(plan: Plan, conditions: Vec<Expression>) -> Plan {
    conditions.into_iter().fold(plan, |plan, condition| Plan::Filter { input: Box::new(plan), condition })
}
