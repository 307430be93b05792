//! The background workers that pack.
//!
//! A launcher, started with the server, goes round the databases (every `colonnade.packing_naptime`) and has one worker at a time connect to each; a database without the
//! extension costs that connection. A worker goes round the tables, a batch a transaction, with a pause after each (`colonnade.packing_cost_delay`)
//! in which the table is unlocked. It never waits for a table's lock, and leaves the database when somebody wants to drop or copy it. An ERROR ends the batch: it is
//! logged, and the next table's turn comes. Invariant: a worker that is told to stop, or dies, leaves nothing but a rolled-back batch.

use std::ffi::{CStr, c_char, c_int};
use std::panic::AssertUnwindSafe;

use pgrx::pg_sys::panic::CaughtError;
use pgrx::pg_sys::{self, BackgroundWorker, Datum, Oid, Relation};
use pgrx::{PgTryBuilder, pg_guard};

use super::{as_owner, obstacle, relocate, settings};
use crate::host::relation;

const LIBRARY: &CStr = c"$libdir/colonnade";
/// How long a launcher that has died stays so, in seconds.
const RESTART: c_int = 10;

/// The server's own signal handlers, without a guard around them.
mod handlers {
    use std::ffi::c_int;
    unsafe extern "C-unwind" {
        pub fn SignalHandlerForConfigReload(signal: c_int);
        pub fn die(signal: c_int);
    }
}

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
        if !pg_sys::IsBinaryUpgrade {
            let mut launcher = describe(c"colonnade packing launcher", c"colonnade_packing_launcher");
            launcher.bgw_restart_time = RESTART;
            pg_sys::RegisterBackgroundWorker(&raw mut launcher);
        }
    }
}

unsafe fn begin() {
    // SAFETY: a worker that has just been started. SIGTERM ends it at the next look for interrupts, as it ends a session.
    unsafe {
        pg_sys::pqsignal(pg_sys::SIGHUP as c_int, Some(handlers::SignalHandlerForConfigReload));
        pg_sys::pqsignal(pg_sys::SIGTERM as c_int, Some(handlers::die));
        pg_sys::BackgroundWorkerUnblockSignals();
    }
}

/// Sleeps, but not through a signal.
unsafe fn nap(milliseconds: i64) {
    // SAFETY: the process's own latch.
    unsafe {
        let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
        pg_sys::WaitLatch(pg_sys::MyLatch, events as c_int, milliseconds, pg_sys::PG_WAIT_EXTENSION);
        pg_sys::ResetLatch(pg_sys::MyLatch);
        pgrx::check_for_interrupts!();
        if pg_sys::ConfigReloadPending != 0 {
            pg_sys::ConfigReloadPending = 0;
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
    }
}

/// The launcher.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_packing_launcher(_argument: Datum) {
    // SAFETY: the process belongs to this function.
    unsafe {
        begin();
        pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0);
        loop {
            nap(settings::naptime());
            if !settings::is_on() {
                continue;
            }
            for database in databases() {
                let mut worker = describe(c"colonnade packing", c"colonnade_packing_worker");
                worker.bgw_main_arg = Datum::from(database);
                worker.bgw_notify_pid = pg_sys::MyProcPid;
                let mut handle = std::ptr::null_mut();
                // Where there is no room for another worker the next round may find some.
                if pg_sys::RegisterDynamicBackgroundWorker(&raw mut worker, &raw mut handle) {
                    pg_sys::WaitForBackgroundWorkerShutdown(handle);
                    pg_sys::pfree(handle.cast());
                }
                nap(1);
            }
        }
    }
}

/// The databases that may be connected to.
unsafe fn databases() -> Vec<Oid> {
    // SAFETY: a transaction of its own, and a scan of a shared catalog in it.
    unsafe {
        pg_sys::SetCurrentStatementStartTimestamp();
        pg_sys::StartTransactionCommand();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let found = rows_of::<pg_sys::FormData_pg_database>(pg_sys::DatabaseRelationId, |row| {
            (row.datallowconn && !row.datistemplate).then_some(row.oid)
        });
        pg_sys::PopActiveSnapshot();
        pg_sys::CommitTransactionCommand();
        found
    }
}

/// What `take` takes of the rows of a catalog.
unsafe fn rows_of<T>(catalog: Oid, take: impl Fn(&T) -> Option<Oid>) -> Vec<Oid> {
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

/// A worker: packs what there is to pack in the database that `argument` names.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_packing_worker(argument: Datum) {
    // SAFETY: the process belongs to this function.
    unsafe {
        begin();
        let database = Oid::from(argument.value() as u32);
        pg_sys::BackgroundWorkerInitializeConnectionByOid(database, Oid::INVALID, 0);
        // What a mover has done need not be on disk, or on a standby, before others go on: whoever depends on it commits later.
        let off = c"off".as_ptr();
        let context = pg_sys::GucContext::PGC_USERSET;
        pg_sys::SetConfigOption(
            c"synchronous_commit".as_ptr(),
            off,
            context,
            pg_sys::GucSource::PGC_S_OVERRIDE,
        );
        for table in tables() {
            if !pack(table) {
                return;
            }
        }
    }
}

/// The tables of this access method that other sessions can read.
unsafe fn tables() -> Vec<Oid> {
    // SAFETY: as `databases`.
    unsafe {
        pg_sys::SetCurrentStatementStartTimestamp();
        pg_sys::StartTransactionCommand();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let method = pg_sys::get_am_oid(c"colcompress".as_ptr(), true);
        let kinds = [pg_sys::RELKIND_RELATION as c_char, pg_sys::RELKIND_MATVIEW as c_char];
        let temporary = pg_sys::RELPERSISTENCE_TEMP as c_char;
        let found = if method == Oid::INVALID {
            Vec::new()
        } else {
            rows_of::<pg_sys::FormData_pg_class>(pg_sys::RelationRelationId, |row| {
                (row.relam == method && kinds.contains(&row.relkind) && row.relpersistence != temporary)
                    .then_some(row.oid)
            })
        };
        pg_sys::PopActiveSnapshot();
        pg_sys::CommitTransactionCommand();
        found
    }
}

/// Packs a table as far as it is worth while; false: the worker has to leave the database.
unsafe fn pack(table: Oid) -> bool {
    let (mut from, mut total) = (0, 0);
    // SAFETY: each batch is a transaction of its own.
    unsafe {
        while settings::is_on() {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            pg_sys::XactIsoLevel = pg_sys::XACT_READ_COMMITTED as c_int;
            pg_sys::XactReadOnly = false;
            let wanted = is_database_wanted();
            let moved = if wanted { Ok(0) } else { attempt(|| batch(table, &mut from, total)) };
            let moved = match moved {
                Ok(moved) => {
                    pg_sys::CommitTransactionCommand();
                    moved
                }
                Err(message) => {
                    pg_sys::AbortCurrentTransaction();
                    pgrx::log!("packing of table {} failed: {message}", u32::from(table));
                    0
                }
            };
            total += moved;
            pg_sys::pgstat_report_stat(false);
            pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_IDLE, std::ptr::null());
            if wanted {
                return false;
            }
            if moved == 0 {
                break;
            }
            nap(settings::cost_delay());
        }
        true
    }
}

/// The outcome of `work`, or the message of its ERROR.
fn attempt(work: impl FnOnce() -> usize) -> Result<usize, String> {
    PgTryBuilder::new(AssertUnwindSafe(|| Ok(work())))
        .catch_others(|cause| {
            Err(match cause {
                CaughtError::PostgresError(report)
                | CaughtError::ErrorReport(report)
                | CaughtError::RustPanic { ereport: report, .. } => report.message().to_string(),
            })
        })
        .execute()
}

/// Whether somebody holds, or waits for, a lock on the database that keeps new sessions out: to drop it, or use it as a template.
unsafe fn is_database_wanted() -> bool {
    let tag = pg_sys::LOCKTAG {
        locktag_field1: 0,
        locktag_field2: pg_sys::DatabaseRelationId.into(),
        // SAFETY: a constant of the backend.
        locktag_field3: unsafe { pg_sys::MyDatabaseId.into() },
        locktag_field4: 0,
        locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    };
    // SAFETY: the lock that a session takes when it begins, given back at once.
    unsafe {
        let mode = pg_sys::RowExclusiveLock as c_int;
        let got = pg_sys::LockAcquire(&raw const tag, mode, false, true);
        if got != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL {
            pg_sys::LockRelease(&raw const tag, mode, false);
        }
        got == pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
    }
}

/// One batch of a table that is there, lets itself be locked and may be packed; the rows moved. `total` have been before.
unsafe fn batch(table: Oid, from: &mut pg_sys::BlockNumber, total: usize) -> usize {
    // SAFETY: the lock is kept to the end of the transaction.
    unsafe {
        let lock = pg_sys::ShareUpdateExclusiveLock as c_int;
        if !pg_sys::ConditionalLockRelationOid(table, lock) {
            return 0;
        }
        let rel = pg_sys::try_table_open(table, pg_sys::NoLock as c_int);
        if rel.is_null() {
            return 0;
        }
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let moved = if relation::is_colcompress(rel) && obstacle(rel).is_none() {
            report(rel, total);
            as_owner(rel, || relocate::batch(rel, from, settings::rows()))
        } else {
            0
        };
        pg_sys::PopActiveSnapshot();
        pg_sys::table_close(rel, pg_sys::NoLock as c_int);
        moved
    }
}

/// Says in `pg_stat_activity`, where `engine.packing_progress` looks, what is being done.
unsafe fn report(rel: Relation, total: usize) {
    // SAFETY: the server copies the text.
    unsafe {
        let what = format!("packing {}: {total} rows", relation::quoted_name(rel));
        if let Ok(what) = std::ffi::CString::new(what) {
            pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, what.as_ptr());
        }
    }
}
