//! `engine.colcompress_relation_storageid(regclass)`: which rows of the directory are a table's stripes.
//!
//! The view `engine.colcompress_stripes` calls it for every table. So it returns NULL, and raises no ERROR,
//! for a table that vanishes meanwhile, has no storage yet, is unlogged on a standby, or belongs to another
//! session's temporary schema.

use super::metapage;
use crate::host::fmgr::{argument, return_null};
use crate::host::relation::Open;
use crate::options;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};

crate::sql_function!(pg_finfo_colonnade_colcompress_relation_storageid);

/// The storage id, or NULL if none can be read.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn colonnade_colcompress_relation_storageid(call: FunctionCallInfo) -> Datum {
    let Some(table) = argument(call, 0).map(|d| Oid::from(d.value() as u32)) else {
        return return_null(call);
    };
    if !options::is_columnar(table) {
        return return_null(call);
    }
    let lock = pg_sys::AccessShareLock as i32;
    let rel = pg_sys::try_relation_open(table, lock);
    if rel.is_null() {
        return return_null(call);
    }
    // The OID may be another relation's by now, or the table's pages may be in another backend's memory.
    let persistence = (*(*rel).rd_rel).relpersistence as u8;
    let readable =
        options::is_columnar(table) && (persistence != pg_sys::RELPERSISTENCE_TEMP || (*rel).rd_islocaltemp);
    let found = if readable && !Open::of(rel).has_no_file_here() {
        metapage::storage_id(Open::of(rel))
    } else {
        None
    };
    pg_sys::relation_close(rel, lock);
    match found {
        Some(id) => Datum::from(id),
        None => return_null(call),
    }
}
