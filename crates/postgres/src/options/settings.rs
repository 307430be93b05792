//! Settings of a session: defaults of table options, and what the planner and the executor may use.
//!
//! `_PG_init` calls [`register`] once per process, before any statement runs, and then those of
//! `storage::pending_rows` and `table_am::packing`, which define the settings of loads and of packing.
//!
//! Invariant: a default of a table option (`compression` and so on) has the same range as the option
//! itself; both come from `options::definitions`.

use super::Compression;
use super::definitions::{
    BATCH_ROWS_DEFAULT, BATCH_ROWS_MIN, CHUNK_ROWS_DEFAULT, CHUNK_ROWS_MAX, LEVEL_DEFAULT, LEVEL_MAX,
    LEVEL_MIN, PACKING_ROWS_DEFAULT, ROWS_MIN, STRIPE_ROWS_DEFAULT, STRIPE_ROWS_MAX,
};
use std::ffi::{CString, c_char, c_void};

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::{pg_guard, pg_sys};

/// The block codec of tables whose option `compression` is not set.
pub static COMPRESSION: GucSetting<Compression> = GucSetting::<Compression>::new(Compression::Zstd);
/// Level of the block codec where the option `compression_level` is not set.
pub static COMPRESSION_LEVEL: GucSetting<i32> = GucSetting::<i32>::new(LEVEL_DEFAULT);
/// Rows of a stripe where the option `stripe_row_limit` is not set.
pub static STRIPE_ROW_LIMIT: GucSetting<i32> = GucSetting::<i32>::new(STRIPE_ROWS_DEFAULT);
/// Rows of a batch where the option `batch_size` is not set.
pub static BATCH_SIZE: GucSetting<i32> = GucSetting::<i32>::new(BATCH_ROWS_DEFAULT);
/// Rows of a chunk where the option `chunk_group_row_limit` is not set.
pub static CHUNK_GROUP_ROW_LIMIT: GucSetting<i32> = GucSetting::<i32>::new(CHUNK_ROWS_DEFAULT);
/// The fewest heap rows that packing in the background makes a stripe of, if the option `packing_rows` is not
/// set.
pub static PACKING_ROWS: GucSetting<i32> = GucSetting::<i32>::new(PACKING_ROWS_DEFAULT);
/// The order of columnar tables that are created without one, as far as they have its columns.
pub static ORDERBY: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);
/// The directory whose files every role may name. None, or empty: there is none.
pub static FILES_DIRECTORY: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);
/// Whether queries find the options of columnar tables in pg_class.
pub static SHOW_OPTIONS: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether the planner may read columnar tables through our own scan node.
pub static ENABLE_SCAN: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether the planner may hand parts of plans to the vectorised executor.
pub static ENABLE_VECTORISED: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether the planner may read heap tables through their columnstore indexes.
pub static ENABLE_COLUMNSTORE: GucSetting<bool> = GucSetting::<bool>::new(true);
/// The fewest rows of columnar tables below a part of a plan for which the vectorised executor is started.
static VECTORISED_MIN_ROWS: GucSetting<i32> = GucSetting::<i32>::new(5_000);
/// Most threads that work on one query, the backend's own among them.
pub static MAX_THREADS: GucSetting<i32> = GucSetting::<i32>::new(8);

/// A part of a plan with fewer rows of columnar tables below it is left to the server's executor, which
/// starts sooner.
pub fn vectorised_min_rows() -> f64 {
    f64::from(VECTORISED_MIN_ROWS.get())
}

/// Defines the settings of tables, the planner and the executor.
///
/// # Safety
/// Call it from `_PG_init`, on the main thread, once per process.
pub unsafe fn register() {
    GucRegistry::define_enum_guc(
        c"colonnade.compression",
        c"Block codec of columnar tables that do not set the option compression.",
        c"A chunk is compressed with it where that still gains over its encoding.",
        &COMPRESSION,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"colonnade.compression_level",
        c"Level of the block codec of columnar tables that do not set the option compression_level.",
        c"Higher is smaller and slower; only zstd has levels.",
        &COMPRESSION_LEVEL,
        LEVEL_MIN,
        LEVEL_MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"colonnade.stripe_row_limit",
        c"Largest number of rows of a stripe of columnar tables that do not set the option stripe_row_limit.",
        c"A stripe also ends when it reaches its limit in bytes.",
        &STRIPE_ROW_LIMIT,
        ROWS_MIN,
        STRIPE_ROWS_MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"colonnade.batch_size",
        c"Largest number of rows of a batch of rowcompress tables that do not set the option batch_size.",
        c"A batch also ends when it reaches its limit in bytes.",
        &BATCH_SIZE,
        BATCH_ROWS_MIN,
        STRIPE_ROWS_MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"colonnade.chunk_group_row_limit",
        c"Largest number of rows of a chunk of columnar tables that do not set the option chunk_group_row_limit.",
        c"Never more than the stripe has.",
        &CHUNK_GROUP_ROW_LIMIT,
        ROWS_MIN,
        CHUNK_ROWS_MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"colonnade.packing_rows",
        c"Fewest heap rows that packing in the background makes a stripe of, in tables that do not set the option packing_rows.",
        c"Rows count once every running transaction sees them and nobody has locked them.",
        &PACKING_ROWS,
        1,
        i32::MAX,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"colonnade.orderby",
        c"Option orderby of columnar tables that are created without it.",
        c"Columns that a table does not have are left out. It becomes the table's own option, so changing the setting changes no table that exists.",
        &ORDERBY,
        GucContext::Userset,
        GucFlags::default(),
    );
    // SAFETY: the hook looks at its argument alone.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"colonnade.files_directory",
            c"Directory whose files every role may name for foreign tables and COPY of Parquet.",
            c"Empty: only roles with the privileges of pg_read_server_files and pg_write_server_files name files.",
            &FILES_DIRECTORY,
            GucContext::Sighup,
            GucFlags::default(),
            Some(is_directory_name),
            None,
            None,
        );
    }
    GucRegistry::define_bool_guc(
        c"colonnade.show_options",
        c"Shows the options of columnar tables in pg_class.",
        c"Off for pg_dump (PGOPTIONS), its dump can be restored on a server without the extension.",
        &SHOW_OPTIONS,
        GucContext::Backend,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"colonnade.enable_scan",
        c"Enables the planner's use of Colonnade's scan node.",
        c"When off, columnar tables are read through the server's own scan nodes.",
        &ENABLE_SCAN,
        GucContext::Userset,
        GucFlags::EXPLAIN,
    );
    GucRegistry::define_bool_guc(
        c"colonnade.enable_vectorised",
        c"Enables the planner's use of the vectorised executor.",
        c"When off, everything above the scans of tables is run by the server's own executor.",
        &ENABLE_VECTORISED,
        GucContext::Userset,
        GucFlags::EXPLAIN,
    );
    GucRegistry::define_bool_guc(
        c"colonnade.enable_columnstore_index",
        c"Enables the planner's use of columnstore indexes.",
        c"When off, tables that have one are read from the heap.",
        &ENABLE_COLUMNSTORE,
        GucContext::Userset,
        GucFlags::EXPLAIN,
    );
    GucRegistry::define_int_guc(
        c"colonnade.vectorised_min_rows",
        c"Fewest rows of columnar tables for which the planner uses the vectorised executor.",
        c"Below it the server's own executor starts sooner than ours is faster.",
        &VECTORISED_MIN_ROWS,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::EXPLAIN,
    );
    GucRegistry::define_int_guc(
        c"colonnade.max_threads",
        c"Largest number of threads that work on one query, the session's own among them.",
        c"A query uses as many besides its own as max_parallel_workers_per_gather allows; all queries together as many as max_parallel_workers.",
        &MAX_THREADS,
        1,
        256,
        GucContext::Userset,
        GucFlags::EXPLAIN,
    );
}

/// Refuses a directory that is no absolute path. Nothing else is looked at: it may be made later.
#[pg_guard]
unsafe extern "C-unwind" fn is_directory_name(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the server's place of a string, which may be null.
    unsafe {
        let value = *value;
        if value.is_null() || *value == 0 || *value == b'/' as c_char {
            return true;
        }
        pg_sys::GUC_check_errdetail_string = pg_sys::pstrdup(c"It has to be an absolute path.".as_ptr());
        false
    }
}

/// Reserves the prefix, so that a misspelt `colonnade.x` is an error. Call it when all settings are defined.
pub fn reserve_prefix() {
    // SAFETY: a NUL-terminated constant; the server copies it.
    unsafe { pgrx::pg_sys::MarkGUCPrefixReserved(c"colonnade".as_ptr()) };
}
