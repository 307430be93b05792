//! What catalogs say about partitions, collations, functions and aggregates.

use std::ffi::{c_char, c_void};

use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;

use crate::compat::{self, PgLocale};

mod c {
    use pgrx::pg_sys::{List, Oid};
    use std::ffi::c_int;
    unsafe extern "C-unwind" {
        pub fn get_partition_ancestors(table: Oid) -> *mut List;
        pub fn find_all_inheritors(table: Oid, lock: c_int, parents: *mut *mut List) -> *mut List;
    }
}

/// The partitioned tables above a partition, nearest first, as a list of OIDs.
pub unsafe fn partition_ancestors(table: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| c::get_partition_ancestors(table)) }
}

/// A table and all that inherit from it, partitions included, as a list of OIDs. Locks none of them.
pub unsafe fn inheritors(table: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: as above.
    unsafe {
        pg_guard_ffi_boundary(|| c::find_all_inheritors(table, pg_sys::NoLock as i32, std::ptr::null_mut()))
    }
}

/// What orders the text of a collation.
#[derive(Debug, Clone, Copy)]
pub enum Locale {
    /// The C library's locale, null for that of the process.
    C(*mut c_void),
    /// A collator of ICU.
    Icu(*const c_void),
    /// Something else.
    Other,
}

/// What orders the text of a collation.
pub unsafe fn locale(collation: pg_sys::Oid) -> Locale {
    unsafe extern "C-unwind" {
        fn pg_newlocale_from_collation(collation: pg_sys::Oid) -> *mut PgLocale;
    }
    // SAFETY: a call into the server, guarded so that its ERROR unwinds; what it gives lives as long as the
    // process.
    unsafe {
        let locale = pg_guard_ffi_boundary(|| pg_newlocale_from_collation(collation));
        if locale.is_null() {
            return Locale::C(std::ptr::null_mut());
        }
        match (*locale).provider as u8 {
            pg_sys::COLLPROVIDER_LIBC => Locale::C((*locale).locale),
            pg_sys::COLLPROVIDER_ICU => Locale::Icu((*locale).collator),
            _ => Locale::Other,
        }
    }
}

/// Whether the current user may call a function.
pub unsafe fn may_execute(function: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { compat::may_execute(function, pg_sys::GetUserId()) }
}

/// All indexes of a table in the catalog, and whether each is valid. Among them are those that a drop has
/// marked as dead and not removed; `RelationGetIndexList` leaves these out.
pub unsafe fn indexes_of(table: pg_sys::Oid) -> Vec<(pg_sys::Oid, bool)> {
    let lock = pg_sys::AccessShareLock as i32;
    let mut key = pg_sys::ScanKeyData::default();
    let mut found = Vec::new();
    // SAFETY: a catalog and its index, open while they are read; rows live until the next one.
    unsafe {
        let (column, strategy) =
            (pg_sys::Anum_pg_index_indrelid as i16, pg_sys::BTEqualStrategyNumber as u16);
        pg_sys::ScanKeyInit(&raw mut key, column, strategy, pg_sys::F_OIDEQ.into(), table.into());
        let catalog = pg_sys::table_open(pg_sys::IndexRelationId, lock);
        let by_table = pg_sys::IndexIndrelidIndexId.into();
        let scan = pg_sys::systable_beginscan(catalog, by_table, true, std::ptr::null_mut(), 1, &raw mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let form = &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_index>(tuple);
            found.push((form.indexrelid, form.indisvalid));
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
    }
    found
}

/// All relations that use an access method.
pub fn relations_of(method: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let lock = pg_sys::AccessShareLock as i32;
    let mut key = pg_sys::ScanKeyData::default();
    let mut found = Vec::new();
    // SAFETY: a catalog, open while it is read; rows live until the next one.
    unsafe {
        let (column, strategy) = (pg_sys::Anum_pg_class_relam as i16, pg_sys::BTEqualStrategyNumber as u16);
        pg_sys::ScanKeyInit(&raw mut key, column, strategy, pg_sys::F_OIDEQ.into(), method.into());
        let catalog = pg_sys::table_open(pg_sys::RelationRelationId, lock);
        let none = std::ptr::null_mut();
        let scan = pg_sys::systable_beginscan(catalog, pg_sys::InvalidOid, false, none, 1, &raw mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            found.push((*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_class>(tuple)).oid);
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
    }
    found
}

/// How many columns the partition key of a partition's table has. 0 if there is none any more.
pub unsafe fn partition_key_columns(partition: pg_sys::Oid) -> i32 {
    unsafe extern "C-unwind" {
        fn get_partition_parent(relid: pg_sys::Oid, even_if_detached: bool) -> pg_sys::Oid;
    }
    // SAFETY: catalog look-ups; the fixed part of a row of pg_partitioned_table begins with its table, the
    // strategy and the number of columns.
    unsafe {
        let table = pg_guard_ffi_boundary(|| get_partition_parent(partition, true));
        let cache = pg_sys::SysCacheIdentifier::PARTRELID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, table.into());
        if tuple.is_null() {
            return 0;
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<PartitionedTable>();
        let columns = i32::from(row.columns);
        pg_sys::ReleaseSysCache(tuple);
        columns
    }
}

/// The first columns of pg_partitioned_table.
#[repr(C)]
struct PartitionedTable {
    table: pg_sys::Oid,
    strategy: c_char,
    columns: i16,
}

/// Numbers of columns of `pg_aggregate`.
pub mod aggregate_column {
    /// The transition function.
    pub const STEP: i16 = 4;
    /// The final function.
    pub const LAST: i16 = 5;
    /// Whether the final function gets further arguments.
    pub const LAST_EXTRA: i16 = 12;
    /// The initial state.
    pub const INITIAL: i16 = 21;
}

/// Whether two values of one type have the same bytes.
pub unsafe fn same_bytes(one: pg_sys::Datum, other: pg_sys::Datum, by_value: bool, length: i16) -> bool {
    unsafe extern "C-unwind" {
        fn datumIsEqual(
            one: pg_sys::Datum,
            other: pg_sys::Datum,
            by_value: bool,
            length: std::ffi::c_int,
        ) -> bool;
    }
    // SAFETY: a call into the server, guarded so that its ERROR unwinds; the values are of the type that is
    // described.
    unsafe { pg_guard_ffi_boundary(|| datumIsEqual(one, other, by_value, length.into())) }
}
