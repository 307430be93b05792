//! The foreign data wrapper `parquet_fdw`: foreign tables that read Parquet files.
//!
//! The scan is that of tables (`scan`), whose stripes are the files' row groups. So here is only what the
//! server asks of a wrapper. Nothing is written: the server refuses INSERT, UPDATE and DELETE by itself.

use std::ffi::c_int;
use std::rc::Rc;

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, BlockNumber, Datum, FdwRoutine, FunctionCallInfo, HeapTuple, NodeTag, Oid, PlannerInfo, RelOptInfo,
    Relation,
};

use super::described;
use super::handler::{is_parallel_safe, no_paths};
use super::sample::{Sample, places};
use crate::host::error;
use crate::host::relation::{Open, with_table};
use crate::storage::column_file::BLOCK_BYTES;
use crate::storage::parquet_file::{self, Bytes, KnownFile, WantedColumns};

crate::sql_function!(pg_finfo_colonnade_parquet_fdw_handler);

/// `engine.parquet_fdw_handler()`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_parquet_fdw_handler(_call: FunctionCallInfo) -> Datum {
    // SAFETY: a zeroed routine is what the server's own wrappers start from.
    unsafe {
        let routine = pg_sys::palloc0(size_of::<FdwRoutine>()).cast::<FdwRoutine>();
        *routine = FdwRoutine {
            type_: NodeTag::T_FdwRoutine,
            GetForeignRelSize: Some(estimate),
            GetForeignPaths: Some(no_paths),
            IsForeignScanParallelSafe: Some(is_parallel_safe),
            AnalyzeForeignTable: Some(analyze),
            ImportForeignSchema: Some(described::import),
            ..FdwRoutine::default()
        };
        Datum::from(routine)
    }
}

fn rows_of(files: &[Rc<KnownFile>]) -> u64 {
    files.iter().flat_map(|file| file.footer.group_rows()).fold(0, u64::saturating_add)
}

fn bytes_of(files: &[Rc<KnownFile>]) -> u64 {
    files.iter().map(|file| file.length()).sum()
}

fn pages(bytes: u64) -> BlockNumber {
    u32::try_from(bytes.div_ceil(BLOCK_BYTES)).unwrap_or(u32::MAX)
}

/// `GetForeignRelSize`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn estimate(root: *mut PlannerInfo, rel: *mut RelOptInfo, table: Oid) {
    // SAFETY: the planner's own structs, of a foreign table that is locked.
    unsafe {
        let files = with_table(table, pg_sys::NoLock, parquet_file::of);
        (*rel).tuples = rows_of(&files) as f64;
        (*rel).pages = pages(bytes_of(&files));
        pg_sys::set_baserel_size_estimates(root, rel);
    }
}

/// `AnalyzeForeignTable`.
#[pg_guard]
unsafe extern "C-unwind" fn analyze(
    rel: Relation,
    sample: *mut pg_sys::AcquireSampleRowsFunc,
    total: *mut BlockNumber,
) -> bool {
    // SAFETY: the server's own places; the relation is open.
    unsafe {
        *total = pages(bytes_of(&parquet_file::of(Open::of(rel))));
        *sample = Some(sample_rows);
    }
    true
}

/// Puts up to `wanted` rows into `rows`.
#[pg_guard]
unsafe extern "C-unwind" fn sample_rows(
    rel: Relation,
    _level: c_int,
    rows: *mut HeapTuple,
    wanted: c_int,
    live: *mut f64,
    dead: *mut f64,
) -> c_int {
    // SAFETY: the server's own places, with room for so many rows; the relation is open.
    unsafe {
        let rel = Open::of(rel);
        let (files, columns) = (parquet_file::of(rel), WantedColumns::of(rel));
        let all = rows_of(&files);
        (*live, *dead) = (all as f64, 0.0);
        let files = columns.in_files(files);
        let mut sample = Sample::new(rel, rows, places(all, u64::try_from(wanted).unwrap_or(0)));
        for (file, columns) in &files {
            for (at, count) in file.footer.group_rows().enumerate() {
                let first_row = sample.before();
                let places = sample.places_in_next(count);
                if places.is_empty() {
                    continue;
                }
                let bytes = Bytes(Rc::clone(file));
                let read = file.group(at, columns).and_then(|group| sample.take(&group, &bytes, &places));
                read.unwrap_or_else(|problem| error::raise_stripe(rel, first_row, problem));
            }
        }
        sample.taken()
    }
}
