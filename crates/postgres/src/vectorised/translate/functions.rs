//! What the server's functions and operators are in `query`.
//!
//! Comparison operators are known by their operator family and the types they take; everything else by the fixed OID of its `pg_proc` row. Invariant: a
//! function that is not listed is declined; arguments get casts so that a `query::Function` sees just the types it names.

use std::sync::Arc;

use pgrx::PgList;
use pgrx::pg_sys::{self, Datum, Oid};
use query::{Expression, Function};
use vector::{CompareOp, LogicalType, Vector};

use super::expressions::{self, Scope, call};
use super::{Context, decline, padding, types};
use crate::convert::{ColumnType, ColumnWriter};
use crate::planner::operand;
use crate::vectorised::translated::{OutputColumn, Reason};

/// A function of `query` for a function of the server.
struct Known {
    function: Function,
    /// Types that its arguments are cast to.
    takes: &'static [LogicalType],
    gives: LogicalType,
}

use LogicalType::{Date, Float32, Float64, Int16, Int32, Int64, Numeric, Timestamp};

const INT16: &[LogicalType] = &[Int16, Int16];
const INT32: &[LogicalType] = &[Int32, Int32];
const INT64: &[LogicalType] = &[Int64, Int64];
const FLOAT32: &[LogicalType] = &[Float32, Float32];
const FLOAT64: &[LogicalType] = &[Float64, Float64];
const NUMERIC: &[LogicalType] = &[Numeric, Numeric];

/// Arithmetic over two arguments of one type: the function's table has one line for each operator and type.
fn arithmetic(oid: u32) -> Option<Known> {
    use Function::{Add, Divide, Modulo, Multiply, Subtract};
    use pg_sys as p;
    let (function, takes) = match oid {
        p::F_INT2PL => (Add, INT16),
        p::F_INT4PL | p::F_INT24PL | p::F_INT42PL => (Add, INT32),
        p::F_INT8PL | p::F_INT28PL | p::F_INT82PL | p::F_INT48PL | p::F_INT84PL => (Add, INT64),
        p::F_FLOAT4PL => (Add, FLOAT32),
        p::F_FLOAT8PL | p::F_FLOAT48PL | p::F_FLOAT84PL => (Add, FLOAT64),
        p::F_NUMERIC_ADD => (Add, NUMERIC),
        p::F_INT2MI => (Subtract, INT16),
        p::F_INT4MI | p::F_INT24MI | p::F_INT42MI => (Subtract, INT32),
        p::F_INT8MI | p::F_INT28MI | p::F_INT82MI | p::F_INT48MI | p::F_INT84MI => (Subtract, INT64),
        p::F_FLOAT4MI => (Subtract, FLOAT32),
        p::F_FLOAT8MI | p::F_FLOAT48MI | p::F_FLOAT84MI => (Subtract, FLOAT64),
        p::F_NUMERIC_SUB => (Subtract, NUMERIC),
        p::F_INT2MUL => (Multiply, INT16),
        p::F_INT4MUL | p::F_INT24MUL | p::F_INT42MUL => (Multiply, INT32),
        p::F_INT8MUL | p::F_INT28MUL | p::F_INT82MUL | p::F_INT48MUL | p::F_INT84MUL => (Multiply, INT64),
        p::F_FLOAT4MUL => (Multiply, FLOAT32),
        p::F_FLOAT8MUL | p::F_FLOAT48MUL | p::F_FLOAT84MUL => (Multiply, FLOAT64),
        p::F_NUMERIC_MUL => (Multiply, NUMERIC),
        p::F_INT2DIV => (Divide, INT16),
        p::F_INT4DIV | p::F_INT24DIV | p::F_INT42DIV => (Divide, INT32),
        p::F_INT8DIV | p::F_INT28DIV | p::F_INT82DIV | p::F_INT48DIV | p::F_INT84DIV => (Divide, INT64),
        p::F_FLOAT4DIV => (Divide, FLOAT32),
        p::F_FLOAT8DIV | p::F_FLOAT48DIV | p::F_FLOAT84DIV => (Divide, FLOAT64),
        p::F_NUMERIC_DIV => (Divide, NUMERIC),
        p::F_INT2MOD | p::F_MOD_INT2_INT2 => (Modulo, INT16),
        p::F_INT4MOD | p::F_MOD_INT4_INT4 => (Modulo, INT32),
        p::F_INT8MOD | p::F_MOD_INT8_INT8 => (Modulo, INT64),
        p::F_NUMERIC_MOD | p::F_MOD_NUMERIC_NUMERIC => (Modulo, NUMERIC),
        _ => return None,
    };
    Some(Known { function, takes, gives: *takes.first()? })
}

/// Functions of one argument that keep its type.
fn unary(oid: u32) -> Option<Known> {
    use Function::{Absolute, Negate};
    use pg_sys as p;
    let (function, takes) = match oid {
        p::F_INT2UM => (Negate, INT16),
        p::F_INT4UM => (Negate, INT32),
        p::F_INT8UM => (Negate, INT64),
        p::F_FLOAT4UM => (Negate, FLOAT32),
        p::F_FLOAT8UM => (Negate, FLOAT64),
        p::F_NUMERIC_UMINUS => (Negate, NUMERIC),
        p::F_INT2ABS | p::F_ABS_INT2 => (Absolute, INT16),
        p::F_INT4ABS | p::F_ABS_INT4 => (Absolute, INT32),
        p::F_INT8ABS | p::F_ABS_INT8 => (Absolute, INT64),
        p::F_FLOAT4ABS | p::F_ABS_FLOAT4 => (Absolute, FLOAT32),
        p::F_FLOAT8ABS | p::F_ABS_FLOAT8 => (Absolute, FLOAT64),
        p::F_NUMERIC_ABS | p::F_ABS_NUMERIC => (Absolute, NUMERIC),
        _ => return None,
    };
    let (one, _) = takes.split_at_checked(1)?;
    Some(Known { function, takes: one, gives: *one.first()? })
}

/// Arithmetic of dates.
fn dates(oid: u32) -> Option<Known> {
    use Function::{Add, Subtract};
    use pg_sys as p;
    let (function, takes, gives): (_, &'static [LogicalType], _) = match oid {
        p::F_DATE_PLI => (Add, &[Date, Int32], Date),
        p::F_DATE_MII => (Subtract, &[Date, Int32], Date),
        p::F_DATE_MI => (Subtract, &[Date, Date], Int32),
        _ => return None,
    };
    Some(Known { function, takes, gives })
}

/// Casts between types that `query` casts as the server does.
fn cast(oid: u32) -> Option<LogicalType> {
    use pg_sys as p;
    Some(match oid {
        p::F_INT2_INT4 | p::F_INT2_INT8 | p::F_INT2_FLOAT4 | p::F_INT2_FLOAT8 | p::F_INT2_NUMERIC => Int16,
        p::F_INT4_INT2 | p::F_INT4_INT8 | p::F_INT4_FLOAT4 | p::F_INT4_FLOAT8 | p::F_INT4_NUMERIC => Int32,
        p::F_INT8_INT2 | p::F_INT8_INT4 | p::F_INT8_FLOAT4 | p::F_INT8_FLOAT8 | p::F_INT8_NUMERIC => Int64,
        p::F_FLOAT4_INT2 | p::F_FLOAT4_INT4 | p::F_FLOAT4_INT8 | p::F_FLOAT4_FLOAT8 | p::F_FLOAT4_NUMERIC => {
            Float32
        }
        p::F_FLOAT8_INT2 | p::F_FLOAT8_INT4 | p::F_FLOAT8_INT8 | p::F_FLOAT8_FLOAT4 | p::F_FLOAT8_NUMERIC => {
            Float64
        }
        p::F_NUMERIC_INT2
        | p::F_NUMERIC_INT4
        | p::F_NUMERIC_INT8
        | p::F_NUMERIC_FLOAT4
        | p::F_NUMERIC_FLOAT8 => Numeric,
        p::F_TIMESTAMP_DATE => Timestamp,
        _ => return None,
    })
}

/// A call of a function of the server's.
///
/// # Safety
/// `args` is the list of its arguments.
pub unsafe fn function(
    context: &mut Context<'_>,
    oid: Oid,
    args: *mut pg_sys::List,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let number = oid.to_u32();
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(to) = cast(number) {
            let mut arguments = expressions::all(context, args, scope)?;
            arguments.truncate(1);
            return Ok(call(Function::Cast(to), arguments, to));
        }
        if let Some(known) = arithmetic(number).or_else(|| unary(number)).or_else(|| dates(number)) {
            let nodes = PgList::<pg_sys::Node>::from_pg(args);
            let mut arguments = Vec::new();
            for (node, &takes) in nodes.iter_ptr().zip(known.takes) {
                arguments.push(as_type(context, node, takes, scope)?);
            }
            return Ok(call(known.function, arguments, known.gives));
        }
        decline(format!("function {}", name_of(oid)))
    }
}

/// For messages.
pub unsafe fn name_of(oid: Oid) -> String {
    // SAFETY: gives null or a string of its own.
    unsafe {
        let name = pg_sys::get_func_name(oid);
        match name.is_null() {
            true => oid.to_u32().to_string(),
            false => std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned(),
        }
    }
}

/// An expression, cast where it is of another type of number.
unsafe fn as_type(
    context: &mut Context<'_>,
    node: *mut pg_sys::Node,
    wanted: LogicalType,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: the caller's expression.
    unsafe {
        let found = types::logical(types::base_of(types::column_of(node)).0);
        let value = expressions::expression(context, node, scope)?;
        Ok(match found == wanted {
            true => value,
            false => call(Function::Cast(wanted), vec![value], wanted),
        })
    }
}

/// What both sides of a comparison are compared as.
fn common(left: Oid, right: Oid) -> Option<LogicalType> {
    const INTEGERS: [Oid; 3] = [pg_sys::INT2OID, pg_sys::INT4OID, pg_sys::INT8OID];
    let width = |oid| INTEGERS.iter().position(|&integer| integer == oid);
    if let (Some(left), Some(right)) = (width(left), width(right)) {
        return [Int16, Int32, Int64].get(left.max(right)).copied();
    }
    let float = |oid| matches!(oid, pg_sys::FLOAT4OID | pg_sys::FLOAT8OID);
    if float(left) && float(right) {
        return Some(if left == right && left == pg_sys::FLOAT4OID { Float32 } else { Float64 });
    }
    let plain = |oid| matches!(oid, pg_sys::DATEOID | pg_sys::TIMESTAMPOID);
    if plain(left) && plain(right) {
        return Some(if left == right && left == pg_sys::DATEOID { Date } else { Timestamp });
    }
    (left == right).then(|| types::logical(left))
}

/// How an operator compares two types under a collation; None where it is not a comparison, or not one that `query` makes.
fn understood(opno: Oid, collation: Oid) -> Result<Option<(CompareOp, LogicalType, bool)>, Reason> {
    let Some((family, op)) = operand::comparison(opno) else { return Ok(None) };
    let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: the operator exists, it is part of a plan.
    unsafe { pg_sys::op_input_types(opno, &raw mut left, &raw mut right) };
    let Some(common) = common(left, right) else { return decline("comparison of two types") };
    let equality = matches!(op, CompareOp::Equal | CompareOp::NotEqual);
    let column = OutputColumn { type_oid: left, typmod: -1, collation };
    let pattern = family == pg_sys::TEXT_PATTERN_BTREE_FAM_OID.to_u32();
    match left {
        pg_sys::BPCHAROID if equality && types::is_deterministic(collation) => {
            return Ok(Some((op, common, true)));
        }
        pg_sys::BPCHAROID => return decline("order of char(n)"),
        _ if pattern => {}
        _ if equality => types::can_equal(column)?,
        _ if matches!(types::order(column)?, query::TextOrder::Bytes) => {}
        _ => return decline("comparison by a collation"),
    }
    Ok(Some((op, common, false)))
}

/// A comparison of two values; None where the operator is none.
///
/// # Safety
/// A valid expression.
pub unsafe fn comparison(
    context: &mut Context<'_>,
    expr: &pg_sys::OpExpr,
    scope: Scope<'_>,
) -> Result<Option<Expression>, Reason> {
    let Some((op, common, padded)) = understood(expr.opno, expr.inputcollid)? else { return Ok(None) };
    // SAFETY: args is a list of two expressions.
    unsafe {
        let (left, right) = sides(expr)?;
        let (left, right) = match padded {
            true => {
                (padding::padded(context, left, right, scope)?, padding::padded(context, right, left, scope)?)
            }
            false => (as_type(context, left, common, scope)?, as_type(context, right, common, scope)?),
        };
        Ok(Some(call(Function::Compare(op), vec![left, right], LogicalType::Bool)))
    }
}

/// The sides of an equality that a join matches rows by, each over its own scope.
///
/// # Safety
/// A valid expression.
pub unsafe fn join_key(
    context: &mut Context<'_>,
    expr: &pg_sys::OpExpr,
    outer: Scope<'_>,
    inner: Scope<'_>,
) -> Result<(Expression, Expression), Reason> {
    let Some((CompareOp::Equal, common, padded)) = understood(expr.opno, expr.inputcollid)? else {
        return decline("join by an operator that is not an equality");
    };
    // SAFETY: args is a list of two expressions.
    unsafe {
        let (left, right) = sides(expr)?;
        if padded && !padding::is_same(left, right) {
            return decline("join of char(n) of different lengths");
        }
        Ok((as_type(context, left, common, outer)?, as_type(context, right, common, inner)?))
    }
}

/// True for an equality that `query` can join by.
pub fn is_equality(expr: &pg_sys::OpExpr) -> bool {
    matches!(understood(expr.opno, expr.inputcollid), Ok(Some((CompareOp::Equal, ..))))
}

unsafe fn sides(expr: &pg_sys::OpExpr) -> Result<(*mut pg_sys::Node, *mut pg_sys::Node), Reason> {
    // SAFETY: args is a list of expressions.
    let args = unsafe { PgList::<pg_sys::Node>::from_pg(expr.args) };
    match (args.get_ptr(0), args.get_ptr(1)) {
        (Some(left), Some(right)) => Ok((left, right)),
        _ => decline("operator of one argument"),
    }
}

/// `value = ANY (array)` and `value <> ALL (array)` over an array that is known.
///
/// # Safety
/// A valid expression.
pub unsafe fn array(
    context: &mut Context<'_>,
    expr: &pg_sys::ScalarArrayOpExpr,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let negated = match (understood(expr.opno, expr.inputcollid)?, expr.useOr) {
        (Some((CompareOp::Equal, ..)), true) => false,
        (Some((CompareOp::NotEqual, ..)), false) => true,
        _ => return decline("operator over an array"),
    };
    // SAFETY: args is a list of a value and an array.
    unsafe {
        let args = PgList::<pg_sys::Node>::from_pg(expr.args);
        let (Some(node), Some(array)) = (args.get_ptr(0), args.get_ptr(1)) else {
            return decline("operator over an array");
        };
        let value = Box::new(expressions::expression(context, node, scope)?);
        let element = pg_sys::get_element_type(pg_sys::exprType(array));
        let column = types::column_of(node);
        let (base, typmod) = types::base_of(column);
        if types::logical(element) != types::logical(base) {
            return decline("array of another type");
        }
        let padding = match base {
            pg_sys::BPCHAROID if typmod > 0 => Some(typmod),
            pg_sys::BPCHAROID => return decline("char(n) of unknown length"),
            _ => None,
        };
        let null = || expressions::constant(pg_sys::BOOLOID, Datum::null(), true);
        let entries = match expressions::value(context, array)? {
            Some(array) => elements(array, element, padding),
            None => return Ok(Expression::Coalesce(vec![null(), null()])),
        };
        if entries.is_empty() {
            return Ok(expressions::boolean(negated));
        }
        let found = Expression::In { value, entries: Arc::new(entries) };
        Ok(if negated { Expression::Not(Box::new(found)) } else { found })
    }
}

/// The elements of an array as a flat vector.
unsafe fn elements(array: Datum, element: Oid, padding: Option<i32>) -> Vector {
    // SAFETY: the Datum is an array of this element type; the server allocates the two lists, of `count` entries each.
    unsafe {
        let (mut length, mut by_value, mut alignment) = (0, false, 0);
        pg_sys::get_typlenbyvalalign(element, &raw mut length, &raw mut by_value, &raw mut alignment);
        let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        pg_sys::deconstruct_array(
            pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast(),
            element,
            i32::from(length),
            by_value,
            alignment,
            &raw mut values,
            &raw mut nulls,
            &raw mut count,
        );
        let mut writer = ColumnWriter::new(ColumnType::of_type(element));
        for at in 0..usize::try_from(count).unwrap_or(0) {
            let (datum, is_null) = (*values.add(at), *nulls.add(at));
            match padding {
                Some(typmod) if !is_null => writer.push_value(padding::pad(datum, typmod), false),
                _ => writer.push_value(datum, is_null),
            }
        }
        writer.take()
    }
}
