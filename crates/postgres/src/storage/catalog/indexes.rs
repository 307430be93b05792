//! The indexes of a catalog beside the users' tables, open for insertion.
//!
//! Used by all code that writes rows of a `SideTable`. Each ready index with the same columns as the
//! catalog's own gets an entry. REINDEX CONCURRENTLY makes such an index beside the own one. It takes its
//! place later, and has to have the rows that came meanwhile.
//!
//! Invariant: the catalog is locked for writing before its indexes are listed, and to the end of the
//! transaction. So a session that builds an index waits for the rows that are not entered into it.

use std::cell::Cell;

use pgrx::pg_sys::{self, CommandId, Datum, HeapTuple, IndexInfo, ItemPointerData};

use super::generation;
use super::side_table::SideTable;
use crate::compat;
use crate::host::error;
use crate::host::relation::Open;

/// Columns of the widest key.
const KEYS: usize = 4;

/// The indexes of a catalog, open for insertion.
pub struct Indexes<'a> {
    table: Open<'a>,
    open: Vec<Index<'a>>,
}

struct Index<'a> {
    rel: Open<'a>,
    /// The server's description of the index. Null until the first entry.
    info: Cell<*mut IndexInfo>,
}

/// Inserts one row into a catalog, as command `cid`. The first `keys` of its values are its key.
///
/// # Safety
/// None of the values is NULL, and they are those of the catalog's columns.
pub unsafe fn insert_row<const N: usize>(
    catalog: SideTable,
    mut values: [Datum; N],
    keys: usize,
    cid: CommandId,
) {
    // SAFETY: heap_form_tuple copies the values; both are closed here, or by the server's abort.
    unsafe {
        let table = Open::of(catalog.open(pg_sys::RowExclusiveLock));
        let indexes = Indexes::open(catalog, table);
        let mut nulls = [false; N];
        let tuple = pg_sys::heap_form_tuple(table.descriptor(), values.as_mut_ptr(), nulls.as_mut_ptr());
        indexes.insert(tuple, values.get(..keys).unwrap_or(&values), cid, 0);
        pg_sys::pfree(tuple.cast());
        indexes.close();
        pg_sys::table_close(table.as_ptr(), pg_sys::NoLock as i32);
    }
}

impl<'a> Indexes<'a> {
    /// Opens the indexes of a catalog that is open with RowExclusiveLock.
    pub unsafe fn open(catalog: SideTable, table: Open<'a>) -> Self {
        // SAFETY: the lock on the catalog keeps its indexes.
        unsafe {
            let own = catalog.oids().index;
            let (mut open, others): (Vec<_>, Vec<_>) =
                table.open_indexes(pg_sys::RowExclusiveLock).into_iter().partition(|&rel| rel.oid() == own);
            let Some(&first) = open.first() else {
                error::internal("a catalog has lost its index");
            };
            for other in others {
                // An index that somebody else has made on other columns gets no entries.
                if (*(*other.as_ptr()).rd_index).indisready && key_columns(first) == key_columns(other) {
                    open.push(other);
                } else {
                    pg_sys::index_close(other.as_ptr(), pg_sys::NoLock as i32);
                }
            }
            let open = open.into_iter().map(|rel| Index { rel, info: Cell::new(std::ptr::null_mut()) });
            Self { table, open: open.collect() }
        }
    }

    /// Inserts a row with these keys, a storage id first, as command `cid`. `options` are those of heap's
    /// insertion.
    pub unsafe fn insert(&self, tuple: HeapTuple, keys: &[Datum], cid: CommandId, options: u32) {
        // SAFETY: the tuple has the catalog's columns.
        unsafe { self.insert_uncounted(tuple, keys, cid, options) };
        if let Some(storage_id) = keys.first() {
            generation::changed(storage_id.value() as u64);
        }
    }

    /// `insert` for a row that takes nothing from anybody's view: a live proxy.
    pub unsafe fn insert_uncounted(&self, tuple: HeapTuple, keys: &[Datum], cid: CommandId, options: u32) {
        // SAFETY: the tuple has the catalog's columns.
        unsafe {
            // Logical decoding must not show these rows.
            let options = (options | pg_sys::HEAP_INSERT_NO_LOGICAL) as i32;
            pg_sys::heap_insert(self.table.as_ptr(), tuple, cid, options, std::ptr::null_mut());
            self.enter(keys, (*tuple).t_self);
        }
    }

    /// Makes the entries of a row just written.
    pub unsafe fn enter(&self, keys: &[Datum], mut place: ItemPointerData) {
        // SAFETY: all are open; no key is null. The server may write to the arrays of the values.
        unsafe {
            let (mut values, mut nulls) = ([Datum::null(); KEYS], [false; KEYS]);
            values.iter_mut().zip(keys).for_each(|(value, key)| *value = *key);
            for Index { rel, info } in &self.open {
                if info.get().is_null() {
                    info.set(pg_sys::BuildIndexInfo(rel.as_ptr()));
                }
                let check = match (*(*rel.as_ptr()).rd_index).indisunique {
                    true => pg_sys::IndexUniqueCheck::UNIQUE_CHECK_YES,
                    false => pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO,
                };
                let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
                pg_sys::index_insert(
                    rel.as_ptr(),
                    values,
                    nulls,
                    &raw mut place,
                    self.table.as_ptr(),
                    check,
                    false,
                    info.get(),
                );
            }
        }
    }

    /// Closes the indexes; their locks stay.
    pub unsafe fn close(self) {
        // SAFETY: opened by `open`; what is said of an index is palloc'd.
        unsafe {
            for Index { rel, info } in self.open {
                if !info.get().is_null() {
                    compat::end_insertions(rel.as_ptr(), info.get());
                    pg_sys::pfree(info.get().cast());
                }
                pg_sys::index_close(rel.as_ptr(), pg_sys::NoLock as i32);
            }
        }
    }
}

fn key_columns(index: Open) -> Vec<i16> {
    // SAFETY: the vector has as many entries as it has columns.
    unsafe {
        let form = &*(*index.as_ptr()).rd_index;
        form.indkey.values.as_slice(usize::try_from(form.indnatts).unwrap_or(0)).to_vec()
    }
}
