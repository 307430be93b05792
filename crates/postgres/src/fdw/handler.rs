//! The callbacks of the wrapper, and the handler that gives them out.
//!
//! Scans are planned elsewhere: `GetForeignPaths` offers nothing, and the path hook, which the server calls
//! right after it, offers our scan node. So the wrapper has no callbacks that run a scan.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FdwRoutine, FunctionCallInfo, NodeTag, Oid, PlannerInfo, RelOptInfo};

use super::{analyze, imported, modify, parquet, size, truncate};
use crate::options::foreign::{self, Wrapper};

/// Has each wrapper known by a callback of its own.
pub fn register() {
    foreign::register([
        (size::estimate as *const () as usize, Wrapper::ColumnFile),
        (parquet::estimate as *const () as usize, Wrapper::Parquet),
    ]);
}

crate::sql_function!(pg_finfo_colonnade_cstore_fdw_handler);

/// `engine.cstore_fdw_handler()`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_cstore_fdw_handler(_call: FunctionCallInfo) -> Datum {
    // SAFETY: a zeroed routine is what the server's own wrappers start from.
    unsafe {
        let routine = pg_sys::palloc0(size_of::<FdwRoutine>()).cast::<FdwRoutine>();
        *routine = FdwRoutine {
            type_: NodeTag::T_FdwRoutine,
            GetForeignRelSize: Some(size::estimate),
            GetForeignPaths: Some(no_paths),
            IsForeignScanParallelSafe: Some(is_parallel_safe),
            PlanForeignModify: Some(modify::plan),
            BeginForeignModify: Some(modify::begin),
            ExecForeignInsert: Some(modify::insert),
            ExecForeignBatchInsert: Some(modify::insert_many),
            GetForeignModifyBatchSize: Some(modify::batch_size),
            BeginForeignInsert: Some(modify::begin_insert),
            IsForeignRelUpdatable: Some(modify::allowed),
            AnalyzeForeignTable: Some(analyze::analyze),
            ExecForeignTruncate: Some(truncate::truncate),
            ImportForeignSchema: Some(imported::import),
            ..FdwRoutine::default()
        };
        Datum::from(routine)
    }
}

/// `GetForeignPaths`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn no_paths(_root: *mut PlannerInfo, _rel: *mut RelOptInfo, _table: Oid) {
}

/// Which rows count is in the catalogs or in the file, and the bytes are in the file: any process can read
/// both.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn is_parallel_safe(
    _root: *mut PlannerInfo,
    _rel: *mut RelOptInfo,
    _entry: *mut pg_sys::RangeTblEntry,
) -> bool {
    true
}
