//! Constants, and expressions without columns, which become constants once their value is known.
//!
//! Called by `expressions` and by whoever needs a value of the plan's (limits, offsets, options of
//! functions). Invariant: what may fail is not evaluated where no row asks for it.

use std::sync::Arc;

use pgrx::PgList;
use pgrx::pg_sys::{self, Datum, NodeTag, Oid};
use query::Expression;
use vector::{LogicalType, Vector};

use super::{Context, decline};
use crate::convert::{ColumnType, ColumnWriter};
use crate::host::tree;
use crate::vectorised::translated::Reason;

/// `true` or `false`.
pub fn boolean(value: bool) -> Expression {
    let values = vector::Values::Bool(std::iter::once(value).collect());
    Expression::Constant(Arc::new(Vector::new(LogicalType::Bool, values)))
}

/// An integer.
pub fn integer(value: i32) -> Expression {
    let values = vector::Values::Int32(vec![value]);
    Expression::Constant(Arc::new(Vector::new(LogicalType::Int32, values)))
}

/// A value of the server's.
///
/// # Safety
/// The Datum is one of this type, or NULL.
pub unsafe fn constant(type_oid: Oid, datum: Datum, is_null: bool) -> Expression {
    // SAFETY: the caller's promise.
    unsafe {
        let mut writer = ColumnWriter::new(ColumnType::of_type(type_oid));
        writer.push_value(datum, is_null);
        Expression::Constant(Arc::new(writer.take()))
    }
}

/// The value of an expression without columns; None for NULL, and while it is not known.
///
/// # Safety
/// `node` is a valid expression of a finished plan.
pub unsafe fn value(context: &mut Context<'_>, node: *mut pg_sys::Node) -> Result<Option<Datum>, Reason> {
    // SAFETY: the caller's.
    let value = unsafe { value_or_null(context, node)? };
    Ok(value.and_then(|(datum, is_null)| (!is_null).then_some(datum)))
}

/// As `value`, for those to whom NULL is not the same as a value that is not known yet: the value and whether
/// it is NULL.
///
/// # Safety
/// A valid expression.
pub unsafe fn value_or_null(
    context: &mut Context<'_>,
    node: *mut pg_sys::Node,
) -> Result<Option<(Datum, bool)>, Reason> {
    // SAFETY: the cast follows the tag.
    unsafe {
        if (*node).type_ == NodeTag::T_Const {
            let value = &*node.cast::<pg_sys::Const>();
            return Ok(Some((value.constvalue, value.constisnull)));
        }
        if !is_value(node) {
            return decline("value that depends on the row");
        }
        context.values.value(node)
    }
}

/// True for an expression that has one value for a whole execution of the node.
///
/// # Safety
/// A valid expression.
pub unsafe fn is_value(node: *mut pg_sys::Node) -> bool {
    // SAFETY: a valid expression; a CASE's own value is not one for the whole execution.
    unsafe {
        matches!((*node).type_, NodeTag::T_Const | NodeTag::T_Param)
            || !(pg_sys::contain_var_clause(node)
                || pg_sys::contain_agg_clause(node)
                || pg_sys::contain_window_function(node)
                || pg_sys::contain_subplans(node)
                || contains_case_test(node)
                || pg_sys::contain_volatile_functions(node))
    }
}

/// True for an expression without columns that may be evaluated where no row asks for it, because it does not
/// fail: parameters, the time, and what is usually done with them. Anything else is computed for the rows
/// that reach it.
pub(super) unsafe fn is_certain(node: *mut pg_sys::Node) -> bool {
    use pg_sys as p;
    // SAFETY: casts follow the tags; args are lists of expressions.
    unsafe {
        let known = |function: Oid| {
            matches!(
                function.to_u32(),
                p::F_NOW
                    | p::F_TIMESTAMPTZ_DATE
                    | p::F_TIMESTAMPTZ_TIMESTAMP
                    | p::F_TIMESTAMP_DATE
                    | p::F_TIMESTAMP_TIMESTAMPTZ
                    | p::F_DATE_TIMESTAMP
                    | p::F_DATE_TIMESTAMPTZ
                    | p::F_DATE_PLI
                    | p::F_DATE_MII
                    | p::F_DATE_PL_INTERVAL
                    | p::F_DATE_MI_INTERVAL
                    | p::F_TIMESTAMP_PL_INTERVAL
                    | p::F_TIMESTAMP_MI_INTERVAL
                    | p::F_TIMESTAMPTZ_PL_INTERVAL
                    | p::F_TIMESTAMPTZ_MI_INTERVAL
                    | p::F_INT4_INT2
                    | p::F_INT8_INT2
                    | p::F_INT8_INT4
                    | p::F_NUMERIC_INT2
                    | p::F_NUMERIC_INT4
                    | p::F_NUMERIC_INT8
                    | p::F_FLOAT8_INT4
                    | p::F_FLOAT8_FLOAT4
            )
        };
        let all = |list| PgList::<pg_sys::Node>::from_pg(list).iter_ptr().all(|part| is_certain(part));
        match (*node).type_ {
            NodeTag::T_Const | NodeTag::T_Param | NodeTag::T_SQLValueFunction => true,
            NodeTag::T_RelabelType => is_certain((*node.cast::<pg_sys::RelabelType>()).arg.cast()),
            NodeTag::T_ArrayExpr => all((*node.cast::<pg_sys::ArrayExpr>()).elements),
            NodeTag::T_FuncExpr => {
                let expr = &*node.cast::<pg_sys::FuncExpr>();
                known(expr.funcid) && all(expr.args)
            }
            NodeTag::T_OpExpr => {
                let expr = &*node.cast::<pg_sys::OpExpr>();
                known(pg_sys::get_opcode(expr.opno)) && all(expr.args)
            }
            _ => false,
        }
    }
}

/// A CASE's value appears inside, outside the CASE it belongs to.
unsafe fn contains_case_test(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller passes a valid expression.
    unsafe { tree::contains(node, |tag| tag == NodeTag::T_CaseTestExpr) }
}
