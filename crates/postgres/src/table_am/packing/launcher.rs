//! The process that has databases packed.
//!
//! The server starts it once recovery is over, so a standby has none. Every `colonnade.packing_naptime` it
//! goes round the databases. It starts a worker, one at a time, in each database in which something was
//! written or whose pause is over (`schedule`).
//!
//! Invariant: a worker that fails, or cannot be started, costs a pause and nothing else.

use std::ffi::{CStr, c_char, c_int};
use std::time::Instant;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, BackgroundWorker, Datum, Oid};

use super::process::{Role, begin, in_transaction, rows_of, sleep};
use super::schedule::{self, Turn};
use super::statistics;
use super::{further, settings};
use crate::compat;
use crate::host::server_locks;

const LIBRARY: &CStr = c"$libdir/colonnade";
/// Seconds until the server starts a launcher again that has died.
const RESTART: c_int = 10;

fn put(field: &mut [c_char], text: &CStr) {
    for (to, &from) in field.iter_mut().zip(text.to_bytes_with_nul()) {
        *to = from as c_char;
    }
}

fn describe(name: &CStr, function: &CStr) -> BackgroundWorker {
    let mut worker = BackgroundWorker {
        bgw_flags: (pg_sys::BGWORKER_SHMEM_ACCESS | pg_sys::BGWORKER_BACKEND_DATABASE_CONNECTION) as c_int,
        bgw_start_time: pg_sys::BgWorkerStartTime::BgWorkerStart_RecoveryFinished,
        bgw_restart_time: pg_sys::BGW_NEVER_RESTART,
        ..BackgroundWorker::default()
    };
    put(&mut worker.bgw_name, name);
    put(&mut worker.bgw_type, name);
    put(&mut worker.bgw_library_name, LIBRARY);
    put(&mut worker.bgw_function_name, function);
    worker
}

/// Has the server start the launcher.
///
/// # Safety
/// Call it once, from `_PG_init`, while libraries are preloaded.
pub unsafe fn register() {
    // SAFETY: the server copies the description.
    unsafe {
        schedule::register();
        statistics::register();
        if !pg_sys::IsBinaryUpgrade {
            let mut launcher = describe(c"colonnade packing launcher", c"colonnade_packing_launcher");
            launcher.bgw_restart_time = RESTART;
            pg_sys::RegisterBackgroundWorker(&raw mut launcher);
        }
    }
}

/// The launcher.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_packing_launcher(_argument: Datum) {
    // SAFETY: the process belongs to this function.
    unsafe {
        begin(Role::Launcher);
        pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0);
        loop {
            nap();
            if !settings::is_on() && further::get().is_none() {
                continue;
            }
            for database in databases() {
                // A round may take long, and the database may be gone by now.
                if !in_transaction(|| is_there(database)) {
                    continue;
                }
                // Notes a failure beforehand, in case the worker dies; the worker's own note replaces it.
                // There must be one note a round only, as a second one would double the pause again.
                Turn::of_database(database).failed();
                let mut worker = describe(c"colonnade packing", c"colonnade_packing_worker");
                worker.bgw_main_arg = Datum::from(database);
                worker.bgw_notify_pid = pg_sys::MyProcPid;
                let mut handle = std::ptr::null_mut();
                if pg_sys::RegisterDynamicBackgroundWorker(&raw mut worker, &raw mut handle) {
                    pg_sys::WaitForBackgroundWorkerShutdown(handle);
                    pg_sys::pfree(handle.cast());
                } else {
                    // All of max_worker_processes are taken: the next round may find one.
                    Turn::of_database(database).was_busy();
                }
                sleep(1);
            }
        }
    }
}

/// Waits for as long as settings say. The server wakes all processes now and then: when they begin, and for
/// each database that is dropped.
unsafe fn nap() {
    let began = Instant::now();
    loop {
        let passed = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let left = settings::naptime().saturating_sub(passed);
        if left <= 0 {
            return;
        }
        // SAFETY: no transaction is open.
        unsafe { sleep(left) };
    }
}

/// Rows written in a database, by the server's statistics.
pub(super) unsafe fn written(database: Oid) -> u64 {
    // SAFETY: null, or what the server keeps to the end of the transaction.
    unsafe {
        let counts = pg_sys::pgstat_fetch_stat_dbentry(database);
        if counts.is_null() {
            return 0;
        }
        u64::try_from(compat::written_rows(&*counts)).unwrap_or(0)
    }
}

/// Whether a database is there, may be connected to, and nobody is about to drop it. If somebody were, a
/// worker would wait for its lock and end with a FATAL when the database is gone.
unsafe fn is_there(database: Oid) -> bool {
    // SAFETY: a lock that is to be had at once, to the end of the transaction, and a look-up in the catalog
    // cache.
    unsafe {
        if !server_locks::lock_database_if_free(database) {
            return false;
        }
        let cache = pg_sys::SysCacheIdentifier::DATABASEOID as c_int;
        let tuple = pg_sys::SearchSysCache1(cache, database.into());
        if tuple.is_null() {
            return false;
        }
        let may = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>()).datallowconn;
        pg_sys::ReleaseSysCache(tuple);
        may
    }
}

/// The databases that may be connected to and are due.
unsafe fn databases() -> Vec<Oid> {
    // SAFETY: a scan of a shared catalog.
    unsafe {
        in_transaction(|| {
            let mut found = rows_of::<pg_sys::FormData_pg_database, _>(pg_sys::DatabaseRelationId, |row| {
                (row.datallowconn && !row.datistemplate).then_some(row.oid)
            });
            found.retain(|&database| Turn::of_database(database).is_due(written(database), 1));
            found
        })
    }
}
