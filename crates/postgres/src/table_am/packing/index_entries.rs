//! Index entries of packed rows.
//!
//! Called by `relocate` and `join`. Every index that takes insertions gets an entry for the row's new TID.
//! There is no unique check, because the row has passed it under its old TID. VACUUM takes the old entries
//! away as usual.
//!
//! Invariant: nothing here waits for another transaction.

use pgrx::pg_sys::{self, IndexInfo, ItemPointerData, MemoryContext, TupleTableSlot};

use crate::compat;
use crate::host::relation::Open;
use crate::table_am::index::rows::IndexRows;

struct Index<'a> {
    rel: Open<'a>,
    info: *mut IndexInfo,
    rows: IndexRows,
}

/// Which indexes of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    All,
    /// Unique indexes, which are asked whether a key is there.
    Unique,
    /// The others.
    Plain,
}

impl Which {
    fn includes(self, index: Open) -> bool {
        // SAFETY: the index is open.
        let (unique, method) = unsafe { ((*(*index.as_ptr()).rd_index).indisunique, index.access_method()) };
        // A BRIN index has no entries for cold rows.
        method != pg_sys::BRIN_AM_OID && (self == Self::All || unique == (self == Self::Unique))
    }
}

/// The indexes of a table, open for insertion.
pub(super) struct Entries<'a> {
    rel: Open<'a>,
    indexes: Vec<Index<'a>>,
    /// Memory for the entries of one row.
    context: MemoryContext,
}

impl<'a> Entries<'a> {
    /// Opens the indexes, for rows that come in `slot`.
    ///
    /// # Safety
    /// `rel` is locked with ShareUpdateExclusiveLock.
    pub unsafe fn new(rel: Open<'a>, which: Which, slot: *mut TupleTableSlot) -> Self {
        // SAFETY: the lock is promised, so its indexes stay.
        unsafe {
            let open = |index: Open<'a>| {
                let info = pg_sys::BuildIndexInfo(index.as_ptr());
                Index { rel: index, info, rows: IndexRows::of_slot(slot, info) }
            };
            let context = pg_sys::AllocSetContextCreateInternal(
                pg_sys::CurrentMemoryContext,
                c"colonnade packed row".as_ptr(),
                0,
                8 * 1024,
                8 * 1024 * 1024,
            );
            let (meant, others): (Vec<_>, Vec<_>) = rel
                .open_indexes(pg_sys::RowExclusiveLock)
                .into_iter()
                .partition(|&index| which.includes(index));
            others.into_iter().for_each(|index| pg_sys::index_close(index.as_ptr(), pg_sys::NoLock as i32));
            let indexes = meant.into_iter().map(open).collect();
            Self { rel, indexes, context }
        }
    }

    /// Whether there is nothing to do.
    pub const fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    /// Makes the entries of the row in the slot, which is going to be at `place`.
    pub unsafe fn add(&mut self, mut place: ItemPointerData) {
        // SAFETY: the slot holds the row.
        unsafe {
            let before = pg_sys::MemoryContextSwitchTo(self.context);
            for index in &mut self.indexes {
                if !(*index.info).ii_ReadyForInserts || !index.rows.form() {
                    continue;
                }
                pg_sys::index_insert(
                    index.rel.as_ptr(),
                    index.rows.values.as_mut_ptr(),
                    index.rows.nulls.as_mut_ptr(),
                    &raw mut place,
                    self.rel.as_ptr(),
                    pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO,
                    false,
                    index.info,
                );
            }
            pg_sys::MemoryContextSwitchTo(before);
            pg_sys::MemoryContextReset(self.context);
        }
    }

    /// Whether the entries depend on functions or conditions of the owner's, which may fail.
    pub fn may_fail(&self) -> bool {
        // SAFETY: the indexes are open.
        self.indexes.iter().any(|index| unsafe {
            !(*index.info).ii_Expressions.is_null() || !(*index.info).ii_Predicate.is_null()
        })
    }

    /// Computes the entries of the row in the slot.
    pub unsafe fn compute(&mut self) {
        // SAFETY: the slot holds the row.
        unsafe {
            let before = pg_sys::MemoryContextSwitchTo(self.context);
            for index in &mut self.indexes {
                index.rows.form();
            }
            pg_sys::MemoryContextSwitchTo(before);
            pg_sys::MemoryContextReset(self.context);
        }
    }

    /// Closes the indexes; their locks stay.
    pub unsafe fn finish(self) {
        // SAFETY: opened by `new`.
        unsafe {
            for index in self.indexes {
                compat::end_insertions(index.rel.as_ptr(), index.info);
                index.rows.release();
                pg_sys::index_close(index.rel.as_ptr(), pg_sys::NoLock as i32);
            }
            pg_sys::MemoryContextDelete(self.context);
        }
    }
}

/// How many unique indexes the table has.
pub(super) fn unique_indexes(rel: Open) -> usize {
    rel.count_indexes(|index| index.indisunique)
}

/// Whether the table has an exclusion constraint. Its check scans the index without holding a page. So the
/// check could look for the new entry before it is made, and at the old row after it is gone, and miss both.
/// (A unique index is checked under the lock of its page.)
pub(super) fn has_exclusion(rel: Open) -> bool {
    rel.count_indexes(|index| index.indisexclusion) > 0
}
