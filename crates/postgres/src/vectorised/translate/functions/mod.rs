//! Translates the server's functions and operators to those of `query`.
//!
//! Comparison operators are known by their operator family and the types they take. All other functions are
//! known by the fixed OID of their `pg_proc` row. There is one file for numbers, one for dates and one for
//! text. Invariant: a function that is not listed is declined; arguments get casts so that a
//! `query::Function` sees just the types it names.

mod dates;
mod numbers;
mod text;

use std::sync::Arc;

use pgrx::pg_sys::{self, Datum, Oid};
use query::{Expression, Function};
use vector::{CompareOp, LogicalType, Vector};

use super::constants;
use super::expressions::{self, call};
use super::scope::Scope;
use super::{Context, decline, documents, keys, padding, types};
use crate::convert::{ColumnType, ColumnWriter};
use crate::expressions::foreign_order;
use crate::host::catalogs;
use crate::host::own_type;
use crate::host::tree::{List, Node, Typed};
use crate::planner::constant::small_integer;
use crate::planner::operand;
use crate::vectorised::host_function::ServerFunction;
use crate::vectorised::translated::{OutputColumn, Reason};

/// A function of `query` for a function of the server.
struct Known {
    function: Function,
    /// Types that its arguments are cast to; there may be fewer arguments.
    takes: &'static [LogicalType],
    gives: LogicalType,
}

/// A call of a function of the server's with these arguments.
pub fn function(
    context: &mut Context<'_>,
    node: Node<'_>,
    oid: Oid,
    collation: Oid,
    args: List<'_>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let number = oid.to_u32();
    if number == pg_sys::F_NUMERIC_NUMERIC_INT4 {
        return numbers::length(context, args, scope);
    }
    if let Some(to) = numbers::cast(number).or_else(|| cast_of_uint8(oid)) {
        let mut arguments = expressions::all(context, args, scope)?;
        arguments.truncate(1);
        return Ok(call(Function::Cast(to), arguments, to));
    }
    if let Some(found) = dates::with_field(context, number, args, scope)? {
        return Ok(found);
    }
    let known = numbers::known(number).or_else(|| dates::known(number));
    let known = match known {
        Some(known) => Some((known, false)),
        // The server's own function does what is not understood.
        None if number == pg_sys::F_REGEXP_REPLACE_TEXT_TEXT_TEXT && !text::is_known_regexp(args) => None,
        None => text::known(number, collation)?,
    };
    let Some((known, negated)) = known else {
        return match documents::function(context, number, args, scope) {
            Ok(Some(asked)) => Ok(asked),
            _ => host(context, node, oid, collation, args, scope),
        };
    };
    if args.len() > known.takes.len() {
        return decline(format!("function {} of many arguments", name_of(oid)));
    }
    let mut arguments = Vec::new();
    for (node, &takes) in args.iter().zip(known.takes) {
        arguments.push(as_type(context, node, takes, scope)?);
    }
    if !is_computed(&known, &arguments) {
        return host(context, node, oid, collation, args, scope);
    }
    let value = call(known.function, arguments, known.gives);
    Ok(if negated { Expression::Not(Box::new(value)) } else { value })
}

/// What one of our functions casts `engine.uint8` to, where `query` does, too.
fn cast_of_uint8(oid: Oid) -> Option<LogicalType> {
    match own_type::uint8_function(oid)?.as_str() {
        "numeric" => Some(LogicalType::Numeric),
        "float8" => Some(Float64),
        "float4" => Some(Float32),
        _ => None,
    }
}

/// Whether `query` computes a function for these constants among its arguments: a pattern has to be one, and
/// one that it knows.
fn is_computed(known: &Known, arguments: &[Expression]) -> bool {
    let arguments = arguments.iter().enumerate().map(|(at, argument)| match argument {
        Expression::Constant(_) => argument.clone(),
        _ => Expression::Column(at),
    });
    call(known.function, arguments.collect(), known.gives).check(known.takes).is_ok()
}

/// A call of the server's function itself: built in, strict and not volatile.
fn host(
    context: &mut Context<'_>,
    node: Node<'_>,
    oid: Oid,
    collation: Oid,
    args: List<'_>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let name = name_of(oid);
    let built_in = oid.to_u32() < pg_sys::FirstNormalObjectId || own_type::is_own_function(oid);
    // SAFETY: catalog look-ups.
    let may_call = unsafe {
        pg_sys::func_volatile(oid) as u8 != pg_sys::PROVOLATILE_VOLATILE
            && built_in
            && catalogs::may_execute(oid)
    };
    if !may_call {
        return decline(format!("function {name}"));
    }
    let kinds = args.iter().map(Node::type_oid).collect::<Vec<_>>();
    let message = format!("function {name}");
    let result_kind = node.type_oid();
    if kinds.iter().chain([&result_kind]).any(|&kind| foreign_order::is_of(kind)) {
        return decline(format!("function {name} of values that a user's functions compare"));
    }
    // SAFETY: the node calls the function with arguments of these types. It is part of the plan, and lives as
    // long as the translation, as does the current memory.
    let Some(function) = (unsafe { ServerFunction::new(oid, name, collation, node, &kinds) }) else {
        return decline(message);
    };
    let arguments = expressions::all(context, args, scope)?;
    let result = types::logical(result_kind);
    Ok(Expression::Host { function: Arc::new(function), arguments, result })
}

/// For messages.
pub fn name_of(oid: Oid) -> String {
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
fn as_type(
    context: &mut Context<'_>,
    node: Node<'_>,
    wanted: LogicalType,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let found = types::logical(types::base_of(types::column_of(node)).0);
    let value = expressions::expression(context, node, scope)?;
    Ok(match found == wanted {
        true => value,
        false => call(Function::Cast(wanted), vec![value], wanted),
    })
}

use LogicalType::{Date, Float32, Float64, Int16, Int32, Int64, Timestamp};

/// The server's integers, the narrowest first.
const INTEGERS: [Oid; 3] = [pg_sys::INT2OID, pg_sys::INT4OID, pg_sys::INT8OID];

/// The type as which both sides of a comparison are compared.
fn common(left: Oid, right: Oid) -> Option<LogicalType> {
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
    if left == right {
        return Some(types::logical(left));
    }
    // Both are exact numbers.
    (own_type::is_uint8(left) || own_type::is_uint8(right)).then_some(LogicalType::Numeric)
}

/// The constant that a node is, as a value of `engine.uint8`; none if it is none of its values.
fn as_uint8(node: Node<'_>) -> Option<Expression> {
    let value = node.as_a::<pg_sys::Const>().filter(|value| !value.constisnull)?;
    if !INTEGERS.contains(&value.consttype) {
        return None;
    }
    let number = u64::try_from(small_integer(value.constvalue, value.consttype)).ok()?;
    let values = vector::Values::Int64(vec![vector::held(number)]);
    Some(Expression::Constant(Arc::new(Vector::new(LogicalType::UInt64, values))))
}

/// A comparison of `engine.uint8` with a constant of another type, if that is one of its values.
fn with_constant(
    context: &mut Context<'_>,
    (left, right): (Node<'_>, Node<'_>),
    scope: Scope<'_>,
) -> Result<Option<(Expression, Expression)>, Reason> {
    let is_uint8 = |node: Node<'_>| own_type::is_uint8(types::base_of(types::column_of(node)).0);
    let constant_of = |node, other| if is_uint8(other) { as_uint8(node) } else { None };
    if let Some(constant) = constant_of(right, left) {
        return Ok(Some((expressions::expression(context, left, scope)?, constant)));
    }
    match constant_of(left, right) {
        Some(constant) => Ok(Some((constant, expressions::expression(context, right, scope)?))),
        None => Ok(None),
    }
}

/// How an operator compares two types under a collation; None where it is not a comparison, or not one that
/// `query` makes.
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
pub fn comparison(
    context: &mut Context<'_>,
    expr: Typed<'_, pg_sys::OpExpr>,
    scope: Scope<'_>,
) -> Result<Option<Expression>, Reason> {
    let Some((op, common, padded)) = understood(expr.opno, expr.inputcollid)? else { return Ok(None) };
    let Sides { left, right, .. } = Sides::of(expr)?;
    if common == LogicalType::Numeric
        && let Some((left, right)) = with_constant(context, (left, right), scope)?
    {
        return Ok(Some(call(Function::Compare(op), vec![left, right], LogicalType::Bool)));
    }
    let (left, right) = match padded {
        true => {
            (padding::padded(context, left, right, scope)?, padding::padded(context, right, left, scope)?)
        }
        false => (as_type(context, left, common, scope)?, as_type(context, right, common, scope)?),
    };
    Ok(Some(call(Function::Compare(op), vec![left, right], LogicalType::Bool)))
}

/// The types that an operator takes on its two sides.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// The operator.
    pub operator: Oid,
    /// The collation that it goes by.
    pub collation: Oid,
    /// Its left side.
    pub left: Node<'a>,
    /// Its right side.
    pub right: Node<'a>,
}

impl<'a> Sides<'a> {
    fn of(expr: Typed<'a, pg_sys::OpExpr>) -> Result<Self, Reason> {
        match (expr.args().get(0), expr.args().get(1)) {
            (Some(left), Some(right)) => {
                Ok(Self { operator: expr.opno, collation: expr.inputcollid, left, right })
            }
            _ => decline("operator of one argument"),
        }
    }

    /// What both sides are where the operator is the default equality of their one type.
    fn same_type(self) -> Option<OutputColumn> {
        let (left, right) = (types::column_of(self.left), types::column_of(self.right));
        // Of any length: what char(n) is padded to differs.
        let column = OutputColumn { collation: self.collation, typmod: -1, ..left };
        let same = types::base_of(left).0 == types::base_of(right).0;
        (same && types::is_default_equality(column, self.operator)).then_some(column)
    }
}

/// The sides of an equality that a join matches rows by, each over its own scope.
pub fn join_key_of(
    context: &mut Context<'_>,
    expr: Typed<'_, pg_sys::OpExpr>,
    outer: Scope<'_>,
    inner: Scope<'_>,
) -> Result<(Expression, Expression), Reason> {
    join_key(context, Sides::of(expr)?, outer, inner)
}

/// As `join_key_of`, of an operator and its sides.
pub fn join_key(
    context: &mut Context<'_>,
    sides: Sides<'_>,
    outer: Scope<'_>,
    inner: Scope<'_>,
) -> Result<(Expression, Expression), Reason> {
    let Sides { operator, collation, left, right } = sides;
    let common = match understood(operator, collation) {
        Ok(Some((CompareOp::Equal, common, padded))) if !padded || padding::is_same(left, right) => common,
        found => {
            let Some(column) = sides.same_type() else {
                found?;
                return decline("join by an operator that is not an equality");
            };
            let left = expressions::expression(context, left, outer)?;
            let right = expressions::expression(context, right, inner)?;
            return Ok((keys::equality(context, column, left)?, keys::equality(context, column, right)?));
        }
    };
    Ok((as_type(context, left, common, outer)?, as_type(context, right, common, inner)?))
}

/// True for an equality that `query` can join by.
pub fn is_equality(expr: &pg_sys::OpExpr) -> bool {
    matches!(understood(expr.opno, expr.inputcollid), Ok(Some((CompareOp::Equal, ..))))
}

/// `value = ANY (array)` and `value <> ALL (array)` over an array that is known.
pub fn array(
    context: &mut Context<'_>,
    expr: Typed<'_, pg_sys::ScalarArrayOpExpr>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let negated = match (understood(expr.opno, expr.inputcollid)?, expr.useOr) {
        (Some((CompareOp::Equal, ..)), true) => false,
        (Some((CompareOp::NotEqual, ..)), false) => true,
        _ => return decline("operator over an array"),
    };
    let (Some(node), Some(array)) = (expr.args().get(0), expr.args().get(1)) else {
        return decline("operator over an array");
    };
    if !negated && !constants::is_value(array) {
        return documents::member(context, node, array, scope);
    }
    let value = Box::new(expressions::expression(context, node, scope)?);
    let element = types::element_of(array.type_oid());
    let (base, typmod) = types::base_of(types::column_of(node));
    if types::logical(element) != types::logical(base) {
        return decline("array of another type");
    }
    let padding = match base {
        pg_sys::BPCHAROID if typmod > 0 => Some(typmod),
        pg_sys::BPCHAROID => return decline("char(n) of unknown length"),
        _ => None,
    };
    let null = || constants::null(pg_sys::BOOLOID);
    let entries = match constants::value(context, array)? {
        // SAFETY: a value of the array's type.
        Some(array) => unsafe { elements(array, element, padding) },
        None => return Ok(Expression::Coalesce(vec![null(), null()])),
    };
    if entries.is_empty() {
        return Ok(constants::boolean(negated));
    }
    let entries = Arc::new(entries);
    let origin = context.origin(array);
    context.origins.note_value(&entries, origin);
    let found = Expression::In { value, entries };
    Ok(if negated { Expression::Not(Box::new(found)) } else { found })
}

/// The elements of an array as a flat vector.
///
/// # Safety
/// An array of this element type.
pub unsafe fn elements(array: Datum, element: Oid, padding: Option<i32>) -> Vector {
    // SAFETY: the Datum is an array of this element type; the server allocates the two lists, of `count`
    // entries each.
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
