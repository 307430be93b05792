//! The fractions of percentiles: one, or an array of them.
//!
//! Several fractions of the same values are several aggregates, which share their state, and an array of
//! their results. Called by `aggregate`.

use pgrx::pg_sys::{self, Datum, NodeTag};
use query::{Aggregate, AggregateFunction, Expression};
use vector::Values;

use super::{Context, aggregate, constants, decline, functions, kept, types};
use crate::host::tree::{Node, Typed};
use crate::vectorised::server_expression::ServerExpression;
use crate::vectorised::translated::Reason;

/// The value of the direct argument; None while it is not known.
pub fn direct(context: &mut Context<'_>, call: Typed<'_, pg_sys::Aggref>) -> Result<Option<Datum>, Reason> {
    let Some(node) = call.direct_args().get(0) else { return decline("percentile without a fraction") };
    match constants::value_or_null(context, node)? {
        Some((_, true)) => decline("percentile without a fraction"),
        Some((value, false)) => Ok(Some(value)),
        // Not known yet.
        None => Ok(None),
    }
}

/// A fraction that the server takes.
pub fn checked(fraction: f64) -> Result<f64, Reason> {
    match (0.0..=1.0).contains(&fraction) {
        true => Ok(fraction),
        false => decline("percentile outside 0 to 1"),
    }
}

/// Percentiles of these columns at an array of fractions: the array of the results of aggregates that come
/// from column `next` on, and these. None for any other aggregate.
pub fn several(
    context: &mut Context<'_>,
    call: Typed<'_, pg_sys::Aggref>,
    columns: &[Expression],
    next: usize,
) -> Result<Option<(Expression, Vec<Aggregate>)>, Reason> {
    let function = match call.aggfnoid.to_u32() {
        pg_sys::F_PERCENTILE_DISC__FLOAT8_ANYELEMENT => AggregateFunction::PercentileDisc,
        pg_sys::F_PERCENTILE_CONT__FLOAT8_FLOAT8 => AggregateFunction::PercentileCont,
        _ => return Ok(None),
    };
    let fractions = match direct(context, call)? {
        // SAFETY: the direct argument of these two is an array of float8.
        Some(array) => unsafe { fractions(array)? },
        None => vec![0.5],
    };
    let element = types::element_of(call.aggtype);
    let result = types::logical(element);
    let mut parts = Vec::new();
    for fraction in fractions {
        let one = aggregate::computed(context, call, columns, (function(checked(fraction)?), None, None))?;
        parts.push(Aggregate { result, ..one });
    }
    let places: Vec<_> = (next..next + parts.len()).map(Expression::Column).collect();
    // SAFETY: `kept` calls this in a memory that lives as long as what it keeps.
    let make = || unsafe { array_of(&call, element, places.len()) };
    let Some(list) = kept(context, call.node(), make) else {
        return decline("array of percentiles");
    };
    let Some(first) = places.first().cloned() else { return decline("percentiles at no fraction") };
    let bytes = types::logical(call.aggtype);
    // Without a row there is no array either.
    let nothing = constants::null(call.aggtype);
    let list = Expression::Host { function: list, arguments: places, result: bytes };
    let branches = vec![(Expression::IsNull(Box::new(first)), nothing)];
    Ok(Some((Expression::Case { branches, otherwise: Some(Box::new(list)), result: bytes }, parts)))
}

/// The elements of an array of one dimension, counted from 1, without NULLs.
///
/// # Safety
/// An array of float8.
unsafe fn fractions(array: Datum) -> Result<Vec<f64>, Reason> {
    // SAFETY: the caller's array; the numbers of its dimensions and their first indexes come after its
    // header.
    unsafe {
        let plain = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        let bounds = plain.add(1).cast::<i32>();
        if (*plain).ndim != 1 || *bounds.add(1) != 1 {
            return decline("percentiles at an array of another shape");
        }
        let elements = functions::elements(array, pg_sys::FLOAT8OID, None);
        match (elements.null_count(), elements.values) {
            (0, Values::Float64(fractions)) => Ok(fractions),
            _ => decline("percentile at NULL"),
        }
    }
}

/// `ARRAY[...]` of so many values.
///
/// # Safety
/// The current memory outlives the result.
unsafe fn array_of(
    call: &pg_sys::Aggref,
    element: pg_sys::Oid,
    count: usize,
) -> Option<std::sync::Arc<ServerExpression>> {
    // SAFETY: a zeroed node is what the server's own start as; all of it is in the current memory.
    unsafe {
        let array = pg_sys::palloc0(size_of::<pg_sys::ArrayExpr>()).cast::<pg_sys::ArrayExpr>();
        (*array).xpr.type_ = NodeTag::T_ArrayExpr;
        (*array).array_typeid = call.aggtype;
        (*array).array_collid = call.aggcollid;
        (*array).element_typeid = element;
        (*array).location = -1;
        let place = |at: usize| {
            let number = i16::try_from(at + 1).unwrap_or(i16::MAX);
            pg_sys::makeVar(pg_sys::INDEX_VAR, number, element, -1, call.aggcollid, 0).cast::<pg_sys::Node>()
        };
        let parts: Vec<_> = (0..count).map(place).collect();
        for &part in &parts {
            (*array).elements = pg_sys::lappend((*array).elements, part.cast());
        }
        let parts: Vec<_> = parts.into_iter().filter_map(|part| Node::new(part)).collect();
        Node::new(array.cast()).map(|array| ServerExpression::new(array, &parts))
    }
}
