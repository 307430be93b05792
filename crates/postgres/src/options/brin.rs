//! No BRIN indexes on colcompress tables.
//!
//! A BRIN index keeps a summary for every range of block numbers; cold rows live from block 2^31 on, so it
//! would have to fill a map of two thousand million blocks first. Stripes carry such summaries themselves.

use super::access_method;
use super::catalog::table_name;
use super::report::Refusal;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Oid};

/// The error, naming the table.
pub fn refusal(table: &str) -> Refusal {
    Refusal::new(
        Code::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("colcompress table \"{table}\" cannot have BRIN indexes"),
    )
    .hint("Stripes and chunks keep minimum and maximum of every column: option orderby does what a BRIN index would. For single rows use a btree index.")
}

/// An index's catalog rows have just been written, by whatever statement.
pub unsafe fn index_created(index: Oid) {
    // The rows are not visible to the catalog caches before the next command.
    let Some((table, method)) = index_of_this_command(index) else { return };
    if access_method::method_is(method, c"brin") && access_method::is_our_table(table) {
        refusal(&table_name(table)).raise();
    }
}

/// Table and access method of an index, its rows of the current command included.
unsafe fn index_of_this_command(index: Oid) -> Option<(Oid, Oid)> {
    let table = find_by_oid(
        pg_sys::IndexRelationId,
        pg_sys::IndexRelidIndexId.into(),
        pg_sys::Anum_pg_index_indexrelid as i16,
        index,
        |tuple| (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_index>(tuple)).indrelid,
    )?;
    let method = find_by_oid(
        pg_sys::RelationRelationId,
        pg_sys::ClassOidIndexId.into(),
        pg_sys::Anum_pg_class_oid as i16,
        index,
        |tuple| (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_class>(tuple)).relam,
    )?;
    Some((table, method))
}

/// What `take` says of the one row of a catalog whose key is `key`, seen by SnapshotSelf.
unsafe fn find_by_oid(
    catalog: Oid,
    catalog_index: Oid,
    key_column: i16,
    key: Oid,
    take: impl FnOnce(pg_sys::HeapTuple) -> Oid,
) -> Option<Oid> {
    let lock = pg_sys::AccessShareLock as i32;
    let relation = pg_sys::table_open(catalog, lock);
    let mut condition = pg_sys::ScanKeyData::default();
    pg_sys::ScanKeyInit(
        &mut condition,
        key_column,
        pg_sys::BTEqualStrategyNumber as u16,
        pg_sys::F_OIDEQ.into(),
        key.into(),
    );
    let scan = pg_sys::systable_beginscan(
        relation,
        catalog_index,
        true,
        &raw mut pg_sys::SnapshotSelfData,
        1,
        &mut condition,
    );
    let tuple = pg_sys::systable_getnext(scan);
    let found = if tuple.is_null() { None } else { Some(take(tuple)) };
    pg_sys::systable_endscan(scan);
    pg_sys::table_close(relation, lock);
    found
}
