//! Comparisons of char(n), which ignore blanks at the end.
//!
//! Values of a char(n) column are padded to n characters. So values of two columns of one n are equal exactly
//! when their bytes are. A value of no known length is padded to the length of the value that it is compared
//! with. Invariant: both sides come out padded to the same number of characters, or longer and then equal to
//! nothing of that length.

use pgrx::pg_sys::{self, Datum};
use query::Expression;

use super::constants;
use super::expressions;
use super::scope::Scope;
use super::{Context, decline, types};
use crate::convert::varlena;
use crate::host::tree::Node;
use crate::vectorised::translated::Reason;

/// The length of a char(n), in the server's encoding of modifiers; None where it is not known.
fn length(node: Node<'_>) -> Option<i32> {
    let (base, typmod) = types::base_of(types::column_of(node));
    (base == pg_sys::BPCHAROID && typmod > 0).then_some(typmod)
}

/// Two char(n) of one length.
pub fn is_same(left: Node<'_>, right: Node<'_>) -> bool {
    length(left).is_some() && length(left) == length(right)
}

/// A side of a comparison, padded to the length of the other side where it is a value.
pub fn padded(
    context: &mut Context<'_>,
    node: Node<'_>,
    other: Node<'_>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    if is_same(node, other) || (length(node).is_some() && constants::is_value(other)) {
        return expressions::expression(context, node, scope);
    }
    match length(other) {
        Some(typmod) if constants::is_value(node) => Ok(match constants::value(context, node)? {
            // SAFETY: a value of what is compared as a char(n) is one.
            Some(value) => unsafe { constants::constant(pg_sys::BPCHAROID, pad(value, typmod), false) },
            None => constants::null(pg_sys::BPCHAROID),
        }),
        _ => decline("char(n) of different lengths"),
    }
}

/// A char(n) value padded with blanks to the length that a modifier says; a longer one only loses blanks
/// beyond it.
///
/// # Safety
/// The Datum is a char(n).
pub unsafe fn pad(datum: Datum, typmod: i32) -> Datum {
    // SAFETY: the bytes are valid text of the server's encoding, and the copy is a plain varlena.
    unsafe {
        let bytes = varlena::bytes_of(datum);
        let end = bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
        let text = bytes.get(..end).unwrap_or(&bytes);
        let characters = pg_sys::pg_mbstrlen_with_len(text.as_ptr().cast(), i32::try_from(end).unwrap_or(0));
        let missing = usize::try_from(typmod - pg_sys::VARHDRSZ as i32 - characters).unwrap_or(0);
        let mut whole = text.to_vec();
        whole.resize(end + missing, b' ');
        Datum::from(pg_sys::cstring_to_text_with_len(
            whole.as_ptr().cast(),
            i32::try_from(whole.len()).unwrap_or(0),
        ))
    }
}
