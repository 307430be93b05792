//! Answers what a running plan asks of the server, and raises the plan's errors there.
//!
//! Invariant: used on the backend's main thread only.

use std::sync::atomic::{AtomicI32, Ordering};

use pgrx::pg_sys;
use query::{Error, SqlError};

use crate::host::error::{self, PgSqlErrorCode};

mod c {
    use pgrx::pg_sys::__sigset_t;
    unsafe extern "C" {
        pub fn sigfillset(set: *mut __sigset_t) -> std::ffi::c_int;
        pub fn pthread_sigmask(
            how: std::ffi::c_int,
            set: *const __sigset_t,
            before: *mut __sigset_t,
        ) -> std::ffi::c_int;
    }
    /// `SIG_SETMASK` of the system.
    pub const SET: std::ffi::c_int = if cfg!(target_os = "linux") { 2 } else { 3 };
}

/// The backend that runs the plan.
#[derive(Default)]
pub struct Backend {
    /// Signals that were blocked before threads were started.
    mask: Option<pg_sys::__sigset_t>,
}

/// True if the next check for interrupts ends the statement: it was cancelled or has timed out, or the
/// backend is told to end or has lost its client. Callable on any thread.
fn interrupted() -> bool {
    // SAFETY: flags of this process that its signal handlers set, and a counter of its main thread: integers
    // that are only read, at worst a moment late.
    unsafe {
        let set = |flag: *mut pg_sys::sig_atomic_t| AtomicI32::from_ptr(flag).load(Ordering::Relaxed) != 0;
        let held = (&raw const pg_sys::InterruptHoldoffCount).read_volatile() != 0;
        !held
            && (set(&raw mut pg_sys::QueryCancelPending)
                || set(&raw mut pg_sys::ProcDiePending)
                || set(&raw mut pg_sys::ClientConnectionLost))
    }
}

impl query::Host for Backend {
    fn check_interrupts(&mut self) -> query::Result<()> {
        // A cancelled query leaves by unwinding.
        pgrx::check_for_interrupts!();
        Ok(())
    }

    fn interrupted(&self) -> fn() -> bool {
        interrupted
    }

    fn before_threads(&mut self) {
        // SAFETY: a signal set is plain bytes; the calls write whole ones and change the mask of this thread
        // only. Handlers of the server must run on no other thread.
        unsafe {
            let mut all = std::mem::zeroed::<pg_sys::__sigset_t>();
            let mut before = std::mem::zeroed::<pg_sys::__sigset_t>();
            if c::sigfillset(&raw mut all) == 0
                && c::pthread_sigmask(c::SET, &raw const all, &raw mut before) == 0
            {
                self.mask = Some(before);
            }
        }
    }

    fn after_threads(&mut self) {
        if let Some(before) = self.mask.take() {
            // SAFETY: sets this thread's mask to what it was.
            unsafe { c::pthread_sigmask(c::SET, &raw const before, std::ptr::null_mut()) };
        }
    }
}

/// Bytes that one operator may hold: as for the server's own hash tables.
pub fn operator_memory() -> usize {
    // SAFETY: reads two settings.
    unsafe { pg_sys::get_hash_memory_limit() as usize }
}

/// SQLSTATE and text of an error that SQL defines, as the server has them.
pub const fn sql_error(error: SqlError) -> (PgSqlErrorCode, &'static str) {
    use PgSqlErrorCode as C;
    match error {
        SqlError::SmallintOutOfRange => (C::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, "smallint out of range"),
        SqlError::IntegerOutOfRange => (C::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"),
        SqlError::BigintOutOfRange => (C::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"),
        SqlError::FloatOverflow => (C::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"),
        SqlError::FloatUnderflow => (C::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow"),
        SqlError::DateOutOfRange => (C::ERRCODE_DATETIME_FIELD_OVERFLOW, "date out of range"),
        SqlError::TimestampOutOfRange => (C::ERRCODE_DATETIME_FIELD_OVERFLOW, "timestamp out of range"),
        SqlError::DivisionByZero => (C::ERRCODE_DIVISION_BY_ZERO, "division by zero"),
        SqlError::NegativeSubstringLength => {
            (C::ERRCODE_SUBSTRING_ERROR, "negative substring length not allowed")
        }
    }
}

/// Raises the server's ERROR for an error that ends the query.
#[track_caller]
pub fn raise(problem: Error) -> ! {
    match problem {
        Error::Data(problem) => error::raise_plain(problem),
        Error::Sql(problem) => {
            let (code, text) = sql_error(problem);
            error::raise(code, text, "", "")
        }
        Error::Decline(reason) => error::raise(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "the vectorised plan met a value that it does not handle",
            &format!("Reason: {reason}."),
            "Set colonnade.enable_vectorised to off and run the query again.",
        ),
        Error::Cancelled => {
            // The server knows why.
            pgrx::check_for_interrupts!();
            let text = "canceling statement due to user request";
            error::raise(PgSqlErrorCode::ERRCODE_QUERY_CANCELED, text, "", "")
        }
    }
}
