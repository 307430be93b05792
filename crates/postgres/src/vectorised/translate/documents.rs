//! Operators over documents and arrays whose right side is known: questions that are answered from the
//! server's bytes (`vectorised::documents`).

use pgrx::PgList;
use pgrx::pg_sys::{self, Datum, Oid};
use query::{Expression, HostFunction};
use server_bytes::Question;
use server_bytes::array::{Layout, elements_of};
use server_bytes::jsonb::is_deep;
use vector::Values;

use super::constants;
use super::expressions;
use super::functions::elements;
use super::scope::Scope;
use super::{Context, decline, types};
use crate::convert::varlena;
use crate::vectorised::documents::Ask;
use crate::vectorised::translated::Reason;

/// Steps of a path that are taken one by one, each an expression in the next.
const LONGEST: usize = 100;

/// A function of two arguments, the second of which is known. None where it is no such function.
///
/// # Safety
/// `args` is the list of its arguments.
pub unsafe fn function(
    context: &mut Context<'_>,
    oid: u32,
    args: *mut pg_sys::List,
    scope: Scope<'_>,
) -> Result<Option<Expression>, Reason> {
    let result = match oid {
        pg_sys::F_JSONB_OBJECT_FIELD_TEXT | pg_sys::F_JSONB_EXTRACT_PATH_TEXT => pg_sys::TEXTOID,
        pg_sys::F_JSONB_OBJECT_FIELD | pg_sys::F_JSONB_EXTRACT_PATH => pg_sys::JSONBOID,
        pg_sys::F_JSONB_CONTAINS | pg_sys::F_JSONB_EXISTS => pg_sys::BOOLOID,
        pg_sys::F_ARRAYCONTAINS | pg_sys::F_ARRAYOVERLAP => pg_sys::BOOLOID,
        _ => return Ok(None),
    };
    // SAFETY: the caller's promise; a Datum is of its expression's type.
    unsafe {
        let args = PgList::<pg_sys::Node>::from_pg(args);
        let (Some(left), Some(right)) = (args.get_ptr(0), args.get_ptr(1)) else { return Ok(None) };
        if matches!(oid, pg_sys::F_JSONB_EXTRACT_PATH | pg_sys::F_JSONB_EXTRACT_PATH_TEXT) {
            let as_text = oid == pg_sys::F_JSONB_EXTRACT_PATH_TEXT;
            return along(context, left, right, as_text, result, scope);
        }
        let value = expressions::expression(context, left, scope)?;
        let layout = match oid {
            pg_sys::F_ARRAYCONTAINS | pg_sys::F_ARRAYOVERLAP => Some(layout(left, right)?),
            _ => None,
        };
        let Some(other) = constants::value(context, right)? else {
            return Ok(Some(constants::constant(result, Datum::null(), true)));
        };
        let bytes = varlena::bytes_of(other);
        // The server's own function looks how deep it goes.
        if oid == pg_sys::F_JSONB_CONTAINS && is_deep(&bytes).unwrap_or(true) {
            return Ok(None);
        }
        let others = |layout| elements_of(&bytes, layout).or_else(|_| decline("array constant"));
        let question = match (oid, layout) {
            (pg_sys::F_ARRAYCONTAINS, Some(layout)) => Question::ArrayContains(layout, others(layout)?),
            (pg_sys::F_ARRAYOVERLAP, Some(layout)) => Question::ArrayOverlaps(layout, others(layout)?),
            (pg_sys::F_JSONB_OBJECT_FIELD_TEXT, _) => Question::FieldText(bytes),
            (pg_sys::F_JSONB_OBJECT_FIELD, _) => Question::Field(bytes),
            (pg_sys::F_JSONB_CONTAINS, _) => Question::Contains(bytes),
            _ => Question::Exists(bytes),
        };
        Ok(Some(asked(question, value)))
    }
}

/// `#>` and `#>>`: one field after the other, as long as no step may be the number of an element of an array.
/// None where one may.
///
/// # Safety
/// A document and an array of texts.
unsafe fn along(
    context: &mut Context<'_>,
    document: *mut pg_sys::Node,
    path: *mut pg_sys::Node,
    as_text: bool,
    result: Oid,
    scope: Scope<'_>,
) -> Result<Option<Expression>, Reason> {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(array) = constants::value(context, path)? else {
            return Ok(Some(constants::constant(result, Datum::null(), true)));
        };
        let steps = elements(array, pg_sys::TEXTOID, None);
        let Values::Bytes(names) = &steps.values else { return Ok(None) };
        let is_number = |name: &[u8]| {
            let first = name.trim_ascii_start().first();
            first.is_none_or(|&first| first < b' ' || first.is_ascii_digit() || matches!(first, b'+' | b'-'))
        };
        let names: Vec<_> = (0..steps.len()).map(|at| names.get(at)).collect();
        let Some((last, before)) = names.split_last() else { return Ok(None) };
        if steps.null_count() > 0 || names.len() > LONGEST || names.iter().any(|name| is_number(name)) {
            return Ok(None);
        }
        let mut value = expressions::expression(context, document, scope)?;
        for name in before {
            value = asked(Question::Field(name.to_vec()), value);
        }
        let last = last.to_vec();
        Ok(Some(asked(if as_text { Question::FieldText(last) } else { Question::Field(last) }, value)))
    }
}

fn asked(question: Question, value: Expression) -> Expression {
    let function = Ask::new(question);
    let result = function.result();
    Expression::Host {
        function: function as std::sync::Arc<dyn HostFunction>,
        arguments: vec![value],
        result,
    }
}

/// `known = ANY (array)`, the array being what differs from row to row. None where it is not.
///
/// # Safety
/// A valid expression whose operator is the equality of two values of one type.
pub unsafe fn member(
    context: &mut Context<'_>,
    known: *mut pg_sys::Node,
    array: *mut pg_sys::Node,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: the caller's promise; a Datum is of its expression's type.
    unsafe {
        let element = pg_sys::get_element_type(pg_sys::exprType(array));
        let layout = layout_of(element, pg_sys::exprCollation(array))?;
        if types::base_of(types::column_of(known)).0 != element {
            return decline("array of another type");
        }
        let value = expressions::expression(context, array, scope)?;
        let bytes = constants::value(context, known)?.map(|known| match layout {
            Layout::Varlena => varlena::bytes_of(known),
            Layout::Fixed(width) => known.value().to_ne_bytes().get(..width).unwrap_or_default().to_vec(),
        });
        Ok(asked(Question::ArrayHas(layout, bytes), value))
    }
}

/// How the elements of two arrays of one type lie.
unsafe fn layout(left: *mut pg_sys::Node, right: *mut pg_sys::Node) -> Result<Layout, Reason> {
    // SAFETY: valid expressions.
    unsafe {
        let element = pg_sys::get_element_type(pg_sys::exprType(left));
        if element != pg_sys::get_element_type(pg_sys::exprType(right)) {
            return decline("arrays of two types");
        }
        layout_of(element, pg_sys::exprCollation(left))?;
        layout_of(element, pg_sys::exprCollation(right))
    }
}

/// How elements of this type lie, where they are equal exactly when their bytes are.
fn layout_of(element: Oid, collation: Oid) -> Result<Layout, Reason> {
    Ok(match element {
        pg_sys::TEXTOID | pg_sys::VARCHAROID if types::is_deterministic(collation) => Layout::Varlena,
        pg_sys::INT2OID => Layout::Fixed(2),
        pg_sys::INT4OID | pg_sys::DATEOID | pg_sys::OIDOID => Layout::Fixed(4),
        pg_sys::INT8OID | pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => Layout::Fixed(8),
        _ => return decline("array of this type"),
    })
}
