//! VACUUM of tables in a background process, as autovacuum calls it.

use std::ffi::c_void;

use pgrx::pg_sys::{self, Oid};

use super::process::attempt;
use crate::compat;

/// Vacuums these tables, each in a transaction of its own. One that cannot be locked at once is left out.
/// `what` is for the log. Returns an ERROR's message.
///
/// # Safety
/// In a background process, outside of transactions.
pub unsafe fn of(what: &str, tables: &[Oid]) -> Result<(), String> {
    // SAFETY: the caller's promise; what the server's VACUUM is given lives in a context of its own.
    unsafe {
        let context = pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"colonnade vacuum".as_ptr(),
            0,
            8 * 1024,
            8 * 1024 * 1024,
        );
        let done = attempt(what, false, || {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            pg_sys::PortalContext = context;
            let before = pg_sys::MemoryContextSwitchTo(context);
            let mut list = std::ptr::null_mut();
            for &oid in tables {
                let item = pg_sys::makeVacuumRelation(std::ptr::null_mut(), oid, std::ptr::null_mut());
                list = pg_sys::lappend(list, item.cast::<c_void>());
            }
            let mut params = params();
            let strategy = compat::vacuum_strategy();
            pg_sys::MemoryContextSwitchTo(before);
            compat::vacuum(list, &raw mut params, strategy, context);
            pg_sys::CommitTransactionCommand();
        });
        pg_sys::PortalContext = std::ptr::null_mut();
        pg_sys::MemoryContextDelete(context);
        done
    }
}

fn params() -> pg_sys::VacuumParams {
    let mut params = pg_sys::VacuumParams {
        options: pg_sys::VACOPT_VACUUM
            | pg_sys::VACOPT_SKIP_LOCKED
            | pg_sys::VACOPT_PROCESS_TOAST
            | compat::VACUUM_MAIN,
        freeze_min_age: -1,
        freeze_table_age: -1,
        multixact_freeze_min_age: -1,
        multixact_freeze_table_age: -1,
        log_min_duration: -1,
        nworkers: -1,
        // Else line pointers of few dead rows stay, which keep the end of the file.
        index_cleanup: pg_sys::VacOptValue::VACOPTVALUE_ENABLED,
        ..pg_sys::VacuumParams::default()
    };
    compat::set_vacuum_defaults(&mut params);
    params
}
