//! Translates operators over documents and arrays whose right side is known. They become questions that are
//! answered from the server's bytes (`vectorised::documents`).

use pgrx::pg_sys::{self, Oid};
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
use crate::host::tree::{List, Node};
use crate::vectorised::documents::Ask;
use crate::vectorised::translated::Reason;

/// Steps of a path that are taken one by one, each an expression in the next.
const LONGEST: usize = 100;

/// A function of these two arguments, the second of which is known. None where it is no such function.
pub fn function(
    context: &mut Context<'_>,
    oid: u32,
    args: List<'_>,
    scope: Scope<'_>,
) -> Result<Option<Expression>, Reason> {
    let result = match oid {
        pg_sys::F_JSONB_OBJECT_FIELD_TEXT | pg_sys::F_JSONB_EXTRACT_PATH_TEXT => pg_sys::TEXTOID,
        pg_sys::F_JSONB_OBJECT_FIELD | pg_sys::F_JSONB_EXTRACT_PATH => pg_sys::JSONBOID,
        pg_sys::F_JSONB_CONTAINS | pg_sys::F_JSONB_EXISTS => pg_sys::BOOLOID,
        pg_sys::F_ARRAYCONTAINS | pg_sys::F_ARRAYOVERLAP => pg_sys::BOOLOID,
        _ => return Ok(None),
    };
    let (Some(left), Some(right)) = (args.get(0), args.get(1)) else { return Ok(None) };
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
        return Ok(Some(constants::null(result)));
    };
    // SAFETY: what these functions take as their second argument is a text, a document or an array.
    let bytes = unsafe { varlena::bytes_of(other) };
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

/// `#>` and `#>>` of a document and an array of texts: one field after the other, as long as no step may be
/// the number of an element of an array. None where one may.
fn along(
    context: &mut Context<'_>,
    document: Node<'_>,
    path: Node<'_>,
    as_text: bool,
    result: Oid,
    scope: Scope<'_>,
) -> Result<Option<Expression>, Reason> {
    let Some(array) = constants::value(context, path)? else {
        return Ok(Some(constants::null(result)));
    };
    // SAFETY: the function takes an array of texts.
    let steps = unsafe { elements(array, pg_sys::TEXTOID, None) };
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

fn asked(question: Question, value: Expression) -> Expression {
    let function = Ask::new(question);
    let result = function.result();
    Expression::Host {
        function: function as std::sync::Arc<dyn HostFunction>,
        arguments: vec![value],
        result,
    }
}

/// `known = ANY (array)` by the equality of two values of one type, the array being what differs from row to
/// row. None where it is not.
pub fn member(
    context: &mut Context<'_>,
    known: Node<'_>,
    array: Node<'_>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let element = types::element_of(array.type_oid());
    let layout = layout_of(element, array.collation())?;
    if types::base_of(types::column_of(known)).0 != element {
        return decline("array of another type");
    }
    let value = expressions::expression(context, array, scope)?;
    let bytes = constants::value(context, known)?.map(|known| match layout {
        // SAFETY: a value of a type of variable length.
        Layout::Varlena => unsafe { varlena::bytes_of(known) },
        Layout::Fixed(width) => known.value().to_ne_bytes().get(..width).unwrap_or_default().to_vec(),
    });
    Ok(asked(Question::ArrayHas(layout, bytes), value))
}

/// How the elements of two arrays of one type lie.
fn layout(left: Node<'_>, right: Node<'_>) -> Result<Layout, Reason> {
    let element = types::element_of(left.type_oid());
    if element != types::element_of(right.type_oid()) {
        return decline("arrays of two types");
    }
    layout_of(element, left.collation())?;
    layout_of(element, right.collation())
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
