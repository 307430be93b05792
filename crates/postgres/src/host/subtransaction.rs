//! Trying something that may raise an ERROR.
//!
//! Called where an ERROR need not end the statement. The attempt runs in a subtransaction of its own, because
//! only the end of one releases the pins, locks and half-read buffers that an ERROR leaves.
//!
//! Invariant: whatever happens, the subtransaction is over when this returns or unwinds.

use std::panic::AssertUnwindSafe;

use pgrx::PgTryBuilder;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;

use super::error::PgSqlErrorCode;

/// Runs `what`. Returns the message of an ERROR whose SQLSTATE is among `forgiven`. Other ERRORs are raised
/// again.
///
/// # Safety
/// Inside a transaction that is not being committed: what the server allocates for the subtransaction would
/// outlive its memory.
pub unsafe fn attempt<T>(forgiven: &[PgSqlErrorCode], what: impl FnOnce() -> T) -> Result<T, String> {
    // SAFETY: called inside a transaction; context and resource owner are put back as the server's own
    // callers do.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        // Ending the subtransaction is inside, because it may fail, too, and leaves it open then.
        let outcome = PgTryBuilder::new(AssertUnwindSafe(|| {
            let value = what();
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::ReleaseCurrentSubTransaction();
            Ok(value)
        }))
        .catch_others(|cause| Err(Box::new(cause)))
        .execute();
        pg_sys::MemoryContextSwitchTo(context);
        if outcome.is_err() {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        outcome.or_else(|cause| {
            let report = match &*cause {
                CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => report,
                CaughtError::RustPanic { ereport, .. } => ereport,
            };
            if forgiven.contains(&report.sql_error_code()) {
                Err(report.message().to_string())
            } else {
                cause.rethrow()
            }
        })
    }
}

/// Runs `what`, which changes nothing and raises no ERROR, in a subtransaction that is rolled back. So
/// everything that it leaves open in the server is released silently.
///
/// # Safety
/// As `attempt`.
pub unsafe fn undone<T>(what: impl FnOnce() -> T) -> T {
    // SAFETY: inside a transaction, as `attempt` asks for.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        let value = what();
        pg_sys::RollbackAndReleaseCurrentSubTransaction();
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        value
    }
}
