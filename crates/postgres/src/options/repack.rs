//! Stops pg_repack before it destroys the storage of a columnar table.
//!
//! pg_repack writes a table's rows into a new table and exchanges the files of both, in the catalog alone. Up
//! to version 1.4 the new table has the session's default access method. So a heap file would take the place
//! of one with stripes, and nothing could read it. No hook sees the exchange. But before it copies anything,
//! pg_repack creates a trigger on the table, and it is refused there. If the default access method is ours,
//! the new table has it, too, and nothing is refused.

use super::access_method;
use super::catalog::table_name;
use super::report::Refusal;
use crate::host::tree::Typed;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, CreateTrigStmt};

/// Called when a trigger is about to be created.
pub fn before(statement: Typed<'_, CreateTrigStmt>) {
    let mut names = statement.function().iter().map(Typed::<pg_sys::String>::text);
    let schema = names.next().flatten();
    let function = names.next_back().unwrap_or(schema);
    if schema != Some(c"repack") || function != Some(c"repack_trigger") {
        return;
    }
    let flags = pg_sys::RVROption::RVR_MISSING_OK;
    let lock = pg_sys::NoLock as i32;
    // SAFETY: a catalog look-up of the name that the statement has.
    let table = unsafe {
        pg_sys::RangeVarGetRelidExtended(statement.relation, lock, flags, None, std::ptr::null_mut())
    };
    if !access_method::is_our_table(table) || access_method::names_ours(None) {
        return;
    }
    Refusal::new(
        Code::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("pg_repack cannot repack table \"{}\"", table_name(table)),
    )
    .detail("It would put the file of a table of the default access method in place of the stripes of a colcompress table, which nothing could read.")
    .hint("CALL engine.colcompress_repack() beside readers and writers, or VACUUM FULL. For pg_repack, set default_table_access_method to colcompress: PGOPTIONS='-c default_table_access_method=colcompress'.")
    .raise();
}
