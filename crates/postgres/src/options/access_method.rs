//! Which access methods and tables are ours.
//!
//! An access method is ours if its handler returns a routine of ours, whatever it is called in this database.
//! There is a routine for each [`AccessMethod`]. All have the same callbacks.

use pgrx::pg_sys::{self, Oid, TableAmRoutine};
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use stripe::Layout;

use crate::host::relation::Open;

/// The access methods that we have. They differ in how the rows of a stripe lie, and in their options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessMethod {
    /// `colcompress`: each column of a stripe is stored apart.
    Colcompress,
    /// `rowcompress`: the rows of a stripe are stored in small blocks.
    Rowcompress,
}

impl AccessMethod {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Self; 2] = [Self::Colcompress, Self::Rowcompress];

    /// As written after USING.
    pub const fn name(self) -> &'static CStr {
        match self {
            Self::Colcompress => c"colcompress",
            Self::Rowcompress => c"rowcompress",
        }
    }

    /// How stripes of its tables are written. Every reader reads both layouts.
    pub const fn layout(self) -> Layout {
        match self {
            Self::Colcompress => Layout::Columns,
            Self::Rowcompress => Layout::Blocks,
        }
    }
}

/// Gives the routine of an access method.
type Routine = fn(AccessMethod) -> *const TableAmRoutine;

static ROUTINE: OnceLock<Routine> = OnceLock::new();

/// Notes where our routines are.
pub fn register(routine: Routine) {
    let _ = ROUTINE.set(routine);
}

/// Which of ours has this routine.
fn with_routine(routine: *const TableAmRoutine) -> Option<AccessMethod> {
    let ours = ROUTINE.get()?;
    AccessMethod::ALL.into_iter().find(|&method| std::ptr::eq(routine, ours(method)))
}

/// Which of ours an access method is. None if it is none.
pub fn of_method(method: Oid) -> Option<AccessMethod> {
    if method == pg_sys::InvalidOid || method == pg_sys::HEAP_TABLE_AM_OID {
        return None;
    }
    // SAFETY: a catalog look-up; a tuple that was found has the catalog's columns. The handler of a table
    // access method gives a routine.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::AMOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, method.into());
        if tuple.is_null() {
            return None;
        }
        let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_am>(tuple);
        let (kind, handler) = ((*form).amtype, (*form).amhandler);
        pg_sys::ReleaseSysCache(tuple);
        match kind == pg_sys::AMTYPE_TABLE as c_char {
            true => with_routine(pg_sys::GetTableAmRoutine(handler)),
            false => None,
        }
    }
}

/// Is this access method ours?
pub fn is_ours(method: Oid) -> bool {
    of_method(method).is_some()
}

/// The access method of an open relation, if it is ours.
pub fn of(rel: Open) -> Option<AccessMethod> {
    // SAFETY: rd_tableam is null or points at a static routine.
    let routine = unsafe { (*rel.as_ptr()).rd_tableam };
    if routine.is_null() { None } else { with_routine(routine) }
}

/// Is this open relation a table of ours?
pub fn is_our_relation(rel: Open) -> bool {
    of(rel).is_some()
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

/// Which of ours the access method called `name` is, or the default one if none is named.
pub fn named(name: Option<&CStr>) -> Option<AccessMethod> {
    of_method(called(name))
}

/// Is the access method called `name`, or the default one if none is named, ours?
pub fn names_ours(name: Option<&CStr>) -> bool {
    named(name).is_some()
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

/// Which of ours the access method of a table or materialized view is.
pub fn of_table(relation: Oid) -> Option<AccessMethod> {
    let (method, kind) = method_and_kind(relation)?;
    if has_rows(kind) { of_method(method) } else { None }
}

/// Is this a table or materialized view of ours?
pub fn is_our_table(relation: Oid) -> bool {
    of_table(relation).is_some()
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

/// Does this database have our access methods, under their usual names?
pub fn is_here() -> bool {
    names_ours(Some(AccessMethod::Colcompress.name()))
}

/// The OIDs of our access methods in this database, under their usual names.
pub fn oids() -> Vec<Oid> {
    let oids = AccessMethod::ALL.map(|method| called(Some(method.name())));
    oids.into_iter().filter(|&oid| oid != Oid::INVALID).collect()
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
