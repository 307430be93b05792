//! The table of callbacks, what the access method refuses, and which indexes are ours.

use std::ffi::CStr;

use pgrx::pg_guard;
use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::{
    self, Cost, Datum, FunctionCallInfo, IndexAmRoutine, IndexInfo, IndexOptInfo, IndexPath, IndexScanDesc,
    NodeTag, Oid, PlannerInfo, Relation, ScanKey, Selectivity,
};

use super::{build, insert, options, vacuum};
use crate::compat;
use crate::host::relation::Open;
use crate::host::{catalogs, error};
use crate::options as tables;

/// Its name.
pub const NAME: &CStr = c"columnstore";

crate::sql_function!(pg_finfo_columnstore_handler);

/// `engine.columnstore_handler(internal)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn columnstore_handler(_call: FunctionCallInfo) -> Datum {
    // SAFETY: zeroed memory is a routine without callbacks.
    unsafe {
        let routine = pg_sys::palloc0(size_of::<IndexAmRoutine>()).cast::<IndexAmRoutine>();
        *routine = IndexAmRoutine {
            type_: NodeTag::T_IndexAmRoutine,
            amcanmulticol: true,
            amusemaintenanceworkmem: true,
            amkeytype: Oid::INVALID,
            ambuild: Some(build::build),
            ambuildempty: Some(build::build_empty),
            aminsert: Some(insert::insert),
            ambulkdelete: Some(vacuum::bulk_delete),
            amvacuumcleanup: Some(vacuum::cleanup),
            amcostestimate: Some(cost_estimate),
            amoptions: Some(options::parse),
            amvalidate: Some(validate),
            ambeginscan: Some(begin_scan),
            amrescan: Some(rescan),
            amendscan: Some(end_scan),
            ..Default::default()
        };
        compat::is_summarizing(&mut *routine);
        Datum::from(routine as usize)
    }
}

/// The server never makes a path of such an index: no operator is in its operator class.
#[pg_guard]
#[allow(clippy::too_many_arguments, reason = "the server's signature")]
unsafe extern "C-unwind" fn cost_estimate(
    _root: *mut PlannerInfo,
    _path: *mut IndexPath,
    _loops: f64,
    startup: *mut Cost,
    total: *mut Cost,
    selectivity: *mut Selectivity,
    correlation: *mut f64,
    pages: *mut f64,
) {
    // SAFETY: the server's own places.
    unsafe {
        (*startup, *total) = (pg_sys::disable_cost, pg_sys::disable_cost);
        (*selectivity, *correlation, *pages) = (1.0, 0.0, 0.0);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn validate(_class: Oid) -> bool {
    true
}

#[pg_guard]
unsafe extern "C-unwind" fn begin_scan(_index: Relation, _keys: i32, _order: i32) -> IndexScanDesc {
    error::internal("a columnstore index is not scanned by keys")
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(_scan: IndexScanDesc, _keys: ScanKey, _n: i32, _order: ScanKey, _m: i32) {}

#[pg_guard]
unsafe extern "C-unwind" fn end_scan(_scan: IndexScanDesc) {}

/// The access method in this database. Invalid if it is not there.
pub fn oid() -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_am_oid(NAME.as_ptr(), true) }
}

/// Whether an open index is ours.
pub fn is_ours(index: Open) -> bool {
    // SAFETY: an open index has the routine of its access method.
    let routine = unsafe { (*index.as_ptr()).rd_indam.as_ref() };
    routine
        .and_then(|routine| routine.ambuild)
        .is_some_and(|ambuild| ambuild as usize == build::build as *const () as usize)
}

/// Whether all writers tell an open index of their rows, and its copies may be used.
pub fn is_valid(index: Open) -> bool {
    // SAFETY: an open index has its row of pg_index.
    unsafe { (*(*index.as_ptr()).rd_index).indisvalid && (*(*index.as_ptr()).rd_index).indisready }
}

/// Raises an ERROR unless the index is valid.
pub fn expect_valid(index: Open) {
    if !is_valid(index) {
        error::raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("index {} is not valid", index.quoted_name()),
            "CREATE INDEX or REINDEX CONCURRENTLY did not come to its end.",
            "REINDEX the index, or drop it.",
        );
    }
}

/// The valid indexes of a table that use this access method.
pub fn valid_indexes(table: Oid, method: Oid) -> Vec<Oid> {
    // SAFETY: in a transaction.
    let indexes = unsafe { catalogs::indexes_of(table) }.into_iter();
    // The index of a partitioned table has no file.
    let ours = Some((method, pg_sys::RELKIND_INDEX));
    let found = indexes.filter(|&(index, valid)| valid && tables::method_and_kind(index) == ours);
    found.map(|(index, _)| index).collect()
}

/// Whether an index is ours that the planner knows.
pub fn is_planned(index: &IndexOptInfo) -> bool {
    index.amcostestimate.is_some_and(|estimate| estimate as usize == cost_estimate as *const () as usize)
}

/// The columns of an index, by their places in its table.
pub fn attributes(index: Open) -> Vec<usize> {
    // SAFETY: an open index has its row of pg_index, which names as many columns as it says.
    unsafe {
        let form = (*index.as_ptr()).rd_index;
        let count = usize::try_from((*form).indnatts).unwrap_or(0);
        let numbers = (*form).indkey.values.as_slice(count);
        numbers.iter().filter_map(|&number| usize::try_from(number - 1).ok()).collect()
    }
}

/// The access method of a relation. Invalid if there is none of that number.
pub fn method_of(relation: Oid) -> Oid {
    tables::method_and_kind(relation).map_or(Oid::INVALID, |(method, _)| method)
}

/// The table of an index of ours. An ERROR if it is something else.
pub fn table_of(index: Oid) -> Oid {
    // SAFETY: catalog look-ups.
    unsafe {
        let (method, kind) = tables::method_and_kind(index).unwrap_or((Oid::INVALID, 0));
        if kind != pg_sys::RELKIND_INDEX || method == Oid::INVALID || method != oid() {
            let name = pg_sys::get_rel_name(index);
            let name = match name.is_null() {
                true => index.to_u32().to_string(),
                false => CStr::from_ptr(name).to_string_lossy().into_owned(),
            };
            error::raise(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not a columnstore index"),
                "",
                "CREATE INDEX ... USING columnstore makes one. Name the indexes of partitions one by one.",
            );
        }
        pg_sys::IndexGetRelation(index, false)
    }
}

/// Refuses what such an index cannot be.
///
/// # Safety
/// The server's own struct.
pub unsafe fn refuse(heap: Open, index: Open, info: *mut IndexInfo) {
    let cannot = |what: &str, hint: &str| {
        error::not_supported(format!("columnstore index {} cannot {what}", index.quoted_name()), "", hint)
    };
    // SAFETY: the caller's promise.
    unsafe {
        if !(*info).ii_Predicate.is_null() {
            cannot(
                "have a condition",
                "Leave out WHERE: queries leave out chunks by the statistics of each column.",
            );
        }
        if !(*info).ii_Expressions.is_null() {
            cannot("have expressions", "Add a stored generated column, and index that.");
        }
        if tables::is_our_relation(heap) {
            cannot("be made of a columnar table", "The table is stored by column already: drop the index.");
        }
        if (*heap.form()).relam != pg_sys::HEAP_TABLE_AM_OID {
            cannot("be made of a table that is no heap", "");
        }
        if heap.oid().to_u32() < pg_sys::FirstNormalObjectId {
            cannot("be made of a system catalog", "");
        }
    }
}
