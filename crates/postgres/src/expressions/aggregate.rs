//! What the catalog says about an aggregate, and the expressions from which its functions are called.
//!
//! Called by `vectorised::server_aggregate`. A polymorphic function asks its expression for the types of its
//! arguments.

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, Datum, Node, Oid};

use crate::convert::varlena;
use crate::host::catalogs::aggregate_column as column;

mod c {
    use pgrx::pg_sys::{Datum, Expr, Oid};
    unsafe extern "C-unwind" {
        pub fn datumCopy(value: Datum, by_value: bool, length: i32) -> Datum;
        pub fn build_aggregate_transfn_expr(
            arguments: *mut Oid,
            count: i32,
            direct: i32,
            variadic: bool,
            state: Oid,
            collation: Oid,
            step: Oid,
            inverse: Oid,
            step_expression: *mut *mut Expr,
            inverse_expression: *mut *mut Expr,
        );
        pub fn build_aggregate_finalfn_expr(
            arguments: *mut Oid,
            count: i32,
            state: Oid,
            result: Oid,
            collation: Oid,
            last: Oid,
            expression: *mut *mut Expr,
        );
    }
}

/// The functions of an aggregate.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Takes a row: the transition function.
    pub step: Oid,
    /// Makes the result: the final function, if there is one.
    pub last: Oid,
    /// The final function gets the state and NULLs of the arguments' types.
    pub last_extra: bool,
    /// The state before the first row, as text.
    initial: Option<Vec<u8>>,
}

/// The definition of an aggregate. None if it does not exist.
///
/// # Safety
/// Inside a transaction.
pub unsafe fn definition(aggregate: Oid) -> Option<Definition> {
    // SAFETY: catalog look-ups; attributes are of the types that the catalog gives them.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::AGGFNOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, aggregate.into());
        if tuple.is_null() {
            return None;
        }
        let mut is_null = false;
        let mut attribute = |number| pg_sys::SysCacheGetAttr(cache, tuple, number, &raw mut is_null);
        let step = Oid::from(attribute(column::STEP).value() as u32);
        let last = Oid::from(attribute(column::LAST).value() as u32);
        let last_extra = attribute(column::LAST_EXTRA).value() as u8 != 0;
        let initial = attribute(column::INITIAL);
        let initial = (!is_null).then(|| varlena::bytes_of(initial));
        pg_sys::ReleaseSysCache(tuple);
        Some(Definition { step, last, last_extra, initial })
    }
}

impl Definition {
    /// The state before the first row, of this type, in the current memory.
    ///
    /// # Safety
    /// The type is that of the aggregate's state.
    pub unsafe fn initial(&self, state: Oid) -> (Datum, bool) {
        let Some(text) = self.initial.clone() else { return (Datum::null(), true) };
        let Ok(text) = std::ffi::CString::new(text) else { return (Datum::null(), true) };
        // SAFETY: the catalog's text is one that the type's input function takes.
        unsafe {
            let (mut input, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
            pg_sys::getTypeInputInfo(state, &raw mut input, &raw mut parameter);
            (pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), parameter, -1), false)
        }
    }
}

/// The expressions from which the step and the last function are called.
///
/// # Safety
/// The node calls this aggregate with arguments of these types.
pub unsafe fn expressions(
    definition: &Definition,
    call: &pg_sys::Aggref,
    types: &mut [Oid],
) -> (*mut Node, *mut Node) {
    let (mut step, mut last) = (std::ptr::null_mut(), std::ptr::null_mut());
    let count = i32::try_from(types.len()).unwrap_or(0);
    let types = types.as_mut_ptr();
    // SAFETY: the caller's aggregate and types; guarded so that an ERROR unwinds.
    unsafe {
        pg_guard_ffi_boundary(|| {
            c::build_aggregate_transfn_expr(
                types,
                count,
                0,
                call.aggvariadic,
                call.aggtranstype,
                call.inputcollid,
                definition.step,
                pg_sys::InvalidOid,
                &raw mut step,
                std::ptr::null_mut(),
            );
            if definition.last != pg_sys::InvalidOid {
                c::build_aggregate_finalfn_expr(
                    types,
                    if definition.last_extra { count + 1 } else { 1 },
                    call.aggtranstype,
                    call.aggtype,
                    call.inputcollid,
                    definition.last,
                    &raw mut last,
                );
            }
        });
    }
    (step.cast(), last.cast())
}

/// A copy of a value in the current memory.
///
/// # Safety
/// Under guard; a value of a type with this length.
pub unsafe fn copied(value: Datum, by_value: bool, length: i16) -> Datum {
    // SAFETY: the caller's value.
    unsafe { c::datumCopy(value, by_value, length.into()) }
}
