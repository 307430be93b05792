//! `engine.colcompress_merge(regclass)`: a table rewritten so that all its rows are in full stripes, sorted by `orderby` if it has one.
//!
//! Works like the rewriting forms of ALTER TABLE: a new file is filled from what a fresh snapshot sees, takes the old one's place,
//! and indexes are built anew, all in the caller's transaction under AccessExclusiveLock. As with those, a
//! transaction whose snapshot is older than the rewrite finds the table empty afterwards.
//! Invariant: until the swap the old file is untouched, so an ERROR anywhere leaves the table as it was.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid, Relation};

use crate::compat;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::{fmgr, relation};
use crate::storage::directory_age::Age;
use crate::storage::open_stripes::{self, LoadOrder, Loader};

crate::sql_function!(pg_finfo_colonnade_colcompress_merge);

/// `engine.colcompress_merge(regclass)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_colcompress_merge(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the function is STRICT in effect by the check.
    unsafe {
        let Some(table) = fmgr::argument(call, 0) else {
            error::raise(
                PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
                "table_name must not be NULL",
                "",
                "",
            )
        };
        merge(Oid::from(table.value() as u32));
        Datum::null()
    }
}

unsafe fn merge(table: Oid) {
    // SAFETY: the lock is kept to the end of the transaction; every check may raise an ERROR.
    unsafe {
        check_owner(table);
        let old = pg_sys::table_open(table, pg_sys::AccessExclusiveLock as i32);
        check(old);
        open_stripes::flush_relation(old);
        pg_sys::CommandCounterIncrement();
        let form = (*old).rd_rel;
        let (space, method, persistence) = ((*form).reltablespace, (*form).relam, (*form).relpersistence);
        let target =
            compat::make_new_heap(table, space, method, persistence, pg_sys::AccessExclusiveLock as i32);
        copy(old, target);
        pg_sys::table_close(old, pg_sys::NoLock as i32);
        compat::finish_heap_swap(table, target, persistence);
    }
}

/// Before the lock is taken: a stranger must not be able to stop others.
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

unsafe fn check(rel: Relation) {
    // SAFETY: rel is open and locked.
    unsafe {
        let name = relation::quoted_name(rel);
        if !relation::is_colcompress(rel) {
            error::raise(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("{name} is not a colcompress table"),
                "",
                "ALTER TABLE ... SET ACCESS METHOD colcompress turns a table into one.",
            );
        }
        if relation::is_foreign_temporary(rel) {
            error::not_supported("cannot merge temporary tables of other sessions", "", "");
        }
        if open_stripes::is_published(rel) {
            error::raise(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot merge table {name} because it is published"),
                "Logical decoding reads ordinary heap rows only, so a published table has no stripes.",
                "Take the table out of its publications first.",
            );
        }
        pg_sys::PreventCommandIfReadOnly(c"engine.colcompress_merge()".as_ptr());
        pg_sys::CheckTableNotInUse(rel, c"merge".as_ptr());
    }
}

/// Copies every row that a fresh snapshot sees.
unsafe fn copy(old: Relation, target: Oid) {
    // SAFETY: both relations are locked exclusively; the slot fits both, since the new one has the old one's row type.
    unsafe {
        let new = pg_sys::table_open(target, pg_sys::NoLock as i32);
        let command = pg_sys::GetCurrentCommandId(true);
        let mut loader = Loader::new(new, LoadOrder::Sorted, command, Age::New);
        let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
        let slot = pg_sys::table_slot_create(old, std::ptr::null_mut());
        let scan = pg_sys::table_beginscan(old, snapshot, 0, std::ptr::null_mut());
        let context = pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            c"colonnade merge".as_ptr(),
            0,
            8 * 1024,
            8 * 1024 * 1024,
        );
        let before = pg_sys::MemoryContextSwitchTo(context);
        while pg_sys::table_scan_getnextslot(scan, pg_sys::ScanDirection::ForwardScanDirection, slot) {
            loader.push(new, &[slot]);
            pg_sys::MemoryContextReset(context);
            pgrx::check_for_interrupts!();
        }
        loader.finish(new);
        pg_sys::MemoryContextSwitchTo(before);
        pg_sys::MemoryContextDelete(context);
        pg_sys::table_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::UnregisterSnapshot(snapshot);
        pg_sys::table_close(new, pg_sys::NoLock as i32);
        pg_sys::CommandCounterIncrement();
    }
}
