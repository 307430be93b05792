//! Which access methods and tables are ours.
//!
//! An access method is ours if its handler returns our routine, whatever it is called in this database.

use pgrx::pg_sys::{self, Oid, TableAmRoutine};
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use crate::host::relation::Open;

static ROUTINE: OnceLock<fn() -> *const TableAmRoutine> = OnceLock::new();

/// Notes where our routine is.
pub fn register(routine: fn() -> *const TableAmRoutine) {
    let _ = ROUTINE.set(routine);
}

/// Is this access method ours?
pub fn is_ours(method: Oid) -> bool {
    let Some(ours) = ROUTINE.get() else { return false };
    if method == pg_sys::InvalidOid || method == pg_sys::HEAP_TABLE_AM_OID {
        return false;
    }
    // SAFETY: a catalog look-up; a tuple that was found has the catalog's columns. The handler of a table
    // access method gives a routine.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::AMOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, method.into());
        if tuple.is_null() {
            return false;
        }
        let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_am>(tuple);
        let (kind, handler) = ((*form).amtype, (*form).amhandler);
        pg_sys::ReleaseSysCache(tuple);
        kind == pg_sys::AMTYPE_TABLE as c_char && pg_sys::GetTableAmRoutine(handler) == ours()
    }
}

/// Is this open relation a table of ours?
pub fn is_colcompress(rel: Open) -> bool {
    let Some(ours) = ROUTINE.get() else { return false };
    // SAFETY: rd_tableam is null or points at a static routine.
    unsafe {
        let routine = (*rel.as_ptr()).rd_tableam;
        !routine.is_null() && std::ptr::eq(routine, ours())
    }
}

/// The access method called `name`, or the default one if none is named; none if there is no such.
fn called(name: Option<&CStr>) -> Oid {
    // SAFETY: the default's name is the server's own, or null while it starts; a catalog look-up.
    unsafe {
        let name = name.map_or(pg_sys::default_table_access_method.cast_const(), CStr::as_ptr);
        // An unknown name is the server's to complain about.
        if name.is_null() { Oid::INVALID } else { pg_sys::get_am_oid(name, true) }
    }
}

/// Is the access method called `name`, or the default one if none is named, ours?
pub fn names_ours(name: Option<&CStr>) -> bool {
    is_ours(called(name))
}

/// Is the access method called `name`, or the default one if none is named, the server's own? Other access
/// methods may have options with the same names as ours.
pub fn names_heap(name: Option<&CStr>) -> bool {
    called(name) == pg_sys::HEAP_TABLE_AM_OID
}

/// Access method and kind of a relation. None if it does not exist.
pub fn method_and_kind(relation: Oid) -> Option<(Oid, u8)> {
    // SAFETY: a catalog look-up; a tuple that was found has the catalog's columns.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, relation.into());
        if tuple.is_null() {
            return None;
        }
        let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_class>(tuple);
        let found = ((*form).relam, (*form).relkind as u8);
        pg_sys::ReleaseSysCache(tuple);
        Some(found)
    }
}

/// Is this a table or materialized view of ours?
pub fn is_our_table(relation: Oid) -> bool {
    method_and_kind(relation).is_some_and(|(method, kind)| has_rows(kind) && is_ours(method))
}

/// May this relation have options of ours? Tables of ours may. A partitioned table keeps them for partitions
/// to come, if it names our access method or none.
pub fn takes_options(relation: Oid) -> bool {
    method_and_kind(relation).is_some_and(|(method, kind)| method_takes_options(method, kind))
}

/// As [`takes_options`], of an access method and a kind of relation.
pub fn method_takes_options(method: Oid, kind: u8) -> bool {
    match is_partitioned(kind) && method == pg_sys::InvalidOid {
        true => is_here(),
        false => (is_partitioned(kind) || has_rows(kind)) && is_ours(method),
    }
}

/// As [`method_takes_options`], of the access method that a statement names.
pub fn named_takes_options(name: Option<&CStr>, kind: u8) -> bool {
    match is_partitioned(kind) && name.is_none() {
        true => is_here(),
        false => names_ours(name),
    }
}

/// Does this database have our access method, under its usual name?
fn is_here() -> bool {
    names_ours(Some(c"colcompress"))
}

/// Is this the kind of a partitioned table?
pub fn is_partitioned(kind: u8) -> bool {
    kind == pg_sys::RELKIND_PARTITIONED_TABLE
}

/// Is this the kind of relation that has a table access method and options?
pub fn has_rows(kind: u8) -> bool {
    kind == pg_sys::RELKIND_RELATION || kind == pg_sys::RELKIND_MATVIEW
}

/// Is this the access method of that name?
pub fn method_is(method: Oid, name: &CStr) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_am_oid(name.as_ptr(), true) == method }
}
