//! Translates nodes that make one row of equal rows: DISTINCT and DISTINCT ON over sorted rows, INTERSECT and
//! EXCEPT.
//!
//! A node that compares all columns becomes a grouping by them. The server marks the rows of a set
//! operation's two sides by a column of its own. The numbers of equal rows on each side say how many rows are
//! kept.

use pgrx::pg_sys;
use query::{Aggregate, AggregateFunction, Expression, Function, Plan, TextOrder};
use vector::{CompareOp, LogicalType};

use super::constants::integer;
use super::expressions::call;
use super::grouping::in_order_of;
use super::keys::Keys;
use super::{Context, Order, Relation, decline, input, scan, sort, targets, types};
use crate::host::tree::{self, EqualColumn, Node, PlanNode, Typed};
use crate::vectorised::translated::{OutputColumn, Reason};

/// SELECT DISTINCT over sorted rows. Its target list is that of its input.
pub fn unique(
    context: &mut Context<'_>,
    unique: Typed<'_, pg_sys::Unique>,
    order: Order,
) -> Result<Relation, Reason> {
    let child = unique.plan().input();
    let ordering = if order == Order::Kept { sort::ordering(context, child)? } else { Vec::new() };
    let inputs = targets(child);
    let mut compared = Vec::new();
    for column in unique.columns() {
        let Some(&node) = inputs.get(column.place()) else {
            return decline("DISTINCT of no column");
        };
        let Some(type_of) = compared_as(column, node) else {
            return decline("DISTINCT by an operator of another class");
        };
        compared.push((column.attno, type_of));
    }
    let type_of = |attno| compared.iter().find(|(other, _)| *other == attno).map(|(_, column)| *column);
    let places = (1..).take(inputs.len());
    let Some(types) = places.clone().map(type_of).collect::<Option<Vec<_>>>() else {
        return distinct_on(context, child, &compared);
    };
    let below = input(context, child, Order::Any)?.plain();
    let mut keys = Keys::default();
    for (column, value) in types.into_iter().zip(&below.columns) {
        keys.push(context, column, value.clone())?;
    }
    let known = places.zip(keys.values()).collect::<Vec<_>>();
    let grouped = Plan::Aggregate {
        input: Box::new(below.plan),
        keys: keys.keys,
        aggregates: keys.shown,
        groups: unique.plan().plan_rows,
    };
    let plan = in_order_of(grouped, &ordering, &known, None)?;
    Ok(Relation { plan, columns: known.into_iter().map(|(_, column)| column).collect() })
}

/// What a column is compared as, where that is by the default equality of its type.
fn compared_as(column: EqualColumn, node: Node<'_>) -> Option<OutputColumn> {
    let type_of = OutputColumn { collation: column.collation, ..types::column_of(node) };
    types::is_default_equality(type_of, column.operator).then_some(type_of)
}

/// `SELECT DISTINCT ON`: the first rows of a sort whose first columns tell rows apart.
fn distinct_on(
    context: &mut Context<'_>,
    child: tree::Plan<'_>,
    compared: &[(i16, OutputColumn)],
) -> Result<Relation, Reason> {
    let (PlanNode::Sort(sort) | PlanNode::IncrementalSort(sort)) = child.kind() else {
        return decline("DISTINCT ON rows that are not sorted here");
    };
    let ordering = sort::keys(context, sort)?;
    let columns: Vec<_> = compared.iter().map(|(attno, _)| *attno).collect();
    let below = input(context, child.input(), Order::Any)?.plain();
    let attno = |target: usize| i16::try_from(target + 1).unwrap_or(0);
    let on = ordering.iter().take_while(|key| columns.contains(&attno(key.target))).count();
    if !columns.iter().all(|column| ordering.iter().take(on).any(|key| attno(key.target) == *column)) {
        return decline("DISTINCT ON columns that are not sorted by first");
    }
    let keys = sort::keys_over(ordering, &below.columns)?;
    let plan = Plan::DistinctOn { input: Box::new(below.plan), keys, on };
    Ok(Relation { plan, columns: below.columns })
}

/// INTERSECT and EXCEPT, with and without ALL. The target list is that of the input.
pub fn set_operation(
    context: &mut Context<'_>,
    operation: Typed<'_, pg_sys::SetOp>,
    order: Order,
) -> Result<Relation, Reason> {
    let child = operation.plan().input();
    let sorted = operation.strategy == pg_sys::SetOpStrategy::SETOP_SORTED;
    let ordering = if sorted && order == Order::Kept { sort::ordering(context, child)? } else { Vec::new() };
    let (below, side_of) = match operation.side_column() {
        Some(side) => {
            let below = input(context, child, Order::Any)?.plain();
            let Some(side_of) = below.columns.get(side).cloned() else {
                return decline("set operation of no sides");
            };
            (below, side_of)
        }
        None => both_sides(context, operation.plan())?,
    };
    let inputs = targets(child);
    let mut keys = Keys::default();
    let mut grouped = Vec::new();
    for column in operation.columns() {
        let place = column.place();
        let (Some(&node), Some(value)) = (inputs.get(place), below.columns.get(place)) else {
            return decline("set operation of no column");
        };
        let Some(type_of) = compared_as(column, node) else {
            return decline("set operation by an operator of another class");
        };
        grouped.push(column.attno);
        keys.push(context, type_of, value.clone())?;
    }
    let known: Vec<_> = grouped.into_iter().zip(keys.values()).collect();
    let (left, right) = (Expression::Column(keys.width()), Expression::Column(keys.width() + 1));
    let columns = (1..).take(inputs.len()).map(|attno| match known.iter().find(|(of, _)| *of == attno) {
        Some((_, column)) => column.clone(),
        // The column of the side: no operator reads it any more.
        None => integer(0),
    });
    let columns = columns.collect();
    let counts = [rows_of(&side_of, 0), rows_of(&side_of, 1)];
    let groups = Plan::Aggregate {
        input: Box::new(below.plan),
        keys: keys.keys,
        aggregates: keys.shown.into_iter().chain(counts).collect(),
        groups: operation.plan().plan_rows,
    };
    let plan = kept_of(operation.cmd, groups, left, right)?;
    let plan = in_order_of(plan, &ordering, &known, None)?;
    Ok(Relation { plan, columns })
}

/// The rows of both inputs of a set operation, and the column that says of which of them a row is.
fn both_sides(
    context: &mut Context<'_>,
    operation: tree::Plan<'_>,
) -> Result<(Relation, Expression), Reason> {
    let mut sides = Vec::new();
    for (side, plan) in operation.outer().into_iter().chain(operation.inner()).enumerate() {
        let mut rows = input(context, plan, Order::Any)?;
        rows.columns.push(integer(i32::try_from(side).unwrap_or(0)));
        sides.push(rows.materialise());
    }
    let [left, right] = sides.as_slice() else { return decline("set operation of no sides") };
    let types = left.types();
    if types != right.types() {
        return decline("set operation of different representations");
    }
    let side = types.len() - 1;
    let columns = (0..side).map(Expression::Column).collect();
    let plan = Plan::Append { inputs: sides, removed: 0 };
    Ok((Relation { plan, columns }, Expression::Column(side)))
}

/// How many rows of a group are of this side.
fn rows_of(side: &Expression, which: i32) -> Aggregate {
    Aggregate {
        function: AggregateFunction::CountRows,
        arguments: Vec::new(),
        distinct: false,
        filter: Some(compare(CompareOp::Equal, side.clone(), integer(which))),
        order_by: Vec::new(),
        order: TextOrder::Bytes,
        result: LogicalType::Int64,
        host: None,
    }
}

/// The groups that a set operation keeps, as often as it keeps them, by how many rows each side has of them.
fn kept_of(
    operation: pg_sys::SetOpCmd::Type,
    groups: Plan,
    left: Expression,
    right: Expression,
) -> Result<Plan, Reason> {
    use pg_sys::SetOpCmd as C;
    let some = |side: &Expression| compare(CompareOp::Greater, side.clone(), long(0));
    let repeated = |plan, count| Plan::Repeat { input: Box::new(plan), count };
    Ok(match operation {
        C::SETOPCMD_INTERSECT => {
            scan::filtered(groups, vec![Expression::And(vec![some(&left), some(&right)])])
        }
        C::SETOPCMD_EXCEPT => {
            let none = Expression::Not(Box::new(some(&right)));
            scan::filtered(groups, vec![Expression::And(vec![some(&left), none])])
        }
        C::SETOPCMD_INTERSECT_ALL => {
            let less = compare(CompareOp::Less, left.clone(), right.clone());
            let fewer = Expression::Case {
                branches: vec![(less, left)],
                otherwise: Some(Box::new(right)),
                result: LogicalType::Int64,
            };
            repeated(groups, fewer)
        }
        C::SETOPCMD_EXCEPT_ALL => {
            repeated(groups, call(Function::Subtract, vec![left, right], LogicalType::Int64))
        }
        _ => return decline("set operation"),
    })
}

fn compare(op: CompareOp, left: Expression, right: Expression) -> Expression {
    call(Function::Compare(op), vec![left, right], LogicalType::Bool)
}

fn long(value: i64) -> Expression {
    let values = vector::Values::Int64(vec![value]);
    Expression::Constant(std::sync::Arc::new(vector::Vector::new(LogicalType::Int64, values)))
}
