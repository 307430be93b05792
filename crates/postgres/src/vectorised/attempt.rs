//! ERRORs of functions of the server's inside a vectorised node.
//!
//! Called by `server_expression`, `server_aggregate` and `host_function`. Such a function is asked for a batch at a time: for rows before one at which the server's executor stops with another
//! ERROR, and for more rows than a reader may want. So as long as no row was handed out, an ERROR about a value is a decline: the server runs the query itself, and gives its rows or raises
//! its ERROR, with the context that unwinding loses. Invariant: only ERRORs that a value is the reason of are held back, which leave nothing of the server's half done.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::panic::CaughtError;
use query::{Error, Result};

thread_local! {
    /// Whether the node that runs, innermost, can still hand over to the server's executor.
    static MAY_HAND_OVER: Cell<bool> = const { Cell::new(false) };
}

/// Runs a node that can, or cannot, hand over to the server's executor.
pub fn running<T>(may_hand_over: bool, work: impl FnOnce() -> T) -> T {
    /// Puts back what was.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            MAY_HAND_OVER.set(self.0);
        }
    }
    let _before = Before(MAY_HAND_OVER.replace(may_hand_over));
    work()
}

/// Calls functions of the server's under guard; an ERROR unwinds, or becomes a decline.
///
/// # Safety
/// On the main thread, inside a running node; the work owns nothing, because an ERROR jumps out of it.
pub unsafe fn attempt<T>(work: impl FnOnce() -> T) -> Result<T> {
    // SAFETY: the caller's promise.
    let guarded = || unsafe { pg_guard_ffi_boundary(work) };
    if !MAY_HAND_OVER.get() {
        return Ok(guarded());
    }
    catch_unwind(AssertUnwindSafe(guarded)).map_err(|problem| match problem.downcast_ref() {
        Some(CaughtError::PostgresError(report)) if is_of_a_value(report.sql_error_code()) => {
            Error::Decline("a function of the server's raised an error")
        }
        _ => resume_unwind(problem),
    })
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
