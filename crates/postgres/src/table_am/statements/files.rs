//! Statements that make, copy or remove a table's file: CREATE, TRUNCATE, DROP, SET TABLESPACE.
//!
//! A new file starts without a metapage. When a file is given up for good, the directory rows of its storage
//! id are deleted in the same transaction. So a rollback brings back the file and the rows together. SET
//! TABLESPACE copies blocks, also the metapage, and changes nothing in the directory.
//!
//! Invariant: a table whose block 0 cannot be read can still be dropped.

use std::ffi::c_char;

use pgrx::pg_guard;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, MultiXactId, Oid, Relation, TransactionId};

use crate::compat;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::heap_am::{heap, heap_guarded};
use crate::host::relation::Open;
use crate::host::relation_file;
use crate::host::relation_file::FileLocator;
use crate::host::subtransaction;
use crate::options;
use crate::storage::file::metapage;
use crate::storage::{column_file, directory, pending_rows};

/// `relation_set_new_filenode`: a table is created, truncated or rewritten.
#[pg_guard]
pub unsafe extern "C-unwind" fn set_new_file(
    rel: Relation,
    locator: *const FileLocator,
    persistence: c_char,
    freeze_xid: *mut TransactionId,
    min_multi: *mut MultiXactId,
) {
    // SAFETY: a relation that is being created has its new file's number already; otherwise the old file is
    // there.
    unsafe {
        let rel = Open::of(rel);
        if relation_file::file_number(&relation_file::locator(rel)) != relation_file::file_number(&*locator) {
            forget_rows(rel);
        }
        let mut heap = *heap();
        let Some(set) = *compat::set_new_file(&mut heap) else { error::internal("heap makes no files") };
        pg_guard_ffi_boundary(|| set(rel.as_ptr(), locator, persistence, freeze_xid, min_multi));
    }
}

/// `relation_nontransactional_truncate`: the file was made by this transaction, or belongs to a temporary
/// table that is emptied at commit.
#[pg_guard]
pub unsafe extern "C-unwind" fn nontransactional_truncate(rel: Relation) {
    // SAFETY: nobody else can see the file. Rows of the command just finished have to become deletable first.
    unsafe {
        let rel = Open::of(rel);
        pg_sys::CommandCounterIncrement();
        forget_rows(rel);
        metapage::forget(rel);
        heap_guarded!(relation_nontransactional_truncate(rel.as_ptr()));
    }
}

/// The errors that reading a damaged or missing file raises.
const DAMAGE: [PgSqlErrorCode; 4] = [
    PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
    PgSqlErrorCode::ERRCODE_IO_ERROR,
    PgSqlErrorCode::ERRCODE_UNDEFINED_FILE,
    PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
];

unsafe fn forget_rows(rel: Open) {
    // SAFETY: rel is open; its present file may be damaged.
    unsafe {
        if rel.is_foreign_temporary() {
            return;
        }
        let found = match metapage::known_storage_id(rel) {
            Some(storage_id) => Ok(Some(storage_id)),
            // ON COMMIT DELETE ROWS and ON COMMIT DROP come here. They concern temporary tables only, whose
            // damage matters to no other session.
            None if pending_rows::is_committing() => Ok(metapage::storage_id(rel)),
            None => subtransaction::attempt(&DAMAGE, || metapage::storage_id(rel)),
        };
        match found {
            Ok(Some(storage_id)) => directory::delete_storage(storage_id),
            Ok(None) => {}
            Err(what) => error::warn(
                PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                format!("could not read block 0 of table {}", rel.quoted_name()),
                &what,
                "Rows in engine.stripe that describe the lost stripes stay there; they take space but are never read.",
            ),
        }
    }
}

/// Called by the object access hook when a table is about to be dropped.
pub unsafe fn before_drop(relid: Oid) {
    // SAFETY: DROP holds AccessExclusiveLock.
    unsafe {
        let kind = pg_sys::get_rel_relkind(relid) as u8;
        if kind == pg_sys::RELKIND_FOREIGN_TABLE {
            column_file::publish::before_drop(relid);
            return;
        }
        if kind != pg_sys::RELKIND_RELATION && kind != pg_sys::RELKIND_MATVIEW {
            return;
        }
        let rel = Open::of(pg_sys::relation_open(relid, pg_sys::NoLock as i32));
        if options::is_our_relation(rel) {
            forget_rows(rel);
        }
        pg_sys::relation_close(rel.as_ptr(), pg_sys::NoLock as i32);
    }
}

/// `relation_toast_am`: values too large for a page live in an ordinary heap.
#[pg_guard]
pub unsafe extern "C-unwind" fn toast_am(_rel: Relation) -> Oid {
    pg_sys::HEAP_TABLE_AM_OID
}
