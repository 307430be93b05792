//! The table of callbacks that the server calls, and the handlers of our access methods, which give it out.
//!
//! Each access method has a table of its own, by which its relations are known. All have the same callbacks.
//!
//! The table starts as a copy of heap's, so that PostgreSQL's own code handles hot rows. Each verb replaces
//! the callbacks that must know about cold rows.

use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys::{Datum, FunctionCallInfo, TableAmRoutine};

use super::change::insert;
use super::change::modify;
use super::index;
use super::maintain::size;
use super::maintain::vacuum;
use super::read::analyze;
use super::read::bitmap;
use super::read::fetch;
use super::read::parallel;
use super::read::sample;
use super::read::scan;
use super::rewrite::cluster;
use super::statements::files;
use crate::compat;
use crate::host::heap_am::heap;
use crate::options::AccessMethod;

struct Routine(TableAmRoutine);
// SAFETY: the routine is written once and only read afterwards; a backend has one thread that calls it.
unsafe impl Send for Routine {}
// SAFETY: the routine is only read once it is written.
unsafe impl Sync for Routine {}

/// The routine of an access method. The relation cache keeps the pointer for the life of the backend.
pub fn routine(method: AccessMethod) -> &'static TableAmRoutine {
    static ROUTINES: OnceLock<[Routine; AccessMethod::ALL.len()]> = OnceLock::new();
    let all = ROUTINES.get_or_init(|| {
        let mut routine = *heap();
        routine.scan_begin = Some(scan::scan_begin);
        routine.scan_end = Some(scan::scan_end);
        routine.scan_rescan = Some(scan::scan_rescan);
        routine.scan_getnextslot = Some(scan::scan_getnextslot);
        routine.scan_set_tidrange = Some(scan::scan_set_tidrange);
        routine.scan_getnextslot_tidrange = Some(scan::scan_getnextslot_tidrange);
        routine.parallelscan_estimate = Some(parallel::parallelscan_estimate);
        routine.parallelscan_initialize = Some(parallel::parallelscan_initialize);
        routine.parallelscan_reinitialize = Some(parallel::parallelscan_reinitialize);
        compat::set_bitmap::<bitmap::Blocks>(&mut routine);
        routine.scan_sample_next_block = Some(sample::next_block);
        routine.scan_sample_next_tuple = Some(sample::next_tuple);
        compat::set_analyze::<analyze::Blocks>(&mut routine);
        routine.scan_analyze_next_tuple = Some(analyze::next_tuple);
        routine.index_fetch_begin = Some(index::fetch::index_fetch_begin);
        routine.index_fetch_tuple = Some(index::fetch::index_fetch_tuple);
        routine.index_fetch_end = Some(index::fetch::index_fetch_end);
        routine.tuple_fetch_row_version = Some(fetch::tuple_fetch_row_version);
        routine.tuple_tid_valid = Some(fetch::tuple_tid_valid);
        routine.tuple_get_latest_tid = Some(fetch::tuple_get_latest_tid);
        routine.tuple_satisfies_snapshot = Some(fetch::tuple_satisfies_snapshot);
        routine.index_delete_tuples = Some(index::delete::index_delete_tuples);
        routine.index_build_range_scan = Some(index::build::index_build_range_scan);
        routine.index_validate_scan = Some(index::validate::index_validate_scan);
        routine.tuple_delete = Some(modify::tuple_delete);
        routine.tuple_update = Some(modify::tuple_update);
        routine.tuple_lock = Some(modify::tuple_lock);
        *compat::set_new_file(&mut routine) = Some(files::set_new_file);
        routine.relation_nontransactional_truncate = Some(files::nontransactional_truncate);
        routine.relation_copy_for_cluster = Some(cluster::copy_for_cluster);
        routine.relation_toast_am = Some(files::toast_am);
        routine.relation_vacuum = Some(vacuum::relation_vacuum);
        routine.relation_estimate_size = Some(size::estimate_size);
        routine.tuple_insert = Some(insert::tuple_insert);
        routine.multi_insert = Some(insert::multi_insert);
        routine.tuple_insert_speculative = Some(insert::tuple_insert_speculative);
        routine.finish_bulk_insert = Some(insert::finish_bulk_insert);
        AccessMethod::ALL.map(|_| Routine(routine))
    });
    &all[method as usize].0
}

crate::sql_function!(pg_finfo_colcompress_handler);

/// `engine.colcompress_handler(internal)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colcompress_handler(_fcinfo: FunctionCallInfo) -> Datum {
    Datum::from(std::ptr::from_ref(routine(AccessMethod::Colcompress)) as usize)
}

crate::sql_function!(pg_finfo_rowcompress_handler);

/// `engine.rowcompress_handler(internal)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn rowcompress_handler(_fcinfo: FunctionCallInfo) -> Datum {
    Datum::from(std::ptr::from_ref(routine(AccessMethod::Rowcompress)) as usize)
}
