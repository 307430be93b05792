//! Which file a foreign table has, and under which storage id: `engine.column_file`.
//!
//! A table that was never loaded has no row there and no file. A row comes with the first load, in the same
//! transaction, and goes with the table.

use pgrx::pg_sys::{self, Datum, Oid};

use crate::storage::catalog::indexes::insert_row;
use crate::storage::catalog::side_table::{COLUMN_FILE_COLUMNS, SideTable};

/// The storage id of a foreign table, as this transaction sees it now.
pub fn storage_id(table: Oid) -> Option<u64> {
    let mut found = None;
    SideTable::ColumnFile.oids_if_present()?;
    SideTable::ColumnFile.walk(table.to_u32().into(), None, false, |cursor| {
        // SAFETY: a row of the catalog, whose page is pinned.
        unsafe {
            if cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                found = Some(cursor.number(2));
            }
        }
        found.is_none()
    });
    found
}

/// Notes the storage id of a foreign table that has none.
pub(super) fn insert(table: Oid, storage_id: u64) {
    let values: [_; COLUMN_FILE_COLUMNS] = [Datum::from(i64::from(table.to_u32())), Datum::from(storage_id)];
    // SAFETY: the catalog's columns, in a transaction that writes.
    unsafe { insert_row(SideTable::ColumnFile, values, 2, pg_sys::GetCurrentCommandId(true)) }
}

/// Forgets a foreign table that goes.
pub(super) fn delete(table: Oid) {
    // SAFETY: the caller holds AccessExclusiveLock on the table.
    unsafe {
        SideTable::ColumnFile.delete_storage(table.to_u32().into());
        SideTable::ColumnFileDefault.delete_storage(table.to_u32().into());
    }
}
