//! Templates with their constants filled in: `vector::Predicate`s.
//!
//! Called by the planner, with the constants known then, to estimate what is pruned. Called by the executor
//! at each start and rescan, with all values. The caller says how an expression gets its value. A leaf whose
//! expression has no value says nothing.
//!
//! Invariants: that of `constant`, for whole trees. A comparison with a NULL constant is never TRUE.

use pgrx::pg_sys::{self, Datum, Oid};
use vector::{CompareOp, Predicate, Resolved};

use super::constant;
use super::operand::Column;
use super::template::Template;
use crate::convert::varlena;

/// The value of an expression.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// The value is not known now.
    Unknown,
    /// SQL NULL.
    Null,
    /// A value.
    Datum(Datum),
}

impl Value {
    /// The value of a constant.
    pub fn of_const(constant: &pg_sys::Const) -> Self {
        if constant.constisnull { Self::Null } else { Self::Datum(constant.constvalue) }
    }
}

/// What gives an expression its value.
type Evaluate<'a> = &'a mut dyn FnMut(*mut pg_sys::Node) -> Value;

/// Fills in a template.
///
/// # Safety
/// `evaluate` returns values of the types the expressions have.
pub unsafe fn resolve(template: &Template, evaluate: Evaluate<'_>) -> Resolved {
    match template {
        Template::Unknown => unknown(),
        Template::Known(known) => Resolved::exact(Predicate::Always(*known)),
        // SAFETY: as this was called.
        Template::And(parts) => Resolved::all_of(unsafe { resolve_all(parts, evaluate) }),
        // SAFETY: as this was called.
        Template::Or(parts) => Resolved::any_of(unsafe { resolve_all(parts, evaluate) }),
        Template::Null { column, is_null } => {
            let column = constant::position(*column);
            Resolved::exact(match is_null {
                true => Predicate::IsNull { column },
                false => Predicate::IsNotNull { column },
            })
        }
        Template::Truth { column, value } => {
            let value = Datum::from(*value);
            // SAFETY: a truth value is a value of type boolean.
            unsafe { constant::compare(*column, CompareOp::Equal, value, pg_sys::BOOLOID) }
        }
        Template::Compare { column, op, value, value_type } => known(evaluate(*value), |datum| {
            // SAFETY: the operator takes the expression's value as this type.
            unsafe { constant::compare(*column, *op, datum, *value_type) }
        }),
        Template::Elements { column, op, any, array, element_type } => known(evaluate(*array), |datum| {
            // SAFETY: the operator takes an array of this type.
            unsafe { elements(*column, *op, *any, datum, *element_type) }
        }),
        Template::Like { column, pattern } => known(evaluate(*pattern), |datum| {
            // SAFETY: a pattern is a text.
            constant::like(*column, &unsafe { varlena::bytes_of(datum) })
        }),
        Template::StartsWith { column, prefix } => known(evaluate(*prefix), |datum| {
            // SAFETY: a prefix is a text.
            constant::starts_with(*column, unsafe { varlena::bytes_of(datum) })
        }),
    }
}

/// Fills in several.
///
/// # Safety
/// As `resolve`.
unsafe fn resolve_all(parts: &[Template], evaluate: Evaluate<'_>) -> Vec<Resolved> {
    // SAFETY: as this was called.
    parts.iter().map(|part| unsafe { resolve(part, evaluate) }).collect()
}

/// What says nothing.
const fn unknown() -> Resolved {
    Resolved::weaker(Predicate::Always(true))
}

/// What a comparison says, given what there is to know of its value.
fn known(value: Value, compare: impl FnOnce(Datum) -> Resolved) -> Resolved {
    match value {
        Value::Unknown => unknown(),
        Value::Null => Resolved::exact(Predicate::Always(false)),
        Value::Datum(datum) => compare(datum),
    }
}

/// `column op ANY (array)` or `ALL`. An empty array decides without a look at the column. With a NULL element
/// ALL is never TRUE, and ANY is as without it.
///
/// # Safety
/// The datum is an array whose elements are stored as those of this type are.
unsafe fn elements(column: Column, op: CompareOp, any: bool, array: Datum, element_type: Oid) -> Resolved {
    let (mut width, mut by_value, mut align) = (0i16, false, 0 as std::ffi::c_char);
    let (mut values, mut nulls, mut count) =
        (std::ptr::null_mut::<Datum>(), std::ptr::null_mut::<bool>(), 0i32);
    // SAFETY: the caller's array; its own header names the element type, which is equal to the operator's or
    // binary compatible. The server allocates the two lists, of `count` entries each.
    let (values, nulls) = unsafe {
        let array = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        let stored_type = (*array).elemtype;
        pg_sys::get_typlenbyvalalign(stored_type, &raw mut width, &raw mut by_value, &raw mut align);
        pg_sys::deconstruct_array(
            array,
            stored_type,
            i32::from(width),
            by_value,
            align,
            &raw mut values,
            &raw mut nulls,
            &raw mut count,
        );
        let count = usize::try_from(count).unwrap_or(0);
        match count {
            // The lists may be null.
            0 => (&[][..], &[][..]),
            _ => (std::slice::from_raw_parts(values, count), std::slice::from_raw_parts(nulls, count)),
        }
    };
    if values.is_empty() {
        return Resolved::exact(Predicate::Always(!any));
    }
    let mut parts = Vec::with_capacity(values.len());
    for (&value, &is_null) in values.iter().zip(nulls) {
        if is_null {
            if !any {
                return Resolved::exact(Predicate::Always(false));
            }
            continue;
        }
        // SAFETY: an element of the array.
        parts.push(unsafe { constant::compare(column, op, value, element_type) });
    }
    if any { Resolved::any_of(parts) } else { Resolved::all_of(parts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn null(column: usize) -> Predicate {
        Predicate::IsNull { column }
    }

    #[test]
    fn a_part_that_says_nothing_weakens_and_but_swallows_or() {
        let unknown = || Resolved::weaker(Predicate::Always(true));
        assert_eq!(Resolved::all_of(vec![unknown(), Resolved::exact(null(1))]), Resolved::weaker(null(1)));
        assert_eq!(
            Resolved::any_of(vec![unknown(), Resolved::exact(null(1))]),
            Resolved::weaker(Predicate::Always(true))
        );
    }

    #[test]
    fn never_true_ends_and_and_vanishes_from_or() {
        let never = || Resolved::exact(Predicate::Always(false));
        assert_eq!(Resolved::all_of(vec![Resolved::weaker(null(0)), never()]), never());
        assert_eq!(Resolved::any_of(vec![never(), Resolved::exact(null(2))]), Resolved::exact(null(2)));
        assert_eq!(Resolved::any_of(vec![never(), never()]), never());
        assert!(!Resolved::any_of(vec![Resolved::weaker(null(0)), Resolved::exact(null(2))]).exact);
    }
}
