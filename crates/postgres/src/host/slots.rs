//! Virtual slots, rows of heap slots and quals, for loops that run once per row.
//!
//! Called by the nodes' row loops (`scan::rows::run`, `scan::vectors`, `vectorised::node::rows`). Nothing
//! here owns anything or has a guard, which would cost more than the row: an ERROR raised below jumps past
//! the caller, which must own nothing either.

use crate::compat;
use pgrx::pg_sys::{self, ExprContext, ExprState, TupleTableSlot};

mod bare {
    use pgrx::pg_sys::{MemoryContext, TupleTableSlot};
    unsafe extern "C-unwind" {
        pub fn MemoryContextReset(context: MemoryContext);
        pub fn slot_getsomeattrs_int(slot: *mut TupleTableSlot, attnum: std::ffi::c_int);
    }
}

const EMPTY: u16 = pg_sys::TTS_FLAG_EMPTY as u16;
const SHOULD_FREE: u16 = pg_sys::TTS_FLAG_SHOULDFREE as u16;

/// Empties a virtual slot.
///
/// # Safety
/// A virtual slot.
#[inline]
pub unsafe fn clear(slot: *mut TupleTableSlot) {
    // SAFETY: the caller's promise; a slot's callbacks are static.
    unsafe {
        if (*slot).tts_flags & SHOULD_FREE != 0
            && let Some(clear) = (*(*slot).tts_ops).clear
        {
            clear(slot);
        }
        (*slot).tts_flags |= EMPTY;
        (*slot).tts_nvalid = 0;
    }
}

/// Declares a virtual slot full.
///
/// # Safety
/// A virtual slot with as many columns, of which all that anybody reads are set.
#[inline]
pub unsafe fn filled(slot: *mut TupleTableSlot, columns: i16) {
    // SAFETY: the caller's promise.
    unsafe {
        (*slot).tts_flags &= !EMPTY;
        (*slot).tts_nvalid = columns;
    }
}

/// Whether there is no row in a slot.
///
/// # Safety
/// A valid slot, or null.
#[inline]
pub unsafe fn is_empty(slot: *mut TupleTableSlot) -> bool {
    // SAFETY: the caller's promise.
    unsafe { slot.is_null() || (*slot).tts_flags & EMPTY != 0 }
}

/// Takes the first `columns` attributes out of a row.
///
/// # Safety
/// The slot holds a row with as many columns.
#[inline]
pub unsafe fn deform(slot: *mut TupleTableSlot, columns: i32) {
    // SAFETY: the caller's promise.
    unsafe {
        if i32::from((*slot).tts_nvalid) < columns {
            bare::slot_getsomeattrs_int(slot, columns);
        }
    }
}

/// Forgets what expressions made for the row before.
///
/// # Safety
/// An expression context.
#[inline]
pub unsafe fn forget_row(econtext: *mut ExprContext) {
    // SAFETY: the caller's promise.
    unsafe { bare::MemoryContextReset((*econtext).ecxt_per_tuple_memory) }
}

/// Evaluates an expression in the per-tuple memory; also says whether it is NULL.
///
/// # Safety
/// An initialised expression and the context that it was initialised for.
#[inline]
pub unsafe fn evaluate(state: *mut ExprState, econtext: *mut ExprContext) -> Option<(pg_sys::Datum, bool)> {
    let mut is_null = false;
    // SAFETY: the caller's promise.
    let result = unsafe { evaluate_into(state, econtext, &raw mut is_null)? };
    Some((result, is_null))
}

/// Fills the result slot of a projection, in the per-tuple memory. None if it is not initialised.
///
/// # Safety
/// The expression of a projection and the context that it was initialised for.
#[inline]
pub unsafe fn fill_projection(state: *mut ExprState, econtext: *mut ExprContext) -> Option<()> {
    let mut is_null = false;
    let out = if compat::PROJECTIONS_RETURN { &raw mut is_null } else { std::ptr::null_mut() };
    // SAFETY: the caller's promise.
    unsafe { evaluate_into(state, econtext, out)? };
    Some(())
}

/// # Safety
/// As `evaluate`; what the expression's kind takes for `is_null`.
#[inline]
unsafe fn evaluate_into(
    state: *mut ExprState,
    econtext: *mut ExprContext,
    is_null: *mut bool,
) -> Option<pg_sys::Datum> {
    // SAFETY: the caller's promise.
    unsafe {
        let function = (*state).evalfunc?;
        let previous = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = (*econtext).ecxt_per_tuple_memory;
        let result = function(state, econtext, is_null);
        pg_sys::CurrentMemoryContext = previous;
        Some(result)
    }
}

/// Whether the row of the context passes a qual.
///
/// # Safety
/// As `evaluate`.
#[inline]
pub unsafe fn passes(state: *mut ExprState, econtext: *mut ExprContext) -> bool {
    // SAFETY: the caller's promise.
    unsafe { evaluate(state, econtext).is_none_or(|(result, is_null)| !is_null && result.value() != 0) }
}
