//! Skip support of `engine.uint8`: how a btree scan goes from one value of a leading column to the next
//! possible one (PostgreSQL 18 and later).

use pgrx::pg_guard;
use pgrx::pg_sys::{Datum, FunctionCallInfo, Relation};

crate::sql_function!(pg_finfo_uint8_skip_support);

/// Gives the next value, or says that there is none.
type Step = unsafe extern "C-unwind" fn(Relation, Datum, *mut bool) -> Datum;

/// The server's record (utils/skipsupport.h).
#[repr(C)]
struct SkipSupportData {
    low_elem: Datum,
    high_elem: Datum,
    decrement: Step,
    increment: Step,
}

/// What a step comes to. `is_out` is told where there is no such value.
unsafe fn told(value: Option<u64>, is_out: *mut bool) -> Datum {
    // SAFETY: the server's own variable.
    unsafe { *is_out = value.is_none() };
    Datum::from(value.unwrap_or(0))
}

unsafe extern "C-unwind" fn decrement(_: Relation, value: Datum, is_out: *mut bool) -> Datum {
    // SAFETY: as the server calls it.
    unsafe { told((value.value() as u64).checked_sub(1), is_out) }
}

unsafe extern "C-unwind" fn increment(_: Relation, value: Datum, is_out: *mut bool) -> Datum {
    // SAFETY: as the server calls it.
    unsafe { told((value.value() as u64).checked_add(1), is_out) }
}

/// `uint8_skip_support(internal)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn uint8_skip_support(call: FunctionCallInfo) -> Datum {
    // SAFETY: a strict function of the server's record, which it has room for.
    unsafe {
        let record = (*call).args.as_slice(1)[0].value.cast_mut_ptr::<SkipSupportData>();
        record.write(SkipSupportData {
            low_elem: Datum::from(0_u64),
            high_elem: Datum::from(u64::MAX),
            decrement,
            increment,
        });
    }
    Datum::null()
}
