//! Constants, and expressions without columns, which become constants once their value is known.
//!
//! Called by `expressions`, and by files that need a value of the plan (limits, offsets, options of
//! functions). Invariant: an expression that may fail is not evaluated where no row asks for it.

use std::sync::Arc;

use pgrx::pg_sys::{self, Datum, NodeTag, Oid};
use query::Expression;
use vector::{LogicalType, Vector};

use super::{Context, decline};
use crate::convert::{ColumnType, ColumnWriter};
use crate::host::tree::{self, List, Node, Typed};
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
/// The Datum is a valid value of this type, unless it is NULL.
pub unsafe fn constant(type_oid: Oid, datum: Datum, is_null: bool) -> Expression {
    // SAFETY: the caller's value.
    unsafe {
        let mut writer = ColumnWriter::new(ColumnType::of_type(type_oid));
        writer.push_value(datum, is_null);
        Expression::Constant(Arc::new(writer.take()))
    }
}

/// A constant of the server's.
pub fn of_const(value: Typed<'_, pg_sys::Const>) -> Expression {
    // SAFETY: a constant's value is of its type.
    unsafe { constant(value.consttype, value.constvalue, value.constisnull) }
}

/// NULL of this type.
pub fn null(type_oid: Oid) -> Expression {
    // SAFETY: NULL is a value of every type.
    unsafe { constant(type_oid, Datum::null(), true) }
}

/// The value of an expression without columns; None for NULL, and while it is not known. It is a valid value
/// of the expression's type.
pub fn value(context: &mut Context<'_>, node: Node<'_>) -> Result<Option<Datum>, Reason> {
    let value = value_or_null(context, node)?;
    Ok(value.and_then(|(datum, is_null)| (!is_null).then_some(datum)))
}

/// As `value`, for callers that must tell NULL from a value that is not known yet: the value and whether it
/// is NULL.
pub fn value_or_null(context: &mut Context<'_>, node: Node<'_>) -> Result<Option<(Datum, bool)>, Reason> {
    if let tree::Expression::Const(value) = node.expression() {
        return Ok(Some((value.constvalue, value.constisnull)));
    }
    if !is_value(node) {
        return decline("value that depends on the row");
    }
    context.values.value(node)
}

/// True for an expression that has one value for a whole execution of the node. A CASE's own value is not
/// one.
pub fn is_value(node: Node<'_>) -> bool {
    matches!(node.tag(), NodeTag::T_Const | NodeTag::T_Param)
        || !(node.has_columns()
            || node.has_aggregates()
            || node.has_window_functions()
            || node.has_sub_plans()
            || contains_case_test(node)
            || node.is_volatile())
}

/// True for an expression without columns that may be evaluated although no row asks for it, because it does
/// not fail. Such expressions are parameters, the time, and the usual functions of these. Any other
/// expression is computed only for the rows that reach it.
pub(super) fn is_certain(node: Node<'_>) -> bool {
    use tree::Expression as E;
    let all = |list: List<'_>| list.iter().all(is_certain);
    match node.expression() {
        E::Const(_) | E::Param(_) | E::SQLValueFunction(_) => true,
        E::RelabelType(relabel) => is_certain(relabel.arg()),
        E::ArrayExpr(array) => all(array.elements()),
        E::FuncExpr(call) => never_fails(call.funcid) && all(call.args()),
        E::OpExpr(call) => {
            // SAFETY: a catalog look-up.
            let function = unsafe { pg_sys::get_opcode(call.opno) };
            never_fails(function) && all(call.args())
        }
        _ => false,
    }
}

/// Functions that have a result for every value that parameters and the time usually have.
fn never_fails(function: Oid) -> bool {
    use pg_sys as p;
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
}

/// A CASE's value appears inside, outside the CASE it belongs to.
fn contains_case_test(node: Node<'_>) -> bool {
    node.contains(|tag| tag == NodeTag::T_CaseTestExpr)
}
