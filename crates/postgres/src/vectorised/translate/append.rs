//! Append and MergeAppend: partitions, inheritance, UNION ALL.
//!
//! Partitions that cannot have rows for the values of now are left out, as the server leaves them out
//! (`node/pruning`): of a heap partition no row may be looked at that would end the query with an error.
//! Those that the node finds when it begins are no inputs; those that change with each start stay inputs, but
//! their sources are idle.

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag, Plan as ServerPlan};
use query::{Expression, Plan, SortKey};

use super::constants::constant;
use super::{Context, Order, Relation, decline, input, sort, targets, types};
use crate::compat;
use crate::vectorised::translated::{OutputColumn, Reason, Remaining};

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
        all(context, &raw mut (*append).plan, (*append).appendplans, (*append).part_prune_info, order)
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
        let plan = &raw mut (*append).plan;
        let below = all(context, plan, (*append).mergeplans, (*append).part_prune_info, Order::Any)?;
        if order == Order::Any {
            return Ok(below);
        }
        let targets = targets(plan);
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

unsafe fn all(
    context: &mut Context<'_>,
    append: *mut ServerPlan,
    plans: *mut pg_sys::List,
    partitions: *mut pg_sys::PartitionPruneInfo,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: a node with its list of plans, and what is known of those that are partitions.
    unsafe {
        let plans = PgList::<ServerPlan>::from_pg(plans);
        let remaining = match partitions.is_null() {
            true => (0..plans.len()).map(|place| Remaining { place, idle: false }).collect(),
            false => context.values.remaining(plans.len(), partitions)?,
        };
        let removed = plans.len() - remaining.len();
        let mut inputs = Vec::new();
        let mut read = vec![0..0; plans.len()];
        for Remaining { place, idle } in remaining {
            let Some(plan) = plans.get_ptr(place) else { return decline("partition that is no input") };
            let first = context.sources.len();
            let input = input(context, plan, order)?.materialise();
            if idle {
                if !needs_rows(&input) {
                    return decline("partition that gives rows of its own");
                }
                context.idle.extend(first..context.sources.len());
            }
            inputs.push(input);
            read[place] = first..context.sources.len();
        }
        // Asked for only while planning.
        if !partitions.is_null() && context.values.kept().is_none() {
            for hierarchy in PgList::<pg_sys::List>::from_pg((*partitions).prune_infos).iter_ptr() {
                let places = alternatives(hierarchy);
                context.alternatives.push(places.filter_map(|place| read.get(place).cloned()).collect());
            }
        }
        let Some(types) = inputs.first().map(Plan::types) else { return nothing(context, append, removed) };
        if inputs.iter().any(|input| input.types() != types) {
            return decline("append of different representations");
        }
        let columns = (0..types.len()).map(Expression::Column).collect();
        Ok(Relation { plan: Plan::Append { inputs, removed }, columns })
    }
}

/// The inputs that are partitions of one table, by place, where values that come later are likely to leave
/// one of them: they are to be equal to the whole key, at each level of partitions. None otherwise.
unsafe fn alternatives(hierarchy: *mut pg_sys::List) -> impl Iterator<Item = usize> {
    // SAFETY: a list of what the planner found out about each partitioned table, whose arrays have nparts
    // entries.
    unsafe {
        let tables = PgList::<pg_sys::PartitionedRelPruneInfo>::from_pg(hierarchy);
        let is_of_one = tables.iter_ptr().all(|table| {
            pg_sys::bms_num_members((*table).present_parts) < 2
                || leave_one(&*table, (*table).initial_pruning_steps)
                || leave_one(&*table, (*table).exec_pruning_steps)
        });
        let tables: Vec<_> = if is_of_one { tables.iter_ptr().collect() } else { Vec::new() };
        tables.into_iter().flat_map(|table| {
            let count = usize::try_from((*table).nparts).unwrap_or(0);
            let places = (0..count).map(|at| *(*table).subplan_map.add(at));
            places.filter_map(|place| usize::try_from(place).ok()).collect::<Vec<_>>()
        })
    }
}

/// Whether steps of pruning are likely to leave one partition of a table.
unsafe fn leave_one(table: &pg_sys::PartitionedRelPruneInfo, steps: *mut pg_sys::List) -> bool {
    // SAFETY: casts follow the tag; the array has nparts entries.
    unsafe {
        let columns = || {
            let count = usize::try_from(table.nparts).unwrap_or(0);
            let partition =
                (0..count).map(|at| *table.relid_map.add(at)).find(|&oid| oid != pg_sys::Oid::INVALID);
            partition.map_or(0, |partition| compat::partition_key_columns(partition))
        };
        let is_equality = |step: *mut pg_sys::PartitionPruneStep| {
            if (*step).type_ != NodeTag::T_PartitionPruneStepOp {
                return false;
            }
            let step = &*step.cast::<pg_sys::PartitionPruneStepOp>();
            // A hash function of partitions gives eight bytes, what compares four; the numbers of strategies
            // are of two kinds, too.
            let hashes = !step.cmpfns.is_null()
                && pg_sys::get_func_rettype(pg_sys::list_nth_oid(step.cmpfns, 0)) == pg_sys::INT8OID;
            let values = if step.exprs.is_null() { 0 } else { (*step.exprs).length };
            hashes || (u32::from(step.opstrategy) == pg_sys::BTEqualStrategyNumber && values == columns())
        };
        let is_union = |step: *mut pg_sys::PartitionPruneStep| {
            (*step).type_ == NodeTag::T_PartitionPruneStepCombine
                && (*step.cast::<pg_sys::PartitionPruneStepCombine>()).combineOp
                    == pg_sys::PartitionPruneCombineOp::PARTPRUNE_COMBINE_UNION
        };
        let steps = PgList::<pg_sys::PartitionPruneStep>::from_pg(steps);
        steps.iter_ptr().any(is_equality) && !steps.iter_ptr().any(is_union)
    }
}

/// An Append of which no input is left. Its columns are NULLs that no row has, under the names that they
/// would have.
unsafe fn nothing(
    context: &mut Context<'_>,
    append: *mut ServerPlan,
    removed: usize,
) -> Result<Relation, Reason> {
    if removed == 0 {
        return decline("append of nothing");
    }
    // SAFETY: the node that is translated; NULL is a value of every type.
    unsafe {
        let column = |target: *mut pg_sys::Node| {
            let value = constant(pg_sys::exprType(target), pg_sys::Datum::null(), true);
            let origin = context.origin(target);
            context.origins.note(&value, origin);
            value
        };
        let expressions: Vec<_> = targets(append).into_iter().map(column).collect();
        let columns = (0..expressions.len()).map(Expression::Column).collect();
        let input = Box::new(Plan::Append { inputs: Vec::new(), removed });
        Ok(Relation { plan: Plan::Project { input, expressions }, columns })
    }
}

/// True for a plan that gives no rows where its sources have none.
fn needs_rows(plan: &Plan) -> bool {
    match plan {
        Plan::Scan { .. } => true,
        Plan::Filter { input, .. }
        | Plan::Project { input, .. }
        | Plan::Repeat { input, .. }
        | Plan::Sort { input, .. }
        | Plan::DistinctOn { input, .. }
        | Plan::Limit { input, .. }
        | Plan::Window { input, .. } => needs_rows(input),
        Plan::Aggregate { input, keys, .. } => !keys.is_empty() && needs_rows(input),
        Plan::GroupingSets { .. } => false,
        Plan::Join { kind, left, right, .. } => {
            needs_rows(left) && (!kind.gives_right() || needs_rows(right))
        }
        Plan::Append { inputs, .. } => inputs.iter().all(needs_rows),
    }
}
