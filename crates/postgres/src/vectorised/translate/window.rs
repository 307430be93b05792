//! Window functions.
//!
//! A WindowAgg computes the functions of one window over input that is in its order. Run conditions
//! (`row_number() <= 10`) only save the server work: the topmost WindowAgg leaves out rows for which they are
//! not TRUE, which is a filter here; below it their rows are left out by the topmost one's own conditions.

use pgrx::PgList;
use pgrx::pg_sys::{self, Datum, NodeTag};
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
use crate::host::tree;
use crate::vectorised::translated::{OutputColumn, Reason};

/// A WindowAgg.
///
/// # Safety
/// A finished plan node.
pub unsafe fn window(context: &mut Context<'_>, node: *mut pg_sys::WindowAgg) -> Result<Relation, Reason> {
    // SAFETY: a WindowAgg has one input, arrays of as many entries as it says, and lists of expressions.
    unsafe {
        let plan = &raw mut (*node).plan;
        let child = (*plan).lefttree;
        let below = input(context, child, Order::Kept)?.plain();
        let inputs = targets(child);
        let mut keys = |count,
                        columns: *mut i16,
                        operators: *mut pg_sys::Oid,
                        collations: *mut pg_sys::Oid| {
            (0..usize::try_from(count).unwrap_or(0))
                .map(|at| {
                    let place = usize::try_from(*columns.add(at)).unwrap_or(0).wrapping_sub(1);
                    let (Some(&node), Some(column)) = (inputs.get(place), below.columns.get(place)) else {
                        return decline("window of no column");
                    };
                    let type_of = OutputColumn { collation: *collations.add(at), ..types::column_of(node) };
                    if !types::is_default_equality(type_of, *operators.add(at)) {
                        return decline("window by an operator of another class");
                    }
                    Ok((type_of, key::equality(context, type_of, column.clone())?))
                })
                .collect::<Result<Vec<_>, Reason>>()
        };
        let partition =
            keys((*node).partNumCols, (*node).partColIdx, (*node).partOperators, (*node).partCollations)?;
        let order = keys((*node).ordNumCols, (*node).ordColIdx, (*node).ordOperators, (*node).ordCollations)?;
        let frame = frame(context, &*node, order.first().map(|(key, _)| *key))?;

        // The server leaves out whatever follows the first row that fails, also where the function is not
        // monotone after all.
        let monotone = frame.exclusion == FrameExclusion::Nothing
            && ((*node).ordNumCols > 0 || frame.units == FrameUnits::Range);
        if !(*node).runCondition.is_null() && !monotone {
            return decline("run condition of a count that may go up and down");
        }

        let width = below.plan.types().len();
        let mut known: Vec<(*mut pg_sys::WindowFunc, Expression)> = Vec::new();
        let mut functions = Vec::new();
        let inputs = Scope::Inputs { outer: &below.columns, inner: &[] };
        for found in calls(plan) {
            if known.iter().any(|(other, _)| pg_sys::equal(found.cast(), (*other).cast())) {
                continue;
            }
            known.push((found, Expression::Column(width + functions.len())));
            functions.push(function(context, &*found, inputs)?);
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
        if (*node).topWindow {
            // These look at the node's own columns.
            let own = Scope::Own { columns: &columns };
            conditions = expressions::conditions(context, (*node).runCondition, own)?;
            conditions.extend(expressions::conditions(context, (*plan).qual, scope)?);
        }
        let plan = Plan::Window {
            input: Box::new(below.plan),
            partition: partition.into_iter().map(|(_, column)| column).collect(),
            order: order.into_iter().map(|(_, column)| column).collect(),
            frame,
            functions,
        };
        // The server computes its columns for rows that it leaves out, too: they may fail.
        let types = plan.types();
        if conditions.is_empty() || !columns.iter().any(|column| column.can_raise(&types)) {
            return Ok(Relation { plan: scan::filtered(plan, conditions), columns });
        }
        let first = types.len();
        let made = first..first + columns.len();
        let expressions = (0..first).map(Expression::Column).chain(columns).collect();
        let plan = Plan::Project { input: Box::new(plan), expressions };
        Ok(Relation {
            plan: scan::filtered(plan, conditions),
            columns: made.map(Expression::Column).collect(),
        })
    }
}

/// Whether rows may be left out as peers of a current row that is not in its frame itself. The server counts
/// that row among the frame's when it looks for the first, last or n-th of them.
fn leaves_out_itself(frame: &WindowFrame) -> bool {
    frame.exclusion == FrameExclusion::Ties
        && frame.units == FrameUnits::Rows
        && (matches!(frame.start, FrameBound::Following(_)) || matches!(frame.end, FrameBound::Preceding(_)))
}

/// The window functions that a node computes, as often as they are mentioned.
unsafe fn calls(plan: *mut pg_sys::Plan) -> Vec<*mut pg_sys::WindowFunc> {
    let mut found = Vec::new();
    // SAFETY: target list and conditions are lists of expressions; what is pulled is what the flags say.
    unsafe {
        for list in [(*plan).targetlist, (*plan).qual] {
            let flags = pg_sys::PVC_INCLUDE_WINDOWFUNCS | pg_sys::PVC_RECURSE_PLACEHOLDERS;
            let nodes = tree::pulled(list.cast(), flags).into_iter();
            found.extend(
                nodes
                    .filter(|&node| (*node).type_ == NodeTag::T_WindowFunc)
                    .map(|node| node.cast::<pg_sys::WindowFunc>()),
            );
        }
    }
    found
}

/// One function.
unsafe fn function(
    context: &mut Context<'_>,
    expr: &pg_sys::WindowFunc,
    scope: Scope<'_>,
) -> Result<WindowCall, Reason> {
    use WindowFunction as W;
    use pg_sys as p;
    // SAFETY: args is a list of expressions, aggfilter an expression or null.
    unsafe {
        // Where the filter is not TRUE the server does not compute the arguments.
        let mut arguments = match expr.aggfilter.is_null() {
            true => expressions::all(context, expr.args, scope)?,
            false => {
                expressions::for_some_rows(context, |context| expressions::all(context, expr.args, scope))?
            }
        };
        let first =
            PgList::<pg_sys::Node>::from_pg(expr.args).get_ptr(0).map(|first| types::column_of(first));
        let oid = expr.winfnoid.to_u32();
        let mut function = match oid {
            p::F_ROW_NUMBER => W::RowNumber,
            p::F_RANK_ => W::Rank,
            p::F_DENSE_RANK_ => W::DenseRank,
            p::F_PERCENT_RANK_ => W::PercentRank,
            p::F_CUME_DIST_ => W::CumeDist,
            p::F_NTILE => W::Ntile,
            p::F_LAG_ANYELEMENT | p::F_LAG_ANYELEMENT_INT4 | p::F_LAG_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE => {
                W::Lag
            }
            p::F_LEAD_ANYELEMENT | p::F_LEAD_ANYELEMENT_INT4 | p::F_LEAD_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE => {
                W::Lead
            }
            p::F_FIRST_VALUE => W::FirstValue,
            p::F_LAST_VALUE => W::LastValue,
            p::F_NTH_VALUE => W::NthValue,
            p::F_STRING_AGG_TEXT_TEXT => W::Aggregate(AggregateFunction::StringAgg),
            _ => match aggregate::function(oid) {
                Some((function, cast)) => {
                    if let Some(to) = cast {
                        let cast = |value| call(query::Function::Cast(to), vec![value], to);
                        arguments = arguments.into_iter().map(cast).collect();
                    }
                    W::Aggregate(function)
                }
                None => {
                    let name = super::functions::name_of(expr.winfnoid);
                    return decline(format!("window function {name}"));
                }
            },
        };
        let order = match (function, first) {
            (W::Aggregate(AggregateFunction::Min | AggregateFunction::Max), Some(column)) => {
                types::order(OutputColumn { collation: expr.inputcollid, ..column })?
            }
            _ => TextOrder::Bytes,
        };
        if !expr.aggfilter.is_null() {
            let filter = expressions::expression(context, expr.aggfilter.cast(), scope)?;
            // Where the filter is not TRUE the argument is NULL, which every aggregate leaves out.
            let value = match arguments.is_empty() {
                true => boolean(true),
                false => arguments.remove(0),
            };
            if function == W::Aggregate(AggregateFunction::CountRows) {
                function = W::Aggregate(AggregateFunction::Count);
            }
            let result = match (first, &value) {
                (_, Expression::Call { result, .. }) => *result,
                (Some(column), _) => types::logical(column.type_oid),
                (None, _) => LogicalType::Bool,
            };
            arguments
                .insert(0, Expression::Case { branches: vec![(filter, value)], otherwise: None, result });
        }
        Ok(WindowCall { function, arguments, order, result: types::logical(expr.wintype) })
    }
}

/// The frame of a node; `key` is the first column of its order.
unsafe fn frame(
    context: &mut Context<'_>,
    node: &pg_sys::WindowAgg,
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
    // SAFETY: the offsets are expressions, or null.
    let (first, last) = unsafe {
        (
            offset(context, units, node.startOffset, node.startInRangeFunc, key)?,
            offset(context, units, node.endOffset, node.endInRangeFunc, key)?,
        )
    };
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
unsafe fn offset(
    context: &mut Context<'_>,
    units: FrameUnits,
    node: *mut pg_sys::Node,
    in_range: pg_sys::Oid,
    key: Option<OutputColumn>,
) -> Result<Option<FrameOffset>, Reason> {
    if node.is_null() {
        return Ok(None);
    }
    // SAFETY: an expression without columns; a value has the type of its expression.
    unsafe {
        let offset_type = pg_sys::exprType(node);
        let value = constants::value(context, node)?;
        let known = |of: fn(Datum) -> Option<FrameOffset>| {
            Ok(Some(value.and_then(of).unwrap_or(FrameOffset::Unknown)))
        };
        if units != FrameUnits::Range {
            return known(|value| u64::try_from(value.value() as i64).ok().map(FrameOffset::Count));
        }
        // A function of the user's may mean another distance.
        let Some(key) = key.filter(|_| in_range.to_u32() < pg_sys::FirstNormalObjectId) else {
            return decline("RANGE by a function of another class");
        };
        match (types::base_of(key).0, offset_type) {
            (pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID, pg_sys::INT2OID) => {
                known(|value| u64::try_from(value.value() as i16).ok().map(FrameOffset::Count))
            }
            (pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID, pg_sys::INT4OID) => {
                known(|value| u64::try_from(value.value() as i32).ok().map(FrameOffset::Count))
            }
            (pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID, pg_sys::INT8OID) => {
                known(|value| u64::try_from(value.value() as i64).ok().map(FrameOffset::Count))
            }
            (pg_sys::FLOAT4OID | pg_sys::FLOAT8OID, pg_sys::FLOAT8OID) => known(|value| {
                let value = f64::from_bits(value.value() as u64);
                (value >= 0.0).then_some(FrameOffset::Float(value))
            }),
            (pg_sys::NUMERICOID, pg_sys::NUMERICOID) => known(|value| {
                // SAFETY: the Datum is a numeric.
                match constants::constant(pg_sys::NUMERICOID, value, false) {
                    Expression::Constant(value) => decimal(&value),
                    _ => None,
                }
            }),
            (pg_sys::DATEOID | pg_sys::TIMESTAMPOID, pg_sys::INTERVALOID) => known(interval),
            // Days and months of these depend on the time zone.
            (pg_sys::TIMESTAMPTZOID, pg_sys::INTERVALOID) => known(|value| match interval(value) {
                Some(FrameOffset::Interval { months: 0, days: 0, micros }) => {
                    Some(FrameOffset::Interval { months: 0, days: 0, micros })
                }
                _ => None,
            }),
            _ => decline("RANGE over values of this type"),
        }
    }
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
