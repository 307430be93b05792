//! Scans of columnar tables.
//!
//! The scan node stays in the plan as the description of its source. It names the table and the clauses that
//! are answered on encoded data (`custom_exprs`). Its other conditions become a filter in the server's order,
//! which row security needs.

use pgrx::pg_sys;
use query::{Expression, Plan};

use super::expressions;
use super::scope::Scope;
use super::{Context, Order, Relation, decline, input, subplan, target_list, types};
use crate::host::tree::{self, PlanNode, Typed};
use crate::vectorised::translated::{Reason, SourceSpec};

/// True for our scan node, run by one process.
pub fn is_columnar(plan: tree::Plan<'_>) -> bool {
    matches!(plan.kind(), PlanNode::CustomScan(scan) if scan.methods == crate::scan::scan_methods())
        && !plan.parallel_aware
}

/// A columnar scan.
pub fn columnar(context: &mut Context<'_>, scan: Typed<'_, pg_sys::CustomScan>) -> Result<Relation, Reason> {
    let plan = scan.plan();
    let mut columns: Vec<(usize, pg_sys::Oid)> = Vec::new();
    let flags = pg_sys::PVC_RECURSE_AGGREGATES | pg_sys::PVC_RECURSE_PLACEHOLDERS;
    for list in [plan.targets().pulled(flags), plan.conditions().pulled(flags)] {
        for var in list.into_iter().filter_map(|node| node.as_a::<pg_sys::Var>()) {
            let Ok(attno) = usize::try_from(var.varattno) else { return decline("system column") };
            let Some(attribute) = attno.checked_sub(1) else { return decline("whole row") };
            if !columns.iter().any(|(known, _)| *known == attribute) {
                columns.push((attribute, var.vartype));
            }
        }
    }
    columns.sort_unstable_by_key(|(attribute, _)| *attribute);
    let attributes = columns.iter().map(|(attribute, _)| *attribute).collect::<Vec<_>>();
    let scope = Scope::Table { relid: scan.scan.scanrelid, attributes: &attributes };
    let targets = target_list(context, plan, scope)?;
    let types = columns.iter().map(|(_, type_oid)| types::logical(*type_oid)).collect();
    let source = context.sources.len();
    context.sources.push(SourceSpec::Columnar { scan: scan.as_ptr(), attributes: attributes.clone() });
    let scanned = Plan::Scan { source, types };
    let rows = subplan::filtered(context, scanned, plan.conditions().iter(), scope)?;
    Ok(Relation { plan: rows, columns: targets })
}

/// A subquery that the planner left as one: its rows under other names.
pub fn subquery(
    context: &mut Context<'_>,
    scan: Typed<'_, pg_sys::SubqueryScan>,
    order: Order,
) -> Result<Relation, Reason> {
    let plan = scan.plan();
    let below = input(context, scan.subquery(), order)?.plain();
    let scope = Scope::Subquery { relid: scan.scan.scanrelid, columns: &below.columns };
    let columns = target_list(context, plan, scope)?;
    let rows = subplan::filtered(context, below.plan, plan.conditions().iter(), scope)?;
    Ok(Relation { plan: rows, columns })
}

/// A Result that computes columns of its input.
pub fn result(
    context: &mut Context<'_>,
    result: Typed<'_, pg_sys::Result>,
    order: Order,
) -> Result<Relation, Reason> {
    let plan = result.plan();
    let (Some(child), None) = (plan.outer(), result.condition()) else {
        return decline("rows without a table, or a condition on the whole");
    };
    let below = input(context, child, order)?.plain();
    let scope = Scope::Inputs { outer: &below.columns, inner: &[] };
    let conditions = expressions::conditions(context, plan.conditions().iter(), scope)?;
    let columns = target_list(context, plan, scope)?;
    Ok(Relation { plan: filtered(below.plan, conditions), columns })
}

/// A plan's rows for which all conditions are TRUE, looked at one after the other.
pub fn filtered(plan: Plan, conditions: Vec<Expression>) -> Plan {
    conditions.into_iter().fold(plan, |plan, condition| Plan::Filter { input: Box::new(plan), condition })
}
