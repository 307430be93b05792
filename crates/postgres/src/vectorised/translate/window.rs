//! Window functions.
//!
//! A WindowAgg computes the functions of one window over input that is in its order. Run conditions
//! (`row_number() <= 10`) only save the server work. The topmost WindowAgg leaves out rows for which its run
//! conditions are not TRUE; here this is a filter. Run conditions of a lower WindowAgg are not translated:
//! the topmost one's own conditions leave out the same rows.

use pgrx::pg_sys::{self, Datum};
use query::{
    AggregateFunction, Expression, FrameBound, FrameExclusion, FrameOffset, FrameUnits, Plan, TextOrder,
    WindowCall, WindowFrame, WindowFunction,
};
use vector::{LogicalType, Values, Vector};

use super::constants::{self, boolean};
use super::expressions::{self, call};
use super::scope::Scope;
use super::{
    Context, Order, Relation, aggregate, decline, input, keys as key, scan, target_list, targets, types,
};
use crate::host::tree::{self, EqualColumn, Node, Typed};
use crate::vectorised::translated::{OutputColumn, Reason};

/// A WindowAgg.
pub fn window(context: &mut Context<'_>, node: Typed<'_, pg_sys::WindowAgg>) -> Result<Relation, Reason> {
    let plan = node.plan();
    let child = plan.input();
    let below = input(context, child, Order::Kept)?.plain();
    let inputs = targets(child);
    let partition = keys(context, node.partition(), &inputs, &below)?;
    let order = keys(context, node.order(), &inputs, &below)?;
    let frame = frame(context, node, order.first().map(|(key, _)| *key))?;

    // The server leaves out all rows after the first row that fails, even if the function is not monotone
    // after all.
    let monotone = frame.exclusion == FrameExclusion::Nothing
        && (node.ordNumCols > 0 || frame.units == FrameUnits::Range);
    if !node.run_condition().is_empty() && !monotone {
        return decline("run condition of a count that may go up and down");
    }

    let width = below.plan.types().len();
    let mut known: Vec<(Typed<'_, pg_sys::WindowFunc>, Expression)> = Vec::new();
    let mut functions = Vec::new();
    let inputs = Scope::Inputs { outer: &below.columns, inner: &[] };
    for found in calls(plan) {
        if known.iter().any(|(other, _)| found.node().equals(other.node())) {
            continue;
        }
        known.push((found, Expression::Column(width + functions.len())));
        functions.push(function(context, found, inputs)?);
    }
    let scope = Scope::Windows { outer: &below.columns, functions: &known };
    let looks_for_row = |call: &WindowCall| {
        use WindowFunction as W;
        matches!(call.function, W::FirstValue | W::LastValue | W::NthValue)
    };
    if leaves_out_itself(&frame) && functions.iter().any(looks_for_row) {
        return decline("rows of frames that leave out the current row but not all of its peers");
    }
    let columns = target_list(context, plan, scope)?;
    let mut conditions = Vec::new();
    if node.topWindow {
        // These look at the node's own columns.
        let own = Scope::Own { columns: &columns };
        conditions = expressions::conditions(context, node.run_condition().iter(), own)?;
        conditions.extend(expressions::conditions(context, plan.conditions().iter(), scope)?);
    }
    let plan = Plan::Window {
        input: Box::new(below.plan),
        partition: partition.into_iter().map(|(_, column)| column).collect(),
        order: order.into_iter().map(|(_, column)| column).collect(),
        frame,
        functions,
    };
    Ok(left_by(conditions, plan, columns))
}

/// The columns that a window is partitioned or ordered by: each column's type, and the key that tells its
/// values apart.
fn keys(
    context: &mut Context<'_>,
    columns: impl Iterator<Item = EqualColumn>,
    inputs: &[Node<'_>],
    below: &Relation,
) -> Result<Vec<(OutputColumn, Expression)>, Reason> {
    columns
        .map(|column| {
            let place = column.place();
            let (Some(&node), Some(value)) = (inputs.get(place), below.columns.get(place)) else {
                return decline("window of no column");
            };
            let type_of = OutputColumn { collation: column.collation, ..types::column_of(node) };
            if !types::is_default_equality(type_of, column.operator) {
                return decline("window by an operator of another class");
            }
            Ok((type_of, key::equality(context, type_of, value.clone())?))
        })
        .collect()
}

/// The rows that a node's conditions leave. The server computes its columns for rows that it leaves out, too:
/// they may fail.
fn left_by(conditions: Vec<Expression>, plan: Plan, columns: Vec<Expression>) -> Relation {
    let types = plan.types();
    if conditions.is_empty() || !columns.iter().any(|column| column.can_raise(&types)) {
        return Relation { plan: scan::filtered(plan, conditions), columns };
    }
    let first = types.len();
    let made = first..first + columns.len();
    let expressions = (0..first).map(Expression::Column).chain(columns).collect();
    let plan = Plan::Project { input: Box::new(plan), expressions };
    Relation { plan: scan::filtered(plan, conditions), columns: made.map(Expression::Column).collect() }
}

/// Whether rows may be left out as peers of a current row that is not in its frame itself. The server counts
/// that row among the frame's when it looks for the first, last or n-th of them.
fn leaves_out_itself(frame: &WindowFrame) -> bool {
    frame.exclusion == FrameExclusion::Ties
        && frame.units == FrameUnits::Rows
        && (matches!(frame.start, FrameBound::Following(_)) || matches!(frame.end, FrameBound::Preceding(_)))
}

/// The window functions that a node computes, as often as they are mentioned.
fn calls(plan: tree::Plan<'_>) -> Vec<Typed<'_, pg_sys::WindowFunc>> {
    let flags = pg_sys::PVC_INCLUDE_WINDOWFUNCS | pg_sys::PVC_RECURSE_PLACEHOLDERS;
    let lists = [plan.targets().pulled(flags), plan.conditions().pulled(flags)];
    lists.into_iter().flatten().filter_map(Node::as_a).collect()
}

/// One function.
fn function(
    context: &mut Context<'_>,
    call: Typed<'_, pg_sys::WindowFunc>,
    scope: Scope<'_>,
) -> Result<WindowCall, Reason> {
    // Where the filter is not TRUE the server does not compute the arguments.
    let all = |context: &mut Context<'_>| expressions::all(context, call.args(), scope);
    let mut arguments = match call.filter() {
        None => all(context)?,
        Some(_) => expressions::for_some_rows(context, all)?,
    };
    let first = call.args().get(0).map(types::column_of);
    let mut function = which(call.winfnoid, &mut arguments)?;
    let order = match (function, first) {
        (WindowFunction::Aggregate(AggregateFunction::Min | AggregateFunction::Max), Some(column)) => {
            types::order(OutputColumn { collation: call.inputcollid, ..column })?
        }
        _ => TextOrder::Bytes,
    };
    if let Some(filter) = call.filter() {
        let filter = expressions::expression(context, filter, scope)?;
        // Where the filter is not TRUE the argument is NULL, which every aggregate leaves out.
        let value = match arguments.is_empty() {
            true => boolean(true),
            false => arguments.remove(0),
        };
        if function == WindowFunction::Aggregate(AggregateFunction::CountRows) {
            function = WindowFunction::Aggregate(AggregateFunction::Count);
        }
        let result = match (first, &value) {
            (_, Expression::Call { result, .. }) => *result,
            (Some(column), _) => types::logical(column.type_oid),
            (None, _) => LogicalType::Bool,
        };
        arguments.insert(0, Expression::Case { branches: vec![(filter, value)], otherwise: None, result });
    }
    Ok(WindowCall { function, arguments, order, result: types::logical(call.wintype) })
}

/// Which function it is; its arguments are cast to what that takes.
fn which(oid: pg_sys::Oid, arguments: &mut Vec<Expression>) -> Result<WindowFunction, Reason> {
    use WindowFunction as W;
    use pg_sys as p;
    Ok(match oid.to_u32() {
        p::F_ROW_NUMBER => W::RowNumber,
        p::F_RANK_ => W::Rank,
        p::F_DENSE_RANK_ => W::DenseRank,
        p::F_PERCENT_RANK_ => W::PercentRank,
        p::F_CUME_DIST_ => W::CumeDist,
        p::F_NTILE => W::Ntile,
        p::F_LAG_ANYELEMENT | p::F_LAG_ANYELEMENT_INT4 | p::F_LAG_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE => W::Lag,
        p::F_LEAD_ANYELEMENT | p::F_LEAD_ANYELEMENT_INT4 | p::F_LEAD_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE => {
            W::Lead
        }
        p::F_FIRST_VALUE => W::FirstValue,
        p::F_LAST_VALUE => W::LastValue,
        p::F_NTH_VALUE => W::NthValue,
        p::F_STRING_AGG_TEXT_TEXT => W::Aggregate(AggregateFunction::StringAgg),
        number => match aggregate::function(number).or_else(|| over_uint8(oid)) {
            Some((function, cast)) => {
                if let Some(to) = cast {
                    let cast = |value| call(query::Function::Cast(to), vec![value], to);
                    *arguments = std::mem::take(arguments).into_iter().map(cast).collect();
                }
                W::Aggregate(function)
            }
            None => return decline(format!("window function {}", super::functions::name_of(oid))),
        },
    })
}

/// Aggregates over `engine.uint8`, whose sums are those of numerics here.
fn over_uint8(oid: pg_sys::Oid) -> Option<(AggregateFunction, Option<LogicalType>)> {
    use AggregateFunction as A;
    Some(match aggregate::of_uint8(oid)? {
        (function @ (A::Sum | A::Avg), _) => (function, Some(LogicalType::Numeric)),
        found => found,
    })
}

/// The frame of a node; `key` is the first column of its order.
fn frame(
    context: &mut Context<'_>,
    node: Typed<'_, pg_sys::WindowAgg>,
    key: Option<OutputColumn>,
) -> Result<WindowFrame, Reason> {
    use pg_sys as p;
    let options = node.frameOptions as u32;
    let has = |option: u32| options & option != 0;
    let units = match () {
        () if has(p::FRAMEOPTION_ROWS) => FrameUnits::Rows,
        () if has(p::FRAMEOPTION_GROUPS) => FrameUnits::Groups,
        () => FrameUnits::Range,
    };
    let first = offset(context, units, node.start_offset(), node.startInRangeFunc, key)?;
    let last = offset(context, units, node.end_offset(), node.endInRangeFunc, key)?;
    let start = match first {
        Some(offset) if has(p::FRAMEOPTION_START_OFFSET_PRECEDING) => FrameBound::Preceding(offset),
        Some(offset) => FrameBound::Following(offset),
        None if has(p::FRAMEOPTION_START_CURRENT_ROW) => FrameBound::CurrentRow,
        None => FrameBound::Unbounded,
    };
    let end = match last {
        Some(offset) if has(p::FRAMEOPTION_END_OFFSET_PRECEDING) => FrameBound::Preceding(offset),
        Some(offset) => FrameBound::Following(offset),
        None if has(p::FRAMEOPTION_END_CURRENT_ROW) => FrameBound::CurrentRow,
        None => FrameBound::Unbounded,
    };
    let exclusion = match () {
        () if has(p::FRAMEOPTION_EXCLUDE_CURRENT_ROW) => FrameExclusion::CurrentRow,
        () if has(p::FRAMEOPTION_EXCLUDE_GROUP) => FrameExclusion::Group,
        () if has(p::FRAMEOPTION_EXCLUDE_TIES) => FrameExclusion::Ties,
        () => FrameExclusion::Nothing,
    };
    Ok(WindowFrame {
        units,
        start,
        end,
        exclusion,
        descending: !node.inRangeAsc,
        nulls_first: node.inRangeNullsFirst,
    })
}

/// How far a frame reaches. NULL and negative offsets are errors of the server's.
fn offset(
    context: &mut Context<'_>,
    units: FrameUnits,
    node: Option<Node<'_>>,
    in_range: pg_sys::Oid,
    key: Option<OutputColumn>,
) -> Result<Option<FrameOffset>, Reason> {
    let Some(node) = node else { return Ok(None) };
    let offset_type = node.type_oid();
    let value = constants::value(context, node)?;
    let of: fn(Datum) -> Option<FrameOffset> = if units == FrameUnits::Range {
        // A function of the user's may mean another distance.
        let Some(key) = key.filter(|_| in_range.to_u32() < pg_sys::FirstNormalObjectId) else {
            return decline("RANGE by a function of another class");
        };
        distance(types::base_of(key).0, offset_type)?
    } else {
        |value: Datum| u64::try_from(value.value() as i64).ok().map(FrameOffset::Count)
    };
    Ok(Some(value.and_then(of).unwrap_or(FrameOffset::Unknown)))
}

/// How a value of one type says how far a frame reaches over values of another.
fn distance(over: pg_sys::Oid, offset: pg_sys::Oid) -> Result<fn(Datum) -> Option<FrameOffset>, Reason> {
    Ok(match (over, offset) {
        (pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID, pg_sys::INT2OID) => {
            |value| u64::try_from(value.value() as i16).ok().map(FrameOffset::Count)
        }
        (pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID, pg_sys::INT4OID) => {
            |value| u64::try_from(value.value() as i32).ok().map(FrameOffset::Count)
        }
        (pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID, pg_sys::INT8OID) => {
            |value| u64::try_from(value.value() as i64).ok().map(FrameOffset::Count)
        }
        (pg_sys::FLOAT4OID | pg_sys::FLOAT8OID, pg_sys::FLOAT8OID) => |value| {
            let value = f64::from_bits(value.value() as u64);
            (value >= 0.0).then_some(FrameOffset::Float(value))
        },
        (pg_sys::NUMERICOID, pg_sys::NUMERICOID) => |value| {
            // SAFETY: the offset's type is numeric.
            match unsafe { constants::constant(pg_sys::NUMERICOID, value, false) } {
                Expression::Constant(value) => decimal(&value),
                _ => None,
            }
        },
        (pg_sys::DATEOID | pg_sys::TIMESTAMPOID, pg_sys::INTERVALOID) => interval,
        // Days and months of these depend on the time zone.
        (pg_sys::TIMESTAMPTZOID, pg_sys::INTERVALOID) => |value| match interval(value) {
            Some(FrameOffset::Interval { months: 0, days: 0, micros }) => {
                Some(FrameOffset::Interval { months: 0, days: 0, micros })
            }
            _ => None,
        },
        _ => return decline("RANGE over values of this type"),
    })
}

fn decimal(value: &Vector) -> Option<FrameOffset> {
    let Values::Numeric(numeric) = &value.values else { return None };
    let unscaled = numeric.ints.get(0);
    (numeric.side.is_empty() && unscaled >= 0)
        .then_some(FrameOffset::Decimal { unscaled, scale: numeric.scale })
}

/// An interval that is not negative as the server compares them, with months of 30 days.
fn interval(value: Datum) -> Option<FrameOffset> {
    // SAFETY: the Datum is an interval, passed by reference.
    let interval = unsafe { *value.cast_mut_ptr::<pg_sys::Interval>() };
    let (micros, days, months) = (interval.time, interval.day, interval.month);
    let all = i128::from(micros) + (i128::from(days) + i128::from(months) * 30) * 86_400_000_000;
    (all >= 0).then_some(FrameOffset::Interval { months, days, micros })
}
