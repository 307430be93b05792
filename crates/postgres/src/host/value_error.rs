//! ERRORs of built-in functions about values, held back.
//!
//! Callers: `vectorised/attempt`, for functions that are asked for rows that the server's executor may not reach, and `early_value`. Without a subtransaction: invariant: what is tried calls built-in
//! functions only, and only ERRORs that a value is the reason of are held back, which leave nothing of the server's half done.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::panic::CaughtError;

/// What the work gives; None where it raises an ERROR about a value. Other ERRORs unwind.
///
/// # Safety
/// On the main thread; the work owns nothing, because an ERROR jumps out of it, and calls the server bare, because a panic must not cross the guard.
pub unsafe fn attempt<T>(work: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: the caller's promise.
    let guarded = || unsafe { pg_guard_ffi_boundary(work) };
    catch_unwind(AssertUnwindSafe(guarded)).map_or_else(
        |problem| match problem.downcast_ref() {
            Some(CaughtError::PostgresError(report)) if is_of_a_value(report.sql_error_code()) => None,
            _ => resume_unwind(problem),
        },
        Some,
    )
}

/// By the class of a SQLSTATE, its first two characters.
const fn is_of_a_value(code: PgSqlErrorCode) -> bool {
    use PgSqlErrorCode as C;
    /// The server packs six bits for each character, the first one lowest.
    const CLASS: isize = (1 << 12) - 1;
    let class = code as isize & CLASS;
    class == C::ERRCODE_DATA_EXCEPTION as isize & CLASS
        || class == C::ERRCODE_FEATURE_NOT_SUPPORTED as isize & CLASS
        || class == C::ERRCODE_SYNTAX_ERROR as isize & CLASS
        || class == C::ERRCODE_PROGRAM_LIMIT_EXCEEDED as isize & CLASS
}
