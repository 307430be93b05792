//! COPY FROM whose user may name files of one directory only (`server_files`), where values have to become
//! text: the server's COPY takes what `from_file` makes of the file, but through a callback. Its own way to
//! open the pipe takes the rights to read any file of the server.
//!
//! So what the server does before that is done here: the rights on the table, row security, and the refusal
//! in a transaction that only reads. A condition (`WHERE`) is refused.

use std::ffi::{c_int, c_void};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, CopyStmt, Oid};

use super::from_file;
use super::statement::ParquetCopy;
use crate::host::error::{self, PgSqlErrorCode as Code};
use crate::host::relation::{Open, with_table};
use crate::host::utility_hook::Call;

/// Runs the statement. Returns how many rows came in.
///
/// # Safety
/// A COPY FROM statement as the server hands it to a hook.
pub unsafe fn run(call: Call, copy: &ParquetCopy) -> u64 {
    // SAFETY: the caller's promise. `begin` looks the table up and locks it.
    unsafe {
        let own = (*from_file::begin(call.statement, copy)).utilityStmt.cast::<CopyStmt>();
        if !(*own).whereClause.is_null() {
            error::not_supported(
                "COPY of this Parquet file takes no WHERE",
                "That takes the privileges of the role pg_read_server_files.",
                "A foreign table reads the file, too: INSERT INTO ... SELECT ... WHERE.",
            );
        }
        let lock = pg_sys::RowExclusiveLock;
        let table =
            pg_sys::RangeVarGetRelidExtended((*own).relation, lock as i32, 0, None, std::ptr::null_mut());
        let rows = with_table(table, pg_sys::NoLock, |rel| {
            check_rights(rel, own);
            let state = pg_sys::make_parsestate(std::ptr::null_mut());
            (*state).p_sourcetext = call.text;
            (*state).p_queryEnv = call.environment;
            let (none, lock) = (std::ptr::null_mut(), lock as c_int);
            pg_sys::addRangeTableEntryForRelation(state, rel.as_ptr(), lock, none, false, false);
            let (columns, options) = ((*own).attlist, (*own).options);
            let source = Some(read as unsafe extern "C-unwind" fn(*mut c_void, c_int, c_int) -> c_int);
            let (no_condition, no_name) = (std::ptr::null_mut(), std::ptr::null());
            let reading = pg_sys::BeginCopyFrom(
                state,
                rel.as_ptr(),
                no_condition,
                no_name,
                false,
                source,
                columns,
                options,
            );
            let rows = pg_sys::CopyFrom(reading);
            pg_sys::EndCopyFrom(reading);
            pg_sys::free_parsestate(state);
            rows
        });
        from_file::end();
        rows
    }
}

/// Raises an ERROR unless the user may insert into the columns that are filled.
unsafe fn check_rights(rel: Open, copy: *const CopyStmt) {
    // SAFETY: an open relation, and a COPY of it; catalog look-ups.
    unsafe {
        let (user, acl) = (pg_sys::GetUserId(), pg_sys::ACL_INSERT as pg_sys::AclMode);
        let is_allowed = |result| result == pg_sys::AclResult::ACLCHECK_OK;
        // Raises an ERROR where the table has not the columns that are named.
        let filled = pg_sys::CopyGetAttnums(rel.descriptor(), rel.as_ptr(), (*copy).attlist);
        let filled: Vec<_> = pgrx::PgList::<c_int>::from_pg(filled).iter_int().collect();
        let may_fill = |number: &c_int| {
            let number = i16::try_from(*number).unwrap_or(0);
            is_allowed(pg_sys::pg_attribute_aclcheck(rel.oid(), number, user, acl))
        };
        let may_fill_all = !filled.is_empty() && filled.iter().all(may_fill);
        if !is_allowed(pg_sys::pg_class_aclcheck(rel.oid(), user, acl)) && !may_fill_all {
            error::raise(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for table {}", rel.name()),
                "",
                "",
            );
        }
        let enabled = i32::try_from(pg_sys::CheckEnableRlsResult::RLS_ENABLED).unwrap_or(0);
        if pg_sys::check_enable_rls(rel.oid(), Oid::INVALID, false) == enabled {
            error::not_supported(
                "COPY FROM not supported with row-level security",
                "",
                "Use INSERT statements instead.",
            );
        }
        if pg_sys::XactReadOnly && !rel.is_temporary() {
            pg_sys::PreventCommandIfReadOnly(c"COPY FROM".as_ptr());
        }
    }
}

/// Gives the server's COPY what the thread has written: at least so many bytes, unless there are no more.
#[pg_guard]
unsafe extern "C-unwind" fn read(out: *mut c_void, least: c_int, most: c_int) -> c_int {
    let (least, most) = (usize::try_from(least).unwrap_or(0), usize::try_from(most).unwrap_or(0));
    let mut got = 0;
    while got < least.max(1) {
        pgrx::check_for_interrupts!();
        // SAFETY: the server gives room for so many bytes.
        let room = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>().add(got), most - got) };
        match from_file::read(room) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(problem) if problem.kind() == std::io::ErrorKind::Interrupted => {}
            Err(problem) => error::raise(
                Code::ERRCODE_IO_ERROR,
                "could not read from COPY file",
                &format!("{problem}."),
                "",
            ),
        }
    }
    c_int::try_from(got).unwrap_or(c_int::MAX)
}
