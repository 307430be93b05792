//! Translates aggregates: to which aggregate of `query`, over which arguments, in which order.
//!
//! `grouping` calls it for each aggregate that a node computes, `window` for aggregates over frames.
//! Aggregates that `query` does not know are left to the server's own functions (`server_aggregate`).

use std::sync::Arc;

use pgrx::pg_sys::{self, Oid};
use query::{
    Aggregate, AggregateFunction, Expression, Function, HostAggregate, Regression, SortKey, TextOrder,
};
use vector::LogicalType;

use super::expressions::{self, call};
use super::scope::Scope;
use super::{Context, decline, kept, keys, percentiles, sort, types};
use crate::host::own_type;
use crate::host::tree::Typed;
use crate::vectorised::server_aggregate::ServerAggregate;
use crate::vectorised::translated::{OutputColumn, Reason};

/// Which function an aggregate is, and the type its argument is cast to.
pub fn function(oid: u32) -> Option<(AggregateFunction, Option<LogicalType>)> {
    use AggregateFunction as A;
    use pg_sys as p;
    Some(match oid {
        p::F_COUNT_ => (A::CountRows, None),
        p::F_COUNT_ANY => (A::Count, None),
        p::F_SUM_INT2
        | p::F_SUM_INT4
        | p::F_SUM_INT8
        | p::F_SUM_FLOAT4
        | p::F_SUM_FLOAT8
        | p::F_SUM_NUMERIC => (A::Sum, None),
        p::F_AVG_INT2
        | p::F_AVG_INT4
        | p::F_AVG_INT8
        | p::F_AVG_FLOAT4
        | p::F_AVG_FLOAT8
        | p::F_AVG_NUMERIC => (A::Avg, None),
        p::F_MIN_INT2
        | p::F_MIN_INT4
        | p::F_MIN_INT8
        | p::F_MIN_FLOAT4
        | p::F_MIN_FLOAT8
        | p::F_MIN_NUMERIC
        | p::F_MIN_DATE
        | p::F_MIN_TIME
        | p::F_MIN_MONEY
        | p::F_MIN_TIMESTAMP
        | p::F_MIN_TIMESTAMPTZ
        | p::F_MIN_TEXT
        | p::F_MIN_BPCHAR => (A::Min, None),
        p::F_MAX_INT2
        | p::F_MAX_INT4
        | p::F_MAX_INT8
        | p::F_MAX_FLOAT4
        | p::F_MAX_FLOAT8
        | p::F_MAX_NUMERIC
        | p::F_MAX_DATE
        | p::F_MAX_TIME
        | p::F_MAX_MONEY
        | p::F_MAX_TIMESTAMP
        | p::F_MAX_TIMESTAMPTZ
        | p::F_MAX_TEXT
        | p::F_MAX_BPCHAR => (A::Max, None),
        p::F_BOOL_AND | p::F_EVERY => (A::BoolAnd, None),
        p::F_BOOL_OR => (A::BoolOr, None),
        _ => return variance(oid),
    })
}

/// Aggregates over `engine.uint8`.
pub fn of_uint8(oid: Oid) -> Option<(AggregateFunction, Option<LogicalType>)> {
    use AggregateFunction as A;
    Some(match own_type::uint8_function(oid)?.as_str() {
        "sum" => (A::Sum, None),
        "avg" => (A::Avg, None),
        "min" => (A::Min, None),
        "max" => (A::Max, None),
        "variance" | "var_samp" => (A::VarSamp, None),
        "var_pop" => (A::VarPop, None),
        "stddev" | "stddev_samp" => (A::StddevSamp, None),
        "stddev_pop" => (A::StddevPop, None),
        _ => return None,
    })
}

/// Functions of pairs of floats.
fn regression(oid: u32) -> Option<(AggregateFunction, Option<LogicalType>)> {
    use Regression as R;
    use pg_sys as p;
    let which = match oid {
        p::F_REGR_COUNT => R::Count,
        p::F_REGR_AVGX => R::AverageX,
        p::F_REGR_AVGY => R::AverageY,
        p::F_REGR_SXX => R::SquaresX,
        p::F_REGR_SYY => R::SquaresY,
        p::F_REGR_SXY => R::Products,
        p::F_COVAR_POP => R::CovarPop,
        p::F_COVAR_SAMP => R::CovarSamp,
        p::F_CORR => R::Corr,
        p::F_REGR_R2 => R::R2,
        p::F_REGR_SLOPE => R::Slope,
        p::F_REGR_INTERCEPT => R::Intercept,
        _ => return None,
    };
    Some((AggregateFunction::Regression(which), None))
}

/// The variance family.
fn variance(oid: u32) -> Option<(AggregateFunction, Option<LogicalType>)> {
    use AggregateFunction as A;
    use pg_sys as p;
    let float = Some(LogicalType::Float64);
    Some(match oid {
        p::F_VARIANCE_FLOAT4 | p::F_VAR_SAMP_FLOAT4 => (A::VarSamp, float),
        p::F_VAR_POP_FLOAT4 => (A::VarPop, float),
        p::F_STDDEV_FLOAT4 | p::F_STDDEV_SAMP_FLOAT4 => (A::StddevSamp, float),
        p::F_STDDEV_POP_FLOAT4 => (A::StddevPop, float),
        p::F_VARIANCE_INT2
        | p::F_VARIANCE_INT4
        | p::F_VARIANCE_INT8
        | p::F_VARIANCE_FLOAT8
        | p::F_VARIANCE_NUMERIC
        | p::F_VAR_SAMP_INT2
        | p::F_VAR_SAMP_INT4
        | p::F_VAR_SAMP_INT8
        | p::F_VAR_SAMP_FLOAT8
        | p::F_VAR_SAMP_NUMERIC => (A::VarSamp, None),
        p::F_VAR_POP_INT2
        | p::F_VAR_POP_INT4
        | p::F_VAR_POP_INT8
        | p::F_VAR_POP_FLOAT8
        | p::F_VAR_POP_NUMERIC => (A::VarPop, None),
        p::F_STDDEV_INT2
        | p::F_STDDEV_INT4
        | p::F_STDDEV_INT8
        | p::F_STDDEV_FLOAT8
        | p::F_STDDEV_NUMERIC
        | p::F_STDDEV_SAMP_INT2
        | p::F_STDDEV_SAMP_INT4
        | p::F_STDDEV_SAMP_INT8
        | p::F_STDDEV_SAMP_FLOAT8
        | p::F_STDDEV_SAMP_NUMERIC => (A::StddevSamp, None),
        p::F_STDDEV_POP_INT2
        | p::F_STDDEV_POP_INT4
        | p::F_STDDEV_POP_INT8
        | p::F_STDDEV_POP_FLOAT8
        | p::F_STDDEV_POP_NUMERIC => (A::StddevPop, None),
        _ => return None,
    })
}

/// Aggregates whose result may depend on the order in which rows come. If the query gives no order, they see
/// the input's own order.
pub(super) fn depends_on_order(call: &pg_sys::Aggref) -> bool {
    let oid = call.aggfnoid.to_u32();
    let known = || function(oid).or_else(|| regression(oid)).or_else(|| of_uint8(call.aggfnoid));
    let any = call.aggkind as u8 != b'n' || known().is_some();
    !has_order(call) && !any
}

/// True where the last digits depend on the order of the rows.
fn adds_floats(function: AggregateFunction, argument: OutputColumn) -> bool {
    use AggregateFunction as A;
    let adds = matches!(
        function,
        A::Sum | A::Avg | A::VarSamp | A::VarPop | A::StddevSamp | A::StddevPop | A::Regression(_)
    );
    adds && matches!(types::logical(argument.type_oid), LogicalType::Float32 | LogicalType::Float64)
}

/// True where the query says in which order an aggregate takes its values: DISTINCT sorts them, too.
fn has_order(call: &pg_sys::Aggref) -> bool {
    !call.aggorder.is_null() || !call.aggdistinct.is_null()
}

/// One aggregate over the input's columns. What `query` does not know is left to the server's functions.
pub(super) fn one(
    context: &mut Context<'_>,
    call: Typed<'_, pg_sys::Aggref>,
    columns: &[Expression],
) -> Result<Aggregate, Reason> {
    let name = || super::functions::name_of(call.aggfnoid);
    let own = match known(context, call) {
        Ok(Some((function, cast))) => computed(context, call, columns, (function, cast, None)),
        Ok(None) => decline(format!("aggregate {}", name())),
        Err(reason) => Err(reason),
    };
    own.or_else(|reason| {
        // SAFETY: `kept` calls this in a memory that lives as long as what it keeps, and so does the plan.
        let make = || unsafe { ServerAggregate::new(call, name()) };
        match kept(context, call.node(), make) {
            Some(host) => computed(context, call, columns, (AggregateFunction::Host, None, Some(host)))
                .map_err(|_| reason),
            None => Err(reason),
        }
    })
}

/// What computes an aggregate: the function, the type its arguments are cast to, and the server's functions
/// where it is theirs.
type By = (AggregateFunction, Option<LogicalType>, Option<Arc<ServerAggregate>>);

/// One aggregate, computed by this.
pub fn computed(
    context: &mut Context<'_>,
    call: Typed<'_, pg_sys::Aggref>,
    columns: &[Expression],
    by: By,
) -> Result<Aggregate, Reason> {
    let scope = Scope::Inputs { outer: columns, inner: &[] };
    let Some(filter) = call.filter() else { return of_all(context, call, scope, by) };
    let filter = expressions::expression(context, filter, scope)?;
    // Where the filter is not TRUE the server computes neither arguments nor keys.
    let aggregate = expressions::for_some_rows(context, |context| of_all(context, call, scope, by))?;
    Ok(Aggregate { filter: Some(filter), ..aggregate })
}

/// One aggregate without its filter.
fn of_all(
    context: &mut Context<'_>,
    call: Typed<'_, pg_sys::Aggref>,
    scope: Scope<'_>,
    (function, cast, host): By,
) -> Result<Aggregate, Reason> {
    let taken = || call.args().iter().filter(|arg| !arg.resjunk).map(Typed::<pg_sys::TargetEntry>::expr);
    let mut arguments = Vec::new();
    for arg in taken() {
        let value = expressions::expression(context, arg, scope)?;
        arguments.push(match cast {
            Some(to) => self::call(Function::Cast(to), vec![value], to),
            None => value,
        });
    }
    let first = taken().next().map(types::column_of);
    let distinct = !call.distinct().is_empty();
    let in_order = host.is_some() || matches!(function, AggregateFunction::StringAgg);
    if !in_order && call.aggkind as u8 == b'n' {
        may_leave_order_out(context, call, scope, (function, first))?;
    }
    if distinct && !in_order {
        let (Some(column), [_]) = (first, arguments.as_slice()) else {
            return decline("DISTINCT of several arguments");
        };
        let collation = if column.collation == Oid::INVALID { column.collation } else { call.inputcollid };
        let column = OutputColumn { collation, ..column };
        if let Err(reason) = types::can_equal(column) {
            // Numbers that stand for values can only be counted.
            if function != AggregateFunction::Count {
                return Err(reason);
            }
            arguments = vec![keys::equality(context, column, arguments.remove(0))?];
        }
    }
    let order = match (function, first) {
        (AggregateFunction::Min | AggregateFunction::Max, Some(column)) => {
            types::order(OutputColumn { collation: call.inputcollid, ..column })?
        }
        _ => TextOrder::Bytes,
    };
    let order_by = match function {
        AggregateFunction::PercentileDisc(_)
        | AggregateFunction::PercentileCont(_)
        | AggregateFunction::Mode => {
            let keys = order_by(context, call, scope)?;
            // The result is one of the keys.
            if keys.iter().any(|key| keys::is_number(&key.expression)) {
                return decline("percentile of a type without an order of its own");
            }
            keys
        }
        _ if in_order => order_by(context, call, scope)?,
        _ => Vec::new(),
    };
    let result = types::logical(call.aggtype);
    let host = host.map(|host| host as Arc<dyn HostAggregate>);
    Ok(Aggregate { function, arguments, distinct, filter: None, order_by, order, result, host })
}

/// Declines an aggregate whose order is left out, where the order asked for could be seen.
fn may_leave_order_out(
    context: &mut Context<'_>,
    call: Typed<'_, pg_sys::Aggref>,
    scope: Scope<'_>,
    (function, argument): (AggregateFunction, Option<OutputColumn>),
) -> Result<(), Reason> {
    // The first of values that are equal and shown differently, or the sum in that order.
    let picks = matches!(function, AggregateFunction::Min | AggregateFunction::Max);
    let adds = argument.is_some_and(|column| adds_floats(function, column));
    if (picks && !call.order().is_empty()) || (adds && has_order(&call)) {
        return decline("an aggregate whose result may depend on the order asked for");
    }
    for key in call.args().iter().filter(|arg| arg.resjunk) {
        // The order cannot be seen, but computing it may fail.
        let key = expressions::expression(context, key.expr(), scope)?;
        if !matches!(key, Expression::Column(..)) {
            return decline("ORDER BY an expression in an aggregate that needs no order");
        }
    }
    Ok(())
}

/// Which aggregate it is; those with direct arguments included.
fn known(
    context: &mut Context<'_>,
    call: Typed<'_, pg_sys::Aggref>,
) -> Result<Option<(AggregateFunction, Option<LogicalType>)>, Reason> {
    let oid = call.aggfnoid.to_u32();
    let fraction = match oid {
        pg_sys::F_PERCENTILE_DISC_FLOAT8_ANYELEMENT => AggregateFunction::PercentileDisc,
        pg_sys::F_PERCENTILE_CONT_FLOAT8_FLOAT8 => AggregateFunction::PercentileCont,
        pg_sys::F_MODE => return Ok(Some((AggregateFunction::Mode, None))),
        pg_sys::F_STRING_AGG_TEXT_TEXT => return Ok(Some((AggregateFunction::StringAgg, None))),
        _ => return Ok(function(oid).or_else(|| regression(oid)).or_else(|| of_uint8(call.aggfnoid))),
    };
    Ok(match percentiles::direct(context, call)? {
        // The direct argument is a float8.
        Some(value) => Some((fraction(percentiles::checked(f64::from_bits(value.value() as u64))?), None)),
        None => Some((fraction(0.5), None)),
    })
}

/// The order an aggregate takes its values in: values that differ are told apart in the order asked for, then
/// in that of what else they have.
fn order_by(
    context: &mut Context<'_>,
    call: Typed<'_, pg_sys::Aggref>,
    scope: Scope<'_>,
) -> Result<Vec<SortKey>, Reason> {
    let distinct = !call.distinct().is_empty();
    let clauses = if distinct { call.distinct() } else { call.order() };
    clauses
        .iter()
        .map(|clause| {
            let node = clause.target(call.args());
            let column = types::column_of(node);
            if distinct && !types::is_default_equality(column, clause.eqop) {
                return decline("DISTINCT by an operator of another class");
            }
            let value = expressions::expression(context, node, scope)?;
            let key = sort::sort_key(context, value, column, clause.sortop, clause.nulls_first)?;
            if distinct && !keys::is_number(&key.expression) {
                types::can_equal(column)?;
            }
            Ok(key)
        })
        .collect()
}
