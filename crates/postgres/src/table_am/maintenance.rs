//! What functions that maintain one table (merge, unpack, verify) ask before they begin.

use pgrx::pg_sys::{self, FunctionCallInfo, Oid, Relation};

use crate::host::error::{self, PgSqlErrorCode};
use crate::host::{fmgr, relation};

/// The first argument, a table; NULL is an ERROR.
pub unsafe fn table_argument(call: FunctionCallInfo) -> Oid {
    // SAFETY: the server's call frame.
    match unsafe { fmgr::argument(call, 0) } {
        Some(table) => Oid::from(table.value() as u32),
        None => error::raise(
            PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "table_name must not be NULL",
            "",
            "",
        ),
    }
}

/// Opens a colcompress table that the user owns, with a lock that is kept to the end of the transaction. `verb` says for what.
pub unsafe fn open_owned(table: Oid, lock: u32, verb: &str) -> Relation {
    // SAFETY: every check may raise an ERROR. Ownership comes before the lock: a stranger must not be able to stop others.
    unsafe {
        check_owner(table);
        let rel = pg_sys::table_open(table, lock as i32);
        expect_colcompress(rel, verb);
        rel
    }
}

/// Raises an ERROR unless `rel` is a colcompress table whose pages can be read here.
pub unsafe fn expect_colcompress(rel: Relation, verb: &str) {
    // SAFETY: rel is open.
    unsafe {
        if !relation::is_colcompress(rel) {
            error::not_colcompress(&relation::quoted_name(rel));
        }
        if relation::is_foreign_temporary(rel) {
            error::not_supported(format!("cannot {verb} temporary tables of other sessions"), "", "");
        }
    }
}

unsafe fn check_owner(table: Oid) {
    // SAFETY: catalog look-ups; the name is null for an OID that is no relation.
    unsafe {
        let name = pg_sys::get_rel_name(table);
        if !name.is_null() && !pg_sys::pg_class_ownercheck(table, pg_sys::GetUserId()) {
            let kind = pg_sys::get_relkind_objtype(pg_sys::get_rel_relkind(table));
            pg_sys::aclcheck_error(pg_sys::AclResult::ACLCHECK_NOT_OWNER, kind, name);
        }
    }
}
