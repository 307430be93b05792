//! Sort, and Limit with the sort below it.
//!
//! A sort is left out if its reader does not rely on the order. Invariant: a key is translated only where its
//! operator is the default `<` or `>` of a type whose order `types` knows.

use pgrx::pg_sys;
use query::{Expression, Plan, SortKey};

use super::{Context, Order, Relation, constants, decline, input, keys as key, scan, targets, types};
use crate::host::tree::{self, Node, OrderColumn, PlanNode, Typed};
use crate::vectorised::translated::{OutputColumn, Reason};

/// One key of a sort, by its place in the target list.
pub struct Key {
    /// Zero-based target.
    pub target: usize,
    /// Its order, with the column of the node's own input as expression; `keys::over` puts another in its
    /// place.
    pub key: SortKey,
}

/// How one ORDER BY item orders.
pub fn sort_key(
    context: &mut Context<'_>,
    expression: Expression,
    column: OutputColumn,
    operator: pg_sys::Oid,
    nulls_first: bool,
) -> Result<SortKey, Reason> {
    let (base, _) = types::base_of(column);
    // SAFETY: a catalog look-up; the entry lives as long as the process.
    let (less, greater) = unsafe {
        let flags = pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_GT_OPR;
        let entry = pg_sys::lookup_type_cache(base, flags as i32);
        ((*entry).lt_opr, (*entry).gt_opr)
    };
    let descending = operator == greater;
    if !descending && operator != less {
        return decline("order by an operator of another class");
    }
    let (expression, order) = key::order(context, column, expression)?;
    Ok(SortKey { expression, descending, nulls_first, order })
}

/// The key that a column of a target list is, and its place there.
pub fn key_of(context: &mut Context<'_>, targets: &[Node<'_>], column: OrderColumn) -> Result<Key, Reason> {
    let target = column.place();
    let Some(&node) = targets.get(target) else { return decline("order by no column") };
    let type_of = OutputColumn { collation: column.collation, ..types::column_of(node) };
    let value = Expression::Column(target);
    let key = sort_key(context, value, type_of, column.operator, column.nulls_first)?;
    Ok(Key { target, key })
}

/// The keys of a Sort or Incremental Sort.
pub fn keys(context: &mut Context<'_>, sort: Typed<'_, pg_sys::Sort>) -> Result<Vec<Key>, Reason> {
    let targets = targets(sort.plan());
    sort.order().map(|column| key_of(context, &targets, column)).collect()
}

/// The keys of a Merge Append.
pub fn merged_keys(
    context: &mut Context<'_>,
    append: Typed<'_, pg_sys::MergeAppend>,
) -> Result<Vec<Key>, Reason> {
    let targets = targets(append.plan());
    append.order().map(|column| key_of(context, &targets, column)).collect()
}

/// Keys over what each target is now.
pub fn keys_over(keys: Vec<Key>, columns: &[Expression]) -> Result<Vec<SortKey>, Reason> {
    let keys = keys.into_iter().map(|Key { target, key }| match columns.get(target) {
        Some(column) => Ok(key::over(&key, column.clone())),
        None => decline("order by no column"),
    });
    keys.collect()
}

/// The order that a node's rows are known to have, by target.
pub fn ordering(context: &mut Context<'_>, plan: tree::Plan<'_>) -> Result<Vec<Key>, Reason> {
    match plan.kind() {
        PlanNode::Sort(sort) | PlanNode::IncrementalSort(sort) => keys(context, sort),
        PlanNode::MergeAppend(append) => merged_keys(context, append),
        // These have no order that a reader could rely on: the grouping columns are constant, or there is one
        // group.
        PlanNode::HashJoin(_) | PlanNode::Other(pg_sys::NodeTag::T_SeqScan) => Ok(Vec::new()),
        PlanNode::CustomScan(_) if scan::is_columnar(plan) => Ok(Vec::new()),
        // Their rows come in the order of their input's.
        PlanNode::Material(_) | PlanNode::Limit(_) | PlanNode::Unique(_) => ordering(context, plan.input()),
        PlanNode::WindowAgg(_) => passed_on(context, plan, plan.input(), pg_sys::OUTER_VAR),
        PlanNode::Result(_) if plan.outer().is_some() => {
            passed_on(context, plan, plan.input(), pg_sys::OUTER_VAR)
        }
        PlanNode::SubqueryScan(scan) => {
            let number = i32::try_from(scan.scan.scanrelid).unwrap_or(0);
            passed_on(context, plan, scan.subquery(), number)
        }
        _ => decline("order of rows that are not sorted here"),
    }
}

/// The order of a node's rows where it is that of its input's, as far as the node gives what they are ordered
/// by.
fn passed_on(
    context: &mut Context<'_>,
    plan: tree::Plan<'_>,
    input: tree::Plan<'_>,
    input_number: i32,
) -> Result<Vec<Key>, Reason> {
    let targets = targets(plan);
    let place = |target: usize| {
        targets.iter().position(|node| {
            node.as_a::<pg_sys::Var>().is_some_and(|var| {
                var.varno == input_number && usize::try_from(var.varattno) == Ok(target + 1)
            })
        })
    };
    let known = ordering(context, input)?.into_iter().map_while(|Key { target, key }| {
        let target = place(target)?;
        Some(Key { target, key: key::over(&key, Expression::Column(target)) })
    });
    Ok(known.collect())
}

/// A Sort or Incremental Sort.
pub fn sort(
    context: &mut Context<'_>,
    sort: Typed<'_, pg_sys::Sort>,
    order: Order,
) -> Result<Relation, Reason> {
    limited(context, sort, order, None)
}

/// A sort of which only the first `limit` rows are wanted. Its target list is that of its input.
fn limited(
    context: &mut Context<'_>,
    sort: Typed<'_, pg_sys::Sort>,
    order: Order,
    limit: Option<u64>,
) -> Result<Relation, Reason> {
    let below = input(context, sort.plan().input(), Order::Any)?;
    if order == Order::Any && limit.is_none() {
        return Ok(below);
    }
    let below = below.plain();
    let keys = keys_over(keys(context, sort)?, &below.columns)?;
    let plan = Plan::Sort { input: Box::new(below.plan), keys, limit };
    Ok(Relation { plan, columns: below.columns })
}

/// A Limit; with a sort below, the sort knows how many rows are wanted.
pub fn limit(context: &mut Context<'_>, limit: Typed<'_, pg_sys::Limit>) -> Result<Relation, Reason> {
    if limit.limitOption != pg_sys::LimitOption::LIMIT_OPTION_COUNT {
        return decline("LIMIT WITH TIES");
    }
    let offset = number(context, limit.offset())?.unwrap_or(0);
    let count = number(context, limit.count())?;
    let child = limit.plan().input();
    let below = match (child.kind(), count.and_then(|count| count.checked_add(offset))) {
        (PlanNode::Sort(sort), Some(rows)) => limited(context, sort, Order::Kept, Some(rows))?,
        _ => input(context, child, Order::Kept)?,
    };
    let types = below.plan.types();
    // The server computes them for rows that OFFSET leaves out, too.
    let may_fail = offset > 0 && below.columns.iter().any(|column| column.can_raise(&types));
    let below = if may_fail { below.plain() } else { below };
    let plan = Plan::Limit { input: Box::new(below.plan), offset, limit: count };
    Ok(Relation { plan, columns: below.columns })
}

/// A row count, of type bigint. NULL says nothing; the server has an error for a negative one.
fn number(context: &mut Context<'_>, node: Option<Node<'_>>) -> Result<Option<u64>, Reason> {
    let Some(node) = node else { return Ok(None) };
    match constants::value(context, node)? {
        Some(value) => match u64::try_from(value.value() as i64) {
            Ok(rows) => Ok(Some(rows)),
            Err(_) => decline("negative LIMIT or OFFSET"),
        },
        None => Ok(None),
    }
}
