//! Agg and Group nodes.
//!
//! All of the server's strategies compute the same groups, so all become one operator. The nodes chained for
//! several grouping sets also become one operator. The server's sorted grouping gives its groups in order. If
//! a reader may rely on that order, the groups are sorted afterwards.
//!
//! The node may mention columns that are not grouped. Their values are those of a group's first row, as on
//! the server. Some of them depend on the grouped ones (GROUP BY a primary key). Others do not: the inner
//! side of `IN (SELECT a / 4 ...)` is made unique, and the join computes `a / 4` again.

use pgrx::pg_sys;
use query::{Aggregate, Expression, Plan, SortKey, TextOrder};

use super::aggregate::{depends_on_order, one};
use super::keys::{self, Keys, first};
use super::scope::{Scope, Sets};
use super::sort::{self, Key};
use super::{
    Context, Order, Relation, constants, decline, expressions, input, percentiles, scan, target_list,
    targets, types,
};
use crate::host::tree::{self, EqualColumn, Typed};
use crate::vectorised::translated::{OutputColumn, Reason};

/// The columns that a node groups by.
struct Grouping<'a> {
    plan: tree::Plan<'a>,
    /// Grouped columns of the input.
    columns: Vec<EqualColumn>,
    /// Grouping sets, each by columns of the input; None for one grouping by all of them.
    sets: Option<Vec<Vec<i16>>>,
    /// No rows make no group: the query groups, by whatever is left of its columns. Else no rows make one.
    by_query: bool,
    /// Whether groups come in the order of the rows they are made of.
    sorted: bool,
    /// Groups that the planner expects, before HAVING.
    expected: f64,
}

/// An Agg node, and the nodes of its chain, which stand for further grouping sets over the same input.
pub fn aggregate(
    context: &mut Context<'_>,
    agg: Typed<'_, pg_sys::Agg>,
    order: Order,
) -> Result<Relation, Reason> {
    if agg.aggsplit != pg_sys::AggSplit::AGGSPLIT_SIMPLE {
        return decline("partial aggregation");
    }
    let chain = agg.chain();
    let mut columns: Vec<EqualColumn> = Vec::new();
    let mut sets = Vec::new();
    for node in std::iter::once(agg).chain(chain.iter()) {
        let own: Vec<_> = node.columns().collect();
        for set in node.sets().iter() {
            // A set is the first columns of its node.
            let Some(set) = own.get(..set.len()) else { return decline("grouping set of no column") };
            sets.push(set.iter().map(|column| column.attno).collect::<Vec<_>>());
        }
        for column in own {
            if !columns.iter().any(|known| known.attno == column.attno) {
                columns.push(column);
            }
        }
    }
    let sorted = agg.aggstrategy == pg_sys::AggStrategy::AGG_SORTED && chain.is_empty();
    let by_query = agg.aggstrategy != pg_sys::AggStrategy::AGG_PLAIN;
    let sets = (!sets.is_empty()).then_some(sets);
    let expected = agg.numGroups as f64;
    grouped(context, &Grouping { plan: agg.plan(), columns, sets, by_query, sorted, expected }, order)
}

/// A Group node: GROUP BY without aggregates over sorted rows.
pub fn group(
    context: &mut Context<'_>,
    group: Typed<'_, pg_sys::Group>,
    order: Order,
) -> Result<Relation, Reason> {
    let (plan, columns) = (group.plan(), group.columns().collect());
    let expected = plan.plan_rows;
    let grouping = Grouping { plan, columns, sets: None, by_query: true, sorted: true, expected };
    grouped(context, &grouping, order)
}

fn grouped(context: &mut Context<'_>, grouping: &Grouping<'_>, order: Order) -> Result<Relation, Reason> {
    let plan = grouping.plan;
    let child = plan.input();
    let Mentioned { groups, others, calls } = mentioned(grouping)?;
    let in_order = calls.iter().any(|call| depends_on_order(call));
    let ordering = match grouping.sorted && order == Order::Kept {
        true => sort::ordering(context, child)?,
        false => Vec::new(),
    };
    let below = input(context, child, if in_order { Order::Kept } else { Order::Any })?.plain();

    let inputs = targets(child);
    let mut keys = Keys::default();
    let column = |attno: i16| {
        let at = usize::try_from(attno).unwrap_or(0).wrapping_sub(1);
        match (inputs.get(at), below.columns.get(at)) {
            (Some(&node), Some(column)) => Ok((types::column_of(node), column.clone())),
            _ => decline("grouping by no column"),
        }
    };
    for &EqualColumn { attno, collation, .. } in &groups {
        let (column_type, value) = column(attno)?;
        keys.push(context, OutputColumn { collation, ..column_type }, value)?;
    }
    if keys.exceed_memory(grouping.expected) {
        return decline("more groups by values that only the server compares than there is memory for");
    }
    let mut known: Vec<_> = groups.iter().map(|column| column.attno).zip(keys.values()).collect();
    let Keys { mut keys, shown: mut aggregates, .. } = keys;
    if keys.is_empty() && grouping.by_query && grouping.sets.is_none() {
        // The server leaves out columns that a condition holds to one value.
        keys.push(constants::boolean(true));
    }
    for attno in others {
        let (column_type, value) = column(attno)?;
        known.push((attno, Expression::Column(keys.len() + aggregates.len())));
        aggregates.push(first(column_type.type_oid, value));
    }
    let numbered = numbered(context, &calls, &below.columns, keys.len(), &mut aggregates)?;
    let number = Expression::Column(keys.len() + aggregates.len());
    let sets = grouping.sets.as_deref().map(|sets| Sets { number: &number, sets });
    let all = all_groups(below.plan, keys, aggregates, grouping, &known);
    let scope = Scope::Groups { keys: &known, aggregates: &numbered, sets };
    let conditions = expressions::conditions(context, plan.conditions().iter(), scope)?;
    let columns = target_list(context, plan, scope)?;
    let plan = in_order_of(scan::filtered(all, conditions), &ordering, &known, sets)?;
    Ok(Relation { plan, columns })
}

/// The translation of each aggregate, by its number. Each is added once to the grouping's aggregates, which
/// come after `keys` keys.
fn numbered(
    context: &mut Context<'_>,
    calls: &[Typed<'_, pg_sys::Aggref>],
    inputs: &[Expression],
    keys: usize,
    aggregates: &mut Vec<Aggregate>,
) -> Result<Vec<Expression>, Reason> {
    let mut numbered = Vec::new();
    for &call in calls {
        let Ok(number) = usize::try_from(call.aggno) else {
            return decline("aggregate without a number");
        };
        if numbered.len() <= number {
            numbered.resize(number + 1, None);
        }
        if let Some(place) = numbered.get_mut(number)
            && place.is_none()
        {
            let next = keys + aggregates.len();
            *place = Some(match percentiles::several(context, call, inputs, next)? {
                Some((list, parts)) => {
                    aggregates.extend(parts);
                    list
                }
                None => {
                    aggregates.push(one(context, call, inputs)?);
                    Expression::Column(next)
                }
            });
        }
    }
    Ok(numbered.into_iter().map(|place| place.unwrap_or(Expression::Column(usize::MAX))).collect())
}

/// The operator that makes all groups, of the one set or of several.
fn all_groups(
    input: Plan,
    keys: Vec<Expression>,
    aggregates: Vec<Aggregate>,
    grouping: &Grouping<'_>,
    known: &[(i16, Expression)],
) -> Plan {
    let input = Box::new(input);
    let Some(sets) = &grouping.sets else {
        return Plan::Aggregate { input, keys, aggregates, groups: grouping.expected };
    };
    let of_set = |set: &Vec<i16>| {
        let keys = known.iter().take(keys.len()).enumerate();
        keys.filter(|(_, (attno, _))| set.contains(attno)).map(|(at, _)| at).collect()
    };
    let sets = sets.iter().map(of_set).collect();
    Plan::GroupingSets { input, keys, sets, aggregates }
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
        // A column that is not grouped by only orders rows within a group.
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

/// The columns of its input that a node mentions.
struct Mentioned<'a> {
    /// Columns that are grouped by.
    groups: Vec<EqualColumn>,
    /// Columns that are not, from 1.
    others: Vec<i16>,
    calls: Vec<Typed<'a, pg_sys::Aggref>>,
}

fn mentioned<'a>(grouping: &Grouping<'a>) -> Result<Mentioned<'a>, Reason> {
    use tree::Expression as E;
    let plan = grouping.plan;
    let inputs = targets(plan.input());
    let mut groups = Vec::new();
    for &column in &grouping.columns {
        let Some(&node) = inputs.get(column.place()) else { return decline("grouping by no column") };
        if !types::is_default_equality(types::column_of(node), column.operator) {
            return decline("grouping by an operator of another class");
        }
        groups.push(column);
    }
    let (mut others, mut calls) = (Vec::new(), Vec::new());
    let flags = pg_sys::PVC_INCLUDE_AGGREGATES | pg_sys::PVC_RECURSE_PLACEHOLDERS;
    for list in [plan.targets().pulled(flags), plan.conditions().pulled(flags)] {
        for node in list {
            match node.expression() {
                E::Aggref(call) => calls.push(call),
                E::Var(var)
                    if !others.contains(&var.varattno)
                        && !groups.iter().any(|grouped| grouped.attno == var.varattno) =>
                {
                    others.push(var.varattno);
                }
                // GROUPING names grouped columns without reading them.
                _ => {}
            }
        }
    }
    Ok(Mentioned { groups, others, calls })
}
