//! Arithmetic, casts and rounding of numbers.

use pgrx::pg_sys;
use query::{Expression, Function};
use vector::LogicalType::{self, Date, Float32, Float64, Int16, Int32, Int64, Numeric, Timestamp};

use super::super::constants;
use super::super::expressions::{self, call};
use super::super::scope::Scope;
use super::super::{Context, decline};
use super::Known;
use crate::host::tree::List;
use crate::vectorised::translated::Reason;

const INT16: &[LogicalType] = &[Int16, Int16];
const INT32: &[LogicalType] = &[Int32, Int32];
const INT64: &[LogicalType] = &[Int64, Int64];
const FLOAT32: &[LogicalType] = &[Float32, Float32];
const FLOAT64: &[LogicalType] = &[Float64, Float64];
const NUMERIC: &[LogicalType] = &[Numeric, Numeric];

/// The function of `query` for a function of the server over numbers.
pub fn known(oid: u32) -> Option<Known> {
    binary(oid).or_else(|| unary(oid)).or_else(|| round(oid))
}

/// Arithmetic over two arguments of one type: the function's table has one line for each operator and type.
fn binary(oid: u32) -> Option<Known> {
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

/// Rounding.
fn round(oid: u32) -> Option<Known> {
    use Function::{Ceiling, Floor, Round, Truncate};
    use pg_sys as p;
    let (function, takes): (_, &'static [LogicalType]) = match oid {
        p::F_ROUND_NUMERIC => (Round, &[Numeric]),
        p::F_ROUND_NUMERIC_INT4 => (Round, &[Numeric, Int32]),
        p::F_ROUND_FLOAT8 => (Round, &[Float64]),
        p::F_TRUNC_NUMERIC => (Truncate, &[Numeric]),
        p::F_TRUNC_NUMERIC_INT4 => (Truncate, &[Numeric, Int32]),
        p::F_TRUNC_FLOAT8 => (Truncate, &[Float64]),
        p::F_CEIL_NUMERIC | p::F_CEILING_NUMERIC => (Ceiling, &[Numeric]),
        p::F_CEIL_FLOAT8 | p::F_CEILING_FLOAT8 => (Ceiling, &[Float64]),
        p::F_FLOOR_NUMERIC => (Floor, &[Numeric]),
        p::F_FLOOR_FLOAT8 => (Floor, &[Float64]),
        _ => return None,
    };
    Some(Known { function, takes, gives: *takes.first()? })
}

/// Casts between types that `query` casts as the server does.
pub fn cast(oid: u32) -> Option<LogicalType> {
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
        p::F_INT4_BOOL => Int32,
        p::F_TIMESTAMP_DATE => Timestamp,
        p::F_DATE_TIMESTAMP => Date,
        _ => return None,
    })
}

/// The cast of a numeric to a length, whose modifier has to be a constant, by the arguments of the server's
/// `numeric(numeric, int4)`.
pub fn length(context: &mut Context<'_>, args: List<'_>, scope: Scope<'_>) -> Result<Expression, Reason> {
    let (Some(value), Some(modifier)) = (args.get(0), args.get(1)) else {
        return decline("numeric without a length");
    };
    let value = expressions::expression(context, value, scope)?;
    let Some(modifier) = constants::value(context, modifier)? else {
        return decline("length that is not known");
    };
    // The server's encoding: precision in the upper half, eleven bits of scale, all of it above the size of a
    // length word.
    let modifier = modifier.value() as i32 - pg_sys::VARHDRSZ as i32;
    let scale = ((modifier & 0x7FF) ^ 0x400) - 0x400;
    let precision = (modifier >> 16) & 0xFFFF;
    match (u16::try_from(precision), u16::try_from(scale)) {
        (Ok(precision), Ok(scale)) if modifier >= 0 => {
            Ok(call(Function::NumericLength { precision, scale }, vec![value], Numeric))
        }
        _ => decline("numeric of negative scale"),
    }
}
