//! BRIN indexes on colcompress tables: they may exist, and no query uses them.
//!
//! A BRIN index keeps a summary for every range of physical blocks. The server's own code keeps it true for
//! hot rows. Rows in stripes have no physical blocks, and stripes and chunks have such summaries themselves.
//! Such indexes are allowed so that a partitioned table whose heap partitions have BRIN indexes can have
//! columnar partitions, and so that migrations which make one run.
//!
//! `table_am::index::uses` hides them from the planner, and `table_am::index::build` gives them hot rows
//! only. This file tells a session that makes one.

use super::access_method;
use super::catalog::table_name;
use super::report::Refusal;
use pgrx::PgLogLevel;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Oid};

/// Called when any statement has just written an index's catalog rows. Nothing is said about indexes of
/// partitions.
pub fn index_created(index: Oid) {
    // The rows are not visible to the catalog caches before the next command.
    let Some((table, method)) = index_of_this_command(index) else { return };
    if access_method::method_is(method, c"brin") && access_method::is_our_table(table) && !is_partition(table)
    {
        Refusal::new(
            Code::ERRCODE_SUCCESSFUL_COMPLETION,
            format!("queries of columnar table \"{}\" do not use BRIN indexes", table_name(table)),
        )
        .detail("Stripes and chunks keep minimum and maximum of every column, as a BRIN index does of ranges of pages.")
        .hint("Set the table's option orderby to the columns that queries restrict. For single rows use a btree index.")
        .send(PgLogLevel::NOTICE);
    }
}

fn is_partition(table: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_rel_relispartition(table) }
}

/// Table and access method of an index, also if the current command has written its catalog rows.
fn index_of_this_command(index: Oid) -> Option<(Oid, Oid)> {
    let table = find_by_oid(
        pg_sys::IndexRelationId,
        pg_sys::IndexRelidIndexId.into(),
        pg_sys::Anum_pg_index_indexrelid as i16,
        index,
        // SAFETY: a row of that catalog.
        |tuple| unsafe { (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_index>(tuple)).indrelid },
    )?;
    let method = find_by_oid(
        pg_sys::RelationRelationId,
        pg_sys::ClassOidIndexId.into(),
        pg_sys::Anum_pg_class_oid as i16,
        index,
        // SAFETY: a row of that catalog.
        |tuple| unsafe { (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_class>(tuple)).relam },
    )?;
    Some((table, method))
}

/// What `take` makes of the one row of a catalog whose key is `key`, read by SnapshotSelf.
fn find_by_oid(
    catalog: Oid,
    catalog_index: Oid,
    key_column: i16,
    key: Oid,
    take: impl FnOnce(pg_sys::HeapTuple) -> Oid,
) -> Option<Oid> {
    let lock = pg_sys::AccessShareLock as i32;
    let mut condition = pg_sys::ScanKeyData::default();
    // SAFETY: a catalog and its index, open while they are read; the row lives as long as the scan.
    unsafe {
        let relation = pg_sys::table_open(catalog, lock);
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
}
