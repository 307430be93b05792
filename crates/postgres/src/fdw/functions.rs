//! What users call: `cstore_table_size` and `cstore_clean_table_resources`, as cstore_fdw has them.

use std::fs;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};

use crate::host::error::{self, PgSqlErrorCode as Code};
use crate::host::fmgr::{argument, return_null};
use crate::host::relation::with_table;
use crate::options::foreign;
use crate::storage::column_file::{load, named};

crate::sql_function!(pg_finfo_colonnade_cstore_table_size);
crate::sql_function!(pg_finfo_colonnade_cstore_clean_table_resources);

/// `cstore_table_size(regclass)`: bytes of the table's file, 0 before the first load.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_cstore_table_size(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame.
    let Some(table) = unsafe { argument(call, 0) }.map(|oid| Oid::from(oid.value() as u32)) else {
        // SAFETY: as above.
        return unsafe { return_null(call) };
    };
    with_table(table, pg_sys::AccessShareLock, |rel| {
        if !foreign::is_column_file(rel) {
            error::raise(
                Code::ERRCODE_WRONG_OBJECT_TYPE,
                format!("{} is no foreign table of cstore_fdw", rel.quoted_name()),
                "",
                "pg_total_relation_size() tells how large other tables are.",
            );
        }
    });
    let length = foreign::file_of(table).metadata().map_or(0, |found| found.len());
    Datum::from(i64::try_from(length).unwrap_or(i64::MAX))
}

/// `cstore_clean_table_resources(oid)`: takes away the file below the data directory that a foreign table has
/// left which is no more.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_cstore_clean_table_resources(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; catalog look-ups.
    unsafe {
        let Some(table) = argument(call, 0).map(|oid| Oid::from(oid.value() as u32)) else {
            return return_null(call);
        };
        if !load::excludes_others(table) {
            error::raise(
                Code::ERRCODE_OBJECT_IN_USE,
                format!("a transaction is at work on the table with OID {}", table.to_u32()),
                "It may be a prepared one, which pg_prepared_xacts lists.",
                "Wait until it has ended.",
            );
        }
        if pg_sys::get_rel_name(table).is_null() && named::storage_id(table).is_none() {
            let _ = fs::remove_file(foreign::default_folder().join(table.to_u32().to_string()));
        }
        Datum::from(0usize)
    }
}
