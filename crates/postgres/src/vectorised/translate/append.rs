//! Append and MergeAppend: partitions, inheritance, UNION ALL.
//!
//! Partitions that cannot have rows for the current values are left out, as the server leaves them out
//! (`node/pruning`). This is needed, because a row of a left-out heap partition might end the query with an
//! error. Partitions that are left out for the whole execution are no inputs. Partitions that may be left out
//! at one start and not at the next stay inputs, but their sources are idle.

use pgrx::pg_sys;
use query::{Expression, Plan};

use super::{Context, Order, Relation, constants, decline, input, sort, targets};
use crate::host::catalogs;
use crate::host::tree::{self, List, Typed};
use crate::vectorised::translated::{Reason, Remaining};

/// The rows of all inputs. Partitions that follow each other are in order together where each is.
pub fn append(
    context: &mut Context<'_>,
    append: Typed<'_, pg_sys::Append>,
    order: Order,
) -> Result<Relation, Reason> {
    if append.plan.parallel_aware || append.nasyncplans > 0 {
        return decline("parallel or asynchronous append");
    }
    all(context, append.plan(), append.inputs(), append.partitions(context.statement), order)
}

/// The rows of all inputs, which are sorted, in order.
pub fn merge_append(
    context: &mut Context<'_>,
    append: Typed<'_, pg_sys::MergeAppend>,
    order: Order,
) -> Result<Relation, Reason> {
    let plan = append.plan();
    let below = all(context, plan, append.inputs(), append.partitions(context.statement), Order::Any)?;
    if order == Order::Any {
        return Ok(below);
    }
    let keys = sort::merged_keys(context, append)?.into_iter().map(|key| key.key).collect();
    Ok(Relation {
        plan: Plan::Sort { input: Box::new(below.plan), keys, limit: None },
        columns: below.columns,
    })
}

/// The rows of these inputs of a node, and what is known of those that are partitions.
fn all(
    context: &mut Context<'_>,
    append: tree::Plan<'_>,
    plans: List<'_, tree::Plan<'_>>,
    partitions: Option<Typed<'_, pg_sys::PartitionPruneInfo>>,
    order: Order,
) -> Result<Relation, Reason> {
    let remaining = match partitions {
        None => (0..plans.len()).map(|place| Remaining { place, idle: false }).collect(),
        Some(partitions) => context.values.remaining(plans.len(), partitions)?,
    };
    let removed = plans.len() - remaining.len();
    let mut inputs = Vec::new();
    let mut read = vec![0..0; plans.len()];
    for Remaining { place, idle } in remaining {
        let Some(plan) = plans.get(place) else { return decline("partition that is no input") };
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
    if let Some(partitions) = partitions
        && context.values.kept().is_none()
    {
        for hierarchy in partitions.hierarchies().iter() {
            let places = alternatives(hierarchy).into_iter();
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

/// The places of the inputs that are partitions of one table, if later values are likely to leave only one of
/// them. This is likely if, at each level of partitions, a condition says that the whole key equals such
/// values. No places otherwise.
fn alternatives(tables: List<'_, Typed<'_, pg_sys::PartitionedRelPruneInfo>>) -> Vec<usize> {
    let is_of_one = tables.iter().all(|table| {
        // SAFETY: a set of the plan's.
        let present = unsafe { pg_sys::bms_num_members(table.present_parts) };
        present < 2
            || leave_one(table, table.initial_steps())
            || leave_one(table, table.steps_of_each_start())
    });
    match is_of_one {
        true => tables.iter().flat_map(|table| table.places().flatten()).collect(),
        false => Vec::new(),
    }
}

/// Whether steps of pruning are likely to leave one partition of a table.
fn leave_one(table: Typed<'_, pg_sys::PartitionedRelPruneInfo>, steps: List<'_>) -> bool {
    let columns = || {
        // SAFETY: a partition of a table of the statement, which is locked.
        table.any_partition().map_or(0, |partition| unsafe { catalogs::partition_key_columns(partition) })
    };
    let is_equality = |step: Typed<'_, pg_sys::PartitionPruneStepOp>| {
        // A hash function of partitions gives eight bytes, what compares four; the numbers of strategies are
        // of two kinds, too.
        let hashes = step.functions().get(0).is_some_and(|function| {
            // SAFETY: a catalog look-up.
            unsafe { pg_sys::get_func_rettype(function) == pg_sys::INT8OID }
        });
        let values = i32::try_from(step.values().len()).unwrap_or(i32::MAX);
        hashes || (u32::from(step.opstrategy) == pg_sys::BTEqualStrategyNumber && values == columns())
    };
    let is_union = |step: Typed<'_, pg_sys::PartitionPruneStepCombine>| {
        step.combineOp == pg_sys::PartitionPruneCombineOp::PARTPRUNE_COMBINE_UNION
    };
    steps.iter().any(|step| step.as_a().is_some_and(is_equality))
        && !steps.iter().any(|step| step.as_a().is_some_and(is_union))
}

/// An Append of which no input is left. Its columns are NULLs that no row has, under the names that they
/// would have.
fn nothing(context: &mut Context<'_>, append: tree::Plan<'_>, removed: usize) -> Result<Relation, Reason> {
    if removed == 0 {
        return decline("append of nothing");
    }
    let column = |target: tree::Node<'_>| {
        let value = constants::null(target.type_oid());
        let origin = context.origin(target);
        context.origins.note(&value, origin);
        value
    };
    let expressions: Vec<_> = targets(append).into_iter().map(column).collect();
    let columns = (0..expressions.len()).map(Expression::Column).collect();
    let input = Box::new(Plan::Append { inputs: Vec::new(), removed });
    Ok(Relation { plan: Plan::Project { input, expressions }, columns })
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
