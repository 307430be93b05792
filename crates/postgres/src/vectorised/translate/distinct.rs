//! Rows of which equal ones are one: DISTINCT and DISTINCT ON over sorted rows, INTERSECT and EXCEPT.
//!
//! What compares all columns is a grouping by them. The server marks the rows of a set operation's two sides
//! by a column of its own; how many each side has of equal rows says how many are kept.

use pgrx::pg_sys::{self, NodeTag};
use query::{Aggregate, AggregateFunction, Expression, Function, Plan, TextOrder};
use vector::{CompareOp, LogicalType};

use super::constants::integer;
use super::expressions::call;
use super::grouping::in_order_of;
use super::keys::{self, Keys};
use super::{Context, Order, Relation, decline, input, scan, sort, targets, types};
use crate::vectorised::translated::{OutputColumn, Reason};

/// SELECT DISTINCT over sorted rows.
///
/// # Safety
/// A finished plan node.
pub unsafe fn unique(
    context: &mut Context<'_>,
    unique: *mut pg_sys::Unique,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: the arrays have numCols entries; the target list is that of the input.
    unsafe {
        let child = (*unique).plan.lefttree;
        let ordering = if order == Order::Kept { sort::ordering(context, child)? } else { Vec::new() };
        let inputs = targets(child);
        let mut compared = Vec::new();
        for at in 0..usize::try_from((*unique).numCols).unwrap_or(0) {
            let attno = *(*unique).uniqColIdx.add(at);
            let Some(&node) = inputs.get(usize::try_from(attno).unwrap_or(0).wrapping_sub(1)) else {
                return decline("DISTINCT of no column");
            };
            let column =
                OutputColumn { collation: *(*unique).uniqCollations.add(at), ..types::column_of(node) };
            if !types::is_default_equality(column, *(*unique).uniqOperators.add(at)) {
                return decline("DISTINCT by an operator of another class");
            }
            compared.push((attno, column));
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
            groups: (*unique).plan.plan_rows,
        };
        let plan = in_order_of(grouped, &ordering, &known, None)?;
        Ok(Relation { plan, columns: known.into_iter().map(|(_, column)| column).collect() })
    }
}

/// `SELECT DISTINCT ON`: the first rows of a sort whose first columns tell rows apart.
unsafe fn distinct_on(
    context: &mut Context<'_>,
    child: *mut pg_sys::Plan,
    compared: &[(i16, OutputColumn)],
) -> Result<Relation, Reason> {
    // SAFETY: a finished plan node; the cast follows the tag.
    unsafe {
        if !matches!((*child).type_, NodeTag::T_Sort | NodeTag::T_IncrementalSort) {
            return decline("DISTINCT ON rows that are not sorted here");
        }
        let ordering = sort::keys(context, child.cast())?;
        let columns: Vec<_> = compared.iter().map(|(attno, _)| *attno).collect();
        let below = input(context, (*child).lefttree, Order::Any)?.plain();
        let attno = |target: usize| i16::try_from(target + 1).unwrap_or(0);
        let on = ordering.iter().take_while(|key| columns.contains(&attno(key.target))).count();
        if !columns.iter().all(|column| ordering.iter().take(on).any(|key| attno(key.target) == *column)) {
            return decline("DISTINCT ON columns that are not sorted by first");
        }
        let keys = ordering
            .into_iter()
            .map(|sort::Key { target, key }| match below.columns.get(target) {
                Some(column) => Ok(keys::over(&key, column.clone())),
                None => decline("order by no column"),
            })
            .collect::<Result<Vec<_>, Reason>>()?;
        let plan = Plan::DistinctOn { input: Box::new(below.plan), keys, on };
        Ok(Relation { plan, columns: below.columns })
    }
}

/// INTERSECT and EXCEPT, with and without ALL.
///
/// # Safety
/// A finished plan node.
pub unsafe fn set_operation(
    context: &mut Context<'_>,
    operation: *mut pg_sys::SetOp,
    order: Order,
) -> Result<Relation, Reason> {
    use pg_sys::SetOpCmd as C;
    // SAFETY: the arrays have numCols entries; the target list is that of the input.
    unsafe {
        let child = (*operation).plan.lefttree;
        let sorted = (*operation).strategy == pg_sys::SetOpStrategy::SETOP_SORTED;
        let ordering =
            if sorted && order == Order::Kept { sort::ordering(context, child)? } else { Vec::new() };
        let below = input(context, child, Order::Any)?.plain();
        let inputs = targets(child);
        let side = usize::try_from((*operation).flagColIdx).unwrap_or(0).wrapping_sub(1);
        let Some(side_of) = below.columns.get(side).cloned() else {
            return decline("set operation of no sides");
        };
        let mut keys = Keys::default();
        let mut grouped = Vec::new();
        for at in 0..usize::try_from((*operation).numCols).unwrap_or(0) {
            let attno = *(*operation).dupColIdx.add(at);
            let place = usize::try_from(attno).unwrap_or(0).wrapping_sub(1);
            let (Some(&node), Some(value)) = (inputs.get(place), below.columns.get(place)) else {
                return decline("set operation of no column");
            };
            let collation = *(*operation).dupCollations.add(at);
            let column = OutputColumn { collation, ..types::column_of(node) };
            if !types::is_default_equality(column, *(*operation).dupOperators.add(at)) {
                return decline("set operation by an operator of another class");
            }
            grouped.push(attno);
            keys.push(context, column, value.clone())?;
        }
        let known: Vec<_> = grouped.into_iter().zip(keys.values()).collect();
        let count = |of: i32| Aggregate {
            function: AggregateFunction::CountRows,
            arguments: Vec::new(),
            distinct: false,
            filter: Some(compare(CompareOp::Equal, side_of.clone(), integer(of))),
            order_by: Vec::new(),
            order: TextOrder::Bytes,
            result: LogicalType::Int64,
            host: None,
        };
        let (left, right) = (Expression::Column(keys.width()), Expression::Column(keys.width() + 1));
        let columns = (1..).take(inputs.len()).map(|attno| match known.iter().find(|(of, _)| *of == attno) {
            Some((_, column)) => column.clone(),
            // The side: nobody reads it any more.
            None => integer(0),
        });
        let columns = columns.collect();
        let groups = Plan::Aggregate {
            input: Box::new(below.plan),
            keys: keys.keys,
            aggregates: keys.shown.into_iter().chain([count(0), count(1)]).collect(),
            groups: (*operation).plan.plan_rows,
        };
        let some = |side: &Expression| compare(CompareOp::Greater, side.clone(), long(0));
        let both = Expression::And(vec![some(&left), some(&right)]);
        let repeated = |plan, count| Plan::Repeat { input: Box::new(plan), count };
        let plan = match (*operation).cmd {
            C::SETOPCMD_INTERSECT => scan::filtered(groups, vec![both]),
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
        };
        let plan = in_order_of(plan, &ordering, &known, None)?;
        Ok(Relation { plan, columns })
    }
}

fn compare(op: CompareOp, left: Expression, right: Expression) -> Expression {
    call(Function::Compare(op), vec![left, right], LogicalType::Bool)
}

fn long(value: i64) -> Expression {
    let values = vector::Values::Int64(vec![value]);
    Expression::Constant(std::sync::Arc::new(vector::Vector::new(LogicalType::Int64, values)))
}
