//! Glue between SQL-callable functions and Rust: what cargo-pgrx would generate.
//!
//! A function needs `sql_function!(name)` and a `#[unsafe(no_mangle)] #[pg_guard] extern "C-unwind" fn`; the
//! SQL file declares it with `AS 'MODULE_PATHNAME', 'name'`.

use pgrx::pg_sys::{self, Datum, FunctionCallInfo};

/// Declares the version-1 record that the function manager looks for beside each C function.
#[macro_export]
macro_rules! sql_function {
    ($info:ident) => {
        #[doc(hidden)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $info() -> *const pgrx::pg_sys::Pg_finfo_record {
            static RECORD: pgrx::pg_sys::Pg_finfo_record = pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
            &RECORD
        }
    };
}

/// Argument `n` (zero-based). None if it is NULL or was not given.
pub unsafe fn argument(fcinfo: FunctionCallInfo, n: usize) -> Option<Datum> {
    // SAFETY: the server fills nargs entries; the position is checked against it.
    unsafe {
        let count = usize::try_from((*fcinfo).nargs).unwrap_or(0);
        let arg = (*fcinfo).args.as_slice(count).get(n)?;
        (!arg.isnull).then_some(arg.value)
    }
}

/// Marks the result as NULL.
pub unsafe fn return_null(fcinfo: FunctionCallInfo) -> Datum {
    // SAFETY: fcinfo is the live call frame.
    unsafe { (*fcinfo).isnull = true };
    Datum::from(0usize)
}

/// The result of a function or procedure that returns one row.
///
/// # Safety
/// As `put_row`.
pub unsafe fn one_row<const N: usize>(
    call: FunctionCallInfo,
    values: &mut [Datum; N],
    nulls: &mut [bool; N],
) -> Datum {
    // SAFETY: the caller's promise. The row is copied into the current context.
    unsafe {
        let mut desc = std::ptr::null_mut();
        pg_sys::get_call_result_type(call, std::ptr::null_mut(), &raw mut desc);
        let desc = pg_sys::BlessTupleDesc(desc);
        let row = pg_sys::heap_form_tuple(desc, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::HeapTupleHeaderGetDatum((*row).t_data)
    }
}

/// Adds a row to the result of a function that has called `InitMaterializedSRF`.
///
/// # Safety
/// The server's call frame; values and NULLs are those of the row type that the SQL declares.
pub unsafe fn put_row<const N: usize>(
    call: FunctionCallInfo,
    values: &mut [Datum; N],
    nulls: &mut [bool; N],
) {
    // SAFETY: the caller's promise; the server copies the row.
    unsafe {
        let info: *mut pg_sys::ReturnSetInfo = (*call).resultinfo.cast();
        let (store, desc) = ((*info).setResult, (*info).setDesc);
        pg_sys::tuplestore_putvalues(store, desc, values.as_mut_ptr(), nulls.as_mut_ptr());
    }
}
