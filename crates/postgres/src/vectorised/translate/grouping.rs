//! Agg and Group nodes.
//!
//! All of the server's strategies compute the same groups, so all become one operator, and so do the nodes
//! chained for several grouping sets; where sorted grouping left its groups in order and somebody may rely on
//! it, they are sorted afterwards. Other columns that the node mentions are those of a group's first row, as
//! on the server: such that depend on the grouped ones (GROUP BY a primary key), and such that need not (the
//! inner side of `IN (SELECT a / 4 ...)` made unique, where the join computes `a / 4` again).

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag, Oid};
use query::{Expression, Plan, SortKey, TextOrder};

use super::aggregate::{depends_on_order, one};
use super::keys::{self, Keys, first};
use super::scope::{Scope, Sets};
use super::sort::{self, Key};
use super::{
    Context, Order, Relation, decline, expressions, input, percentiles, scan, target_list, targets, types,
};
use crate::host::tree;
use crate::vectorised::translated::{OutputColumn, Reason};

/// What a node groups by.
struct Grouping {
    plan: *mut pg_sys::Plan,
    /// Grouped columns of the input (from 1), the operator and the collation.
    columns: Vec<(i16, Oid, Oid)>,
    /// Grouping sets, each by columns of the input; None for one grouping by all of them.
    sets: Option<Vec<Vec<i16>>>,
    /// Whether groups come in the order of the rows they are made of.
    sorted: bool,
    /// Groups that the planner expects, before HAVING.
    expected: f64,
}

/// An Agg node.
///
/// # Safety
/// A finished plan node.
pub unsafe fn aggregate(
    context: &mut Context<'_>,
    agg: *mut pg_sys::Agg,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: an Agg has arrays of numCols entries, and so has each of its chain, which stand for further
    // grouping sets over the same input.
    unsafe {
        if (*agg).aggsplit != pg_sys::AggSplit::AGGSPLIT_SIMPLE {
            return decline("partial aggregation");
        }
        let chain = PgList::<pg_sys::Agg>::from_pg((*agg).chain);
        let mut columns: Vec<(i16, Oid, Oid)> = Vec::new();
        let mut sets = Vec::new();
        for node in std::iter::once(agg).chain(chain.iter_ptr()) {
            let own =
                columns_of((*node).numCols, (*node).grpColIdx, (*node).grpOperators, (*node).grpCollations);
            for set in PgList::<pg_sys::List>::from_pg((*node).groupingSets).iter_ptr() {
                // A set is the first columns of its node.
                let length = if set.is_null() { 0 } else { usize::try_from((*set).length).unwrap_or(0) };
                let Some(set) = own.get(..length) else { return decline("grouping set of no column") };
                sets.push(set.iter().map(|(attno, ..)| *attno).collect::<Vec<_>>());
            }
            for column in own {
                if !columns.iter().any(|(attno, ..)| *attno == column.0) {
                    columns.push(column);
                }
            }
        }
        let sorted = (*agg).aggstrategy == pg_sys::AggStrategy::AGG_SORTED && chain.is_empty();
        let sets = (!sets.is_empty()).then_some(sets);
        let (plan, expected) = (&raw mut (*agg).plan, (*agg).numGroups as f64);
        grouped(context, Grouping { plan, columns, sets, sorted, expected }, order)
    }
}

/// A Group node: GROUP BY without aggregates over sorted rows.
///
/// # Safety
/// A finished plan node.
pub unsafe fn group(
    context: &mut Context<'_>,
    group: *mut pg_sys::Group,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: the arrays have numCols entries.
    unsafe {
        let columns =
            columns_of((*group).numCols, (*group).grpColIdx, (*group).grpOperators, (*group).grpCollations);
        let (plan, expected) = (&raw mut (*group).plan, (*group).plan.plan_rows);
        grouped(context, Grouping { plan, columns, sets: None, sorted: true, expected }, order)
    }
}

unsafe fn columns_of(
    count: i32,
    columns: *mut i16,
    operators: *mut Oid,
    collations: *mut Oid,
) -> Vec<(i16, Oid, Oid)> {
    let places = 0..usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's arrays have `count` entries.
    unsafe { places.map(|at| (*columns.add(at), *operators.add(at), *collations.add(at))).collect() }
}

unsafe fn grouped(context: &mut Context<'_>, grouping: Grouping, order: Order) -> Result<Relation, Reason> {
    // SAFETY: the node has one input; the lists hold what their names say.
    unsafe {
        let plan = grouping.plan;
        let child = (*plan).lefttree;
        let Mentioned { groups, others, calls } = mentioned(&grouping)?;
        let in_order = calls.iter().any(|&call| depends_on_order(&*call));
        let ordering = if grouping.sorted && order == Order::Kept {
            sort::ordering(context, child)?
        } else {
            Vec::new()
        };
        let below = input(context, child, if in_order { Order::Kept } else { Order::Any })?.plain();

        let inputs = targets(child);
        let mut keys = Keys::default();
        let mut grouped = Vec::new();
        let column = |attno: i16| {
            let at = usize::try_from(attno).unwrap_or(0).wrapping_sub(1);
            match (inputs.get(at), below.columns.get(at)) {
                (Some(&node), Some(column)) => Ok((types::column_of(node), column.clone())),
                _ => decline("grouping by no column"),
            }
        };
        for (attno, collation) in groups {
            let (column_type, value) = column(attno)?;
            keys.push(context, OutputColumn { collation, ..column_type }, value)?;
            grouped.push(attno);
        }
        if keys.exceed_memory(grouping.expected) {
            return decline("more groups by values that only the server compares than there is memory for");
        }
        let mut known: Vec<_> = grouped.into_iter().zip(keys.values()).collect();
        let Keys { keys, shown: mut aggregates, .. } = keys;
        for attno in others {
            let (column_type, value) = column(attno)?;
            known.push((attno, Expression::Column(keys.len() + aggregates.len())));
            aggregates.push(first(column_type.type_oid, value));
        }
        let mut numbered = Vec::new();
        for &call in &calls {
            let Ok(number) = usize::try_from((*call).aggno) else {
                return decline("aggregate without a number");
            };
            if numbered.len() <= number {
                numbered.resize(number + 1, None);
            }
            if let Some(place) = numbered.get_mut(number)
                && place.is_none()
            {
                let next = keys.len() + aggregates.len();
                *place = Some(match percentiles::several(context, call, &below.columns, next)? {
                    Some((list, parts)) => {
                        aggregates.extend(parts);
                        list
                    }
                    None => {
                        aggregates.push(one(context, &*call, &below.columns)?);
                        Expression::Column(next)
                    }
                });
            }
        }
        let numbered = numbered
            .into_iter()
            .map(|place| place.unwrap_or(Expression::Column(usize::MAX)))
            .collect::<Vec<_>>();
        let number = Expression::Column(keys.len() + aggregates.len());
        let input = Box::new(below.plan);
        let all = match &grouping.sets {
            None => Plan::Aggregate { input, keys, aggregates, groups: grouping.expected },
            Some(sets) => {
                let of_set = |set: &Vec<i16>| {
                    let keys = known.iter().take(keys.len()).enumerate();
                    keys.filter(|(_, (attno, _))| set.contains(attno)).map(|(at, _)| at).collect()
                };
                let sets = sets.iter().map(of_set).collect();
                Plan::GroupingSets { input, keys, sets, aggregates }
            }
        };
        let sets = grouping.sets.as_deref().map(|sets| Sets { number: &number, sets });
        let scope = Scope::Groups { keys: &known, aggregates: &numbered, sets };
        let conditions = expressions::conditions(context, (*plan).qual, scope)?;
        let columns = target_list(context, plan, scope)?;
        let plan = in_order_of(scan::filtered(all, conditions), &ordering, &known, sets)?;
        Ok(Relation { plan, columns })
    }
}

/// Groups brought into the order that the rows they are made of had.
pub fn in_order_of(
    plan: Plan,
    ordering: &[Key],
    known: &[(i16, Expression)],
    sets: Option<Sets<'_>>,
) -> Result<Plan, Reason> {
    let mut order = Vec::new();
    for Key { target, key } in ordering {
        let attno = i16::try_from(target + 1).unwrap_or(0);
        // What is not grouped by only orders rows within a group.
        let Some((_, expression)) = known.iter().find(|(of, _)| *of == attno) else { break };
        if let Some(sets) = sets {
            // The row that sums up groups comes after them.
            let expression = sets.without(&[attno]);
            order.push(SortKey {
                expression,
                descending: false,
                nulls_first: false,
                order: TextOrder::Bytes,
            });
        }
        order.push(keys::over(key, expression.clone()));
    }
    Ok(match order.is_empty() {
        true => plan,
        false => Plan::Sort { input: Box::new(plan), keys: order, limit: None },
    })
}

/// What a node mentions of its input.
struct Mentioned {
    /// Columns that are grouped by (from 1), with the collation of the grouping.
    groups: Vec<(i16, Oid)>,
    /// Columns that are not.
    others: Vec<i16>,
    calls: Vec<*mut pg_sys::Aggref>,
}

unsafe fn mentioned(grouping: &Grouping) -> Result<Mentioned, Reason> {
    // SAFETY: as in `grouped`.
    unsafe {
        let plan = grouping.plan;
        let inputs = targets((*plan).lefttree);
        let mut groups = Vec::new();
        for &(attno, operator, collation) in &grouping.columns {
            let place = usize::try_from(attno).unwrap_or(0).wrapping_sub(1);
            let Some(&node) = inputs.get(place) else { return decline("grouping by no column") };
            if !types::is_default_equality(types::column_of(node), operator) {
                return decline("grouping by an operator of another class");
            }
            groups.push((attno, collation));
        }
        let (mut others, mut calls) = (Vec::new(), Vec::new());
        for list in [(*plan).targetlist, (*plan).qual] {
            let flags = pg_sys::PVC_INCLUDE_AGGREGATES | pg_sys::PVC_RECURSE_PLACEHOLDERS;
            for node in tree::pulled(list.cast(), flags) {
                match (*node).type_ {
                    NodeTag::T_Aggref => calls.push(node.cast()),
                    // It names grouped columns without reading them.
                    NodeTag::T_GroupingFunc => {}
                    _ => {
                        let attno = (*node.cast::<pg_sys::Var>()).varattno;
                        if !others.contains(&attno) && !groups.iter().any(|(grouped, _)| *grouped == attno) {
                            others.push(attno);
                        }
                    }
                }
            }
        }
        Ok(Mentioned { groups, others, calls })
    }
}
