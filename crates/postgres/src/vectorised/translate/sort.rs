//! Sort, and Limit with the sort below it.
//!
//! A sort whose reader does not care for order is left out. Invariant: a key is translated only where its
//! operator is the default `<` or `>` of a type whose order `types` knows.

use pgrx::pg_sys::{self, NodeTag};
use query::{Expression, Plan, SortKey};

use super::{Context, Order, Relation, constants, decline, input, keys as key, scan, targets, types};
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
///
/// # Safety
/// An operator of a finished plan.
pub unsafe fn sort_key(
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

/// The keys of a Sort or Incremental Sort.
///
/// # Safety
/// A finished plan node.
pub unsafe fn keys(context: &mut Context<'_>, sort: *mut pg_sys::Sort) -> Result<Vec<Key>, Reason> {
    // SAFETY: the arrays have numCols entries; sort columns are in the target list.
    unsafe {
        let targets = targets(&raw mut (*sort).plan);
        (0..usize::try_from((*sort).numCols).unwrap_or(0))
            .map(|at| {
                let number = usize::try_from(*(*sort).sortColIdx.add(at)).unwrap_or(0);
                let target = number.wrapping_sub(1);
                let Some(&node) = targets.get(target) else { return decline("order by no column") };
                let column =
                    OutputColumn { collation: *(*sort).collations.add(at), ..types::column_of(node) };
                let operator = *(*sort).sortOperators.add(at);
                let nulls_first = *(*sort).nullsFirst.add(at);
                let value = Expression::Column(target);
                Ok(Key { target, key: sort_key(context, value, column, operator, nulls_first)? })
            })
            .collect()
    }
}

/// The order that a node's rows are known to have, by target.
///
/// # Safety
/// A finished plan node.
pub unsafe fn ordering(context: &mut Context<'_>, plan: *mut pg_sys::Plan) -> Result<Vec<Key>, Reason> {
    // SAFETY: the casts follow the tag; both sorts begin with a Sort.
    unsafe {
        match (*plan).type_ {
            NodeTag::T_Sort | NodeTag::T_IncrementalSort => keys(context, plan.cast()),
            // These have no order that anybody could rely on: what is grouped by is constant, or there is one
            // group.
            NodeTag::T_HashJoin | NodeTag::T_SeqScan => Ok(Vec::new()),
            NodeTag::T_CustomScan if scan::is_columnar(plan) => Ok(Vec::new()),
            // Their rows come in the order of their input's.
            NodeTag::T_Material | NodeTag::T_Limit | NodeTag::T_Unique => ordering(context, (*plan).lefttree),
            NodeTag::T_WindowAgg => passed_on(context, plan, (*plan).lefttree, pg_sys::OUTER_VAR),
            NodeTag::T_Result if !(*plan).lefttree.is_null() => {
                passed_on(context, plan, (*plan).lefttree, pg_sys::OUTER_VAR)
            }
            NodeTag::T_SubqueryScan => {
                let scan = plan.cast::<pg_sys::SubqueryScan>();
                let number = i32::try_from((*scan).scan.scanrelid).unwrap_or(0);
                passed_on(context, plan, (*scan).subplan, number)
            }
            _ => decline("order of rows that are not sorted here"),
        }
    }
}

/// The order of a node's rows where it is that of its input's, as far as the node gives what they are ordered
/// by.
unsafe fn passed_on(
    context: &mut Context<'_>,
    plan: *mut pg_sys::Plan,
    input: *mut pg_sys::Plan,
    input_number: i32,
) -> Result<Vec<Key>, Reason> {
    // SAFETY: finished plan nodes; the cast follows the tag.
    unsafe {
        let targets = targets(plan);
        let place = |target: usize| {
            targets.iter().position(|&node| {
                (*node).type_ == NodeTag::T_Var && {
                    let var = &*node.cast::<pg_sys::Var>();
                    var.varno == input_number && usize::try_from(var.varattno) == Ok(target + 1)
                }
            })
        };
        let known = ordering(context, input)?.into_iter().map_while(|Key { target, key }| {
            let target = place(target)?;
            Some(Key { target, key: key::over(&key, Expression::Column(target)) })
        });
        Ok(known.collect())
    }
}

/// A Sort or Incremental Sort.
///
/// # Safety
/// A finished plan node.
pub unsafe fn sort(
    context: &mut Context<'_>,
    sort: *mut pg_sys::Sort,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: the caller's promise.
    unsafe { limited(context, sort, order, None) }
}

unsafe fn limited(
    context: &mut Context<'_>,
    sort: *mut pg_sys::Sort,
    order: Order,
    limit: Option<u64>,
) -> Result<Relation, Reason> {
    // SAFETY: a sort has one input, and its target list is that of its input.
    unsafe {
        let below = input(context, (*sort).plan.lefttree, Order::Any)?;
        if order == Order::Any && limit.is_none() {
            return Ok(below);
        }
        let below = below.plain();
        let keys = keys(context, sort)?
            .into_iter()
            .map(|Key { target, key }| match below.columns.get(target) {
                Some(column) => Ok(key::over(&key, column.clone())),
                None => decline("order by no column"),
            })
            .collect::<Result<Vec<_>, Reason>>()?;
        let plan = Plan::Sort { input: Box::new(below.plan), keys, limit };
        Ok(Relation { plan, columns: below.columns })
    }
}

/// A Limit; with a sort below, the sort knows how many rows are wanted.
///
/// # Safety
/// A finished plan node.
pub unsafe fn limit(context: &mut Context<'_>, limit: *mut pg_sys::Limit) -> Result<Relation, Reason> {
    // SAFETY: the expressions are of type bigint, or null.
    unsafe {
        if (*limit).limitOption != pg_sys::LimitOption::LIMIT_OPTION_COUNT {
            return decline("LIMIT WITH TIES");
        }
        let offset = number(context, (*limit).limitOffset)?.unwrap_or(0);
        let count = number(context, (*limit).limitCount)?;
        let child = (*limit).plan.lefttree;
        let below = match ((*child).type_, count.and_then(|count| count.checked_add(offset))) {
            (NodeTag::T_Sort, Some(rows)) => limited(context, child.cast(), Order::Kept, Some(rows))?,
            _ => input(context, child, Order::Kept)?,
        };
        let types = below.plan.types();
        // The server computes them for rows that OFFSET leaves out, too.
        let may_fail = offset > 0 && below.columns.iter().any(|column| column.can_raise(&types));
        let below = if may_fail { below.plain() } else { below };
        let plan = Plan::Limit { input: Box::new(below.plan), offset, limit: count };
        Ok(Relation { plan, columns: below.columns })
    }
}

/// A row count. NULL says nothing; the server has an error for a negative one.
unsafe fn number(context: &mut Context<'_>, node: *mut pg_sys::Node) -> Result<Option<u64>, Reason> {
    if node.is_null() {
        return Ok(None);
    }
    // SAFETY: an expression of type bigint.
    let value = unsafe { constants::value(context, node)? };
    match value {
        Some(value) => match u64::try_from(value.value() as i64) {
            Ok(rows) => Ok(Some(rows)),
            Err(_) => decline("negative LIMIT or OFFSET"),
        },
        None => Ok(None),
    }
}
