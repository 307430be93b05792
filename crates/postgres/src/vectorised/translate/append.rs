//! Append and MergeAppend: partitions, inheritance, UNION ALL.
//!
//! Which inputs a parameter makes superfluous is not looked at: their own conditions leave their rows out.

use pgrx::PgList;
use pgrx::pg_sys::{self, Plan as ServerPlan};
use query::{Expression, Plan, SortKey};

use super::{Context, Order, Relation, decline, input, sort, targets, types};
use crate::vectorised::translated::{OutputColumn, Reason};

/// The rows of all inputs. Partitions that follow each other are in order together where each is.
///
/// # Safety
/// A finished plan node.
pub unsafe fn append(
    context: &mut Context<'_>,
    append: *mut pg_sys::Append,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: a list of plans whose target lists have the node's types.
    unsafe {
        if (*append).plan.parallel_aware || (*append).nasyncplans > 0 {
            return decline("parallel or asynchronous append");
        }
        all(context, (*append).appendplans, order)
    }
}

/// The rows of all inputs, which are sorted, in order.
///
/// # Safety
/// A finished plan node.
pub unsafe fn merge_append(
    context: &mut Context<'_>,
    append: *mut pg_sys::MergeAppend,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: as above; the arrays have numCols entries.
    unsafe {
        let below = all(context, (*append).mergeplans, Order::Any)?;
        if order == Order::Any {
            return Ok(below);
        }
        let targets = targets(&raw mut (*append).plan);
        let keys = (0..usize::try_from((*append).numCols).unwrap_or(0))
            .map(|at| {
                let target = usize::try_from(*(*append).sortColIdx.add(at)).unwrap_or(0).wrapping_sub(1);
                let Some(&node) = targets.get(target) else { return decline("order by no column") };
                let column =
                    OutputColumn { collation: *(*append).collations.add(at), ..types::column_of(node) };
                let operator = *(*append).sortOperators.add(at);
                let (value, nulls_first) = (Expression::Column(target), *(*append).nullsFirst.add(at));
                sort::sort_key(context, value, column, operator, nulls_first)
            })
            .collect::<Result<Vec<SortKey>, Reason>>()?;
        Ok(Relation {
            plan: Plan::Sort { input: Box::new(below.plan), keys, limit: None },
            columns: below.columns,
        })
    }
}

unsafe fn all(context: &mut Context<'_>, plans: *mut pg_sys::List, order: Order) -> Result<Relation, Reason> {
    // SAFETY: a list of plans.
    unsafe {
        let plans = PgList::<ServerPlan>::from_pg(plans);
        let mut inputs = Vec::new();
        for plan in plans.iter_ptr() {
            inputs.push(input(context, plan, order)?.materialise());
        }
        let Some(types) = inputs.first().map(Plan::types) else { return decline("append of nothing") };
        if inputs.iter().any(|input| input.types() != types) {
            return decline("append of different representations");
        }
        let columns = (0..types.len()).map(Expression::Column).collect();
        Ok(Relation { plan: Plan::Append { inputs }, columns })
    }
}
