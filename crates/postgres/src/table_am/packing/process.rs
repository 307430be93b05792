//! What the launcher's process and the worker's are made of: signals, sleeping, and transactions whose ERROR
//! is logged and does not end the process.
//!
//! Invariant: a session that waits for a worker longer than `deadlock_timeout` cancels the worker's
//! transaction (`server_locks::declare_maintenance`), which is rolled back.

use std::ffi::c_int;
use std::panic::AssertUnwindSafe;

use pgrx::PgTryBuilder;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;

use crate::compat;
use crate::host::timeouts;

/// The longest time that one transaction may take, in milliseconds. Functions of the owner's may never come
/// to an end.
const LONGEST: i32 = 300_000;

/// The server's own signal handlers, without a guard around them.
mod handlers {
    use std::ffi::c_int;
    unsafe extern "C-unwind" {
        pub fn SignalHandlerForConfigReload(signal: c_int);
        pub fn StatementCancelHandler(signal: c_int);
        pub fn SignalHandlerForShutdownRequest(signal: c_int);
    }
}

/// SIGTERM: the process is to end. Its transaction is cancelled, and it ends silently when `end_if_asked`
/// looks next. The server's own handler would end it with a FATAL, which alarms people who watch the log.
unsafe extern "C-unwind" fn stop(signal: c_int) {
    // SAFETY: both set flags and the latch, and keep errno.
    unsafe {
        handlers::SignalHandlerForShutdownRequest(signal);
        handlers::StatementCancelHandler(signal);
    }
}

/// Ends the process if it was told to. The exit status is 1, so that the server starts the launcher again
/// unless it is stopping.
unsafe fn end_if_asked() {
    // SAFETY: a flag that handlers set; no transaction is open.
    unsafe {
        if (&raw const pg_sys::ShutdownRequestPending).read_volatile() != 0 {
            pg_sys::proc_exit(1);
        }
    }
}

/// Which of the two processes this is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing of it is cancelled: it works only briefly, or waits for a worker, which is told to stop as
    /// well.
    Launcher,
    /// Each of its transactions is an `attempt`, so that a cancelled one is reported as cancelled, or not at
    /// all.
    Worker,
}

/// Sets up the signals of a process that has just been started.
pub(super) unsafe fn begin(role: Role) {
    // SAFETY: SIGTERM ends it once what it does is cancelled; SIGINT cancels what it does.
    unsafe {
        compat::handle_signal(pg_sys::SIGHUP as c_int, Some(handlers::SignalHandlerForConfigReload));
        compat::handle_signal(pg_sys::SIGINT as c_int, Some(handlers::StatementCancelHandler));
        let on_term = match role {
            Role::Launcher => handlers::SignalHandlerForShutdownRequest,
            Role::Worker => stop,
        };
        compat::handle_signal(pg_sys::SIGTERM as c_int, Some(on_term));
        pg_sys::BackgroundWorkerUnblockSignals();
    }
}

/// Sleeps, but not through a signal.
pub unsafe fn sleep(milliseconds: i64) {
    // SAFETY: the process's own latch.
    unsafe {
        let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
        pg_sys::WaitLatch(pg_sys::MyLatch, events as c_int, milliseconds, pg_sys::PG_WAIT_EXTENSION);
        pg_sys::ResetLatch(pg_sys::MyLatch);
        end_if_asked();
        // No transaction is open, so there is nothing to cancel.
        pg_sys::QueryCancelPending = 0;
        pgrx::check_for_interrupts!();
        if pg_sys::ConfigReloadPending != 0 {
            pg_sys::ConfigReloadPending = 0;
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
    }
}

/// Runs `work` in a transaction with a snapshot, and ends it.
pub unsafe fn in_transaction<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: there is no transaction.
    unsafe {
        pg_sys::SetCurrentStatementStartTimestamp();
        pg_sys::StartTransactionCommand();
        pg_sys::XactIsoLevel = pg_sys::XACT_READ_COMMITTED as c_int;
        pg_sys::XactReadOnly = false;
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let result = work();
        pg_sys::PopActiveSnapshot();
        pg_sys::CommitTransactionCommand();
        result
    }
}

/// The result of `work`, which begins and ends its transactions itself. After an ERROR the transaction is
/// rolled back, the ERROR is logged as one of `what`, and its message is returned.
pub unsafe fn attempt<T>(what: &str, limited: bool, work: impl FnOnce() -> T) -> Result<T, String> {
    // SAFETY: there is no transaction before, and none afterwards.
    unsafe {
        end_if_asked();
        pg_sys::QueryCancelPending = 0;
        let done = PgTryBuilder::new(AssertUnwindSafe(|| {
            if limited {
                timeouts::start_timeout(LONGEST);
            }
            Ok(work())
        }))
        .catch_others(|cause| {
            Err(match cause {
                CaughtError::PostgresError(report)
                | CaughtError::ErrorReport(report)
                | CaughtError::RustPanic { ereport: report, .. } => report.message().to_string(),
            })
        })
        .execute();
        timeouts::stop_timeout();
        if let Err(message) = &done {
            pg_sys::AbortCurrentTransaction();
            end_if_asked();
            pgrx::log!("{what} failed: {message}");
        }
        pg_sys::pgstat_report_stat(false);
        pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_IDLE, std::ptr::null());
        done
    }
}

/// Says in `pg_stat_activity`, where `engine.packing_progress` looks, what is being done.
pub unsafe fn report(what: &str) {
    // SAFETY: the server copies the text.
    unsafe {
        if let Ok(what) = std::ffi::CString::new(what) {
            pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, what.as_ptr());
        }
    }
}

/// What `take` makes of the rows of a catalog, read in a transaction with a snapshot.
pub(super) unsafe fn rows_of<T, U>(catalog: pg_sys::Oid, take: impl Fn(&T) -> Option<U>) -> Vec<U> {
    // SAFETY: `T` is the fixed part of the catalog's rows.
    unsafe {
        let table = pg_sys::table_open(catalog, pg_sys::AccessShareLock as c_int);
        let scan = pg_sys::table_beginscan_catalog(table, 0, std::ptr::null_mut());
        let mut found = Vec::new();
        loop {
            let tuple = pg_sys::heap_getnext(scan, pg_sys::ScanDirection::ForwardScanDirection);
            if tuple.is_null() {
                break;
            }
            found.extend(take(&*pg_sys::GETSTRUCT(tuple).cast::<T>()));
        }
        pg_sys::table_endscan(scan);
        pg_sys::table_close(table, pg_sys::AccessShareLock as c_int);
        found
    }
}
