//! The value of a column in rows that are older than the column, of any table of ours.
//!
//! For its own tables the server keeps such a value with the row type. For foreign tables it keeps none, so
//! `engine.column_file_default` does: the bytes of the value as the server holds it, as they are in stripes.
//! Text would not do: names that it has may change. `fdw::statements` writes them for ADD COLUMN.

use pgrx::pg_sys::{self, Datum, Oid};

use crate::convert::{missing_value, varlena};
use crate::host::relation::Open;
use crate::storage::catalog::indexes::insert_row;
use crate::storage::catalog::side_table::{COLUMN_FILE_DEFAULT_COLUMNS, Compare, SideTable};

/// Value and NULL flag of the zero-based column `index`. The Datum lives as long as the relation is open, or
/// as the memory that is current now.
pub fn value(rel: Open, index: usize) -> (Datum, bool) {
    if rel.kind() == pg_sys::RELKIND_FOREIGN_TABLE
        && let Some(attribute) = rel.columns().get(index).filter(|attribute| !attribute.attisdropped)
        && let Some(bytes) = stored(rel.oid(), attribute.attnum)
    {
        return (datum(attribute, &bytes), false);
    }
    // SAFETY: the descriptor of an open relation.
    unsafe { missing_value(rel.descriptor(), index) }
}

/// The bytes of a value that was noted.
pub(super) fn stored(table: Oid, number: i16) -> Option<Vec<u8>> {
    SideTable::ColumnFileDefault.oids_if_present()?;
    let mut found = None;
    let number = u64::try_from(number).ok()?;
    SideTable::ColumnFileDefault.walk(
        table.to_u32().into(),
        Some((Compare::Equal, number)),
        false,
        |cursor| {
            // SAFETY: a row of the catalog, whose page is pinned; its third column is a bytea.
            unsafe {
                if cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                    found = Some(varlena::bytes_of(cursor.value(3)));
                }
            }
            found.is_none()
        },
    );
    found
}

/// Notes what older rows have in a column of a foreign table.
///
/// # Safety
/// A value of the column that is not NULL. The caller holds AccessExclusiveLock on the table.
pub unsafe fn note(table: Oid, attribute: &pg_sys::FormData_pg_attribute, value: Datum) {
    // SAFETY: the caller's promise; the catalog's columns.
    unsafe {
        let values: [_; COLUMN_FILE_DEFAULT_COLUMNS] = [
            Datum::from(i64::from(table.to_u32())),
            Datum::from(i64::from(attribute.attnum)),
            varlena::allocate(&bytes_of(attribute, value)),
        ];
        insert_row(SideTable::ColumnFileDefault, values, 2, pg_sys::GetCurrentCommandId(true));
    }
}

/// The bytes of a value as the server holds it.
unsafe fn bytes_of(attribute: &pg_sys::FormData_pg_attribute, value: Datum) -> Vec<u8> {
    // SAFETY: the caller's value of this type.
    unsafe {
        match attribute.attlen {
            _ if attribute.attbyval => value.value().to_le_bytes().to_vec(),
            -1 => varlena::bytes_of(value),
            -2 => std::ffi::CStr::from_ptr(value.cast_mut_ptr()).to_bytes().to_vec(),
            length => {
                let length = usize::try_from(length).unwrap_or(0);
                std::slice::from_raw_parts(value.cast_mut_ptr::<u8>(), length).to_vec()
            }
        }
    }
}

/// The value again, in the current memory.
fn datum(attribute: &pg_sys::FormData_pg_attribute, bytes: &[u8]) -> Datum {
    if attribute.attbyval {
        let mut word = [0; size_of::<usize>()];
        word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        return Datum::from(usize::from_le_bytes(word));
    }
    if attribute.attlen == -1 {
        return varlena::allocate(bytes);
    }
    // SAFETY: room for the bytes and a zero byte behind them.
    unsafe {
        let place = pg_sys::palloc0(bytes.len() + 1).cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        Datum::from(place)
    }
}
