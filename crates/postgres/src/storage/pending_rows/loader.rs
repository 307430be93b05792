//! Loading a table that is being rewritten: all rows become cold, in the order they come or sorted as a
//! whole.
//!
//! Used by `table_am::rewrite::merge` and by whoever else fills a new file for a table that already exists
//! (VACUUM FULL, CLUSTER). Unlike a command's set it is not registered: nobody reads a file that is not the
//! table's yet. Invariant: the table is complete when [`Loader::finish`] has returned; an ERROR before that
//! leaves pages without directory rows, which nobody sees.

use pgrx::pg_sys::{self, CommandId, TupleTableSlot};

use super::set::{PendingRows, Placement};
use super::{Key, settings};
use crate::host::relation::Open;
use crate::storage::directory::age::Age;

/// In which order rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadOrder {
    /// As they come.
    AsGiven,
    /// By the table's option `orderby`, all of them; as they come if it is not set.
    Sorted,
}

/// Fills one relation with stripes.
pub struct Loader {
    set: PendingRows,
}

impl Loader {
    /// A loader for `rel`, whose rows will be visible as `age` says, in this transaction to commands after
    /// `command`. `rel` is the relation that is written; options are read from it.
    ///
    /// # Safety
    /// `rel` is locked so that everybody else is kept out.
    pub unsafe fn new(rel: Open, order: LoadOrder, command: CommandId, age: Age) -> Self {
        // SAFETY: the lock is promised.
        unsafe {
            let key = Key { table: rel.oid(), subtransaction: pg_sys::GetCurrentSubTransactionId(), command };
            Self { set: PendingRows::for_rewrite(rel, key, order == LoadOrder::Sorted, age) }
        }
    }

    /// Adds rows.
    ///
    /// # Safety
    /// `rel` is the loader's relation, and the slots have its row type.
    pub unsafe fn push(&mut self, rel: Open, slots: &[*mut TupleTableSlot]) {
        // SAFETY: rel is the loader's relation; slots have its row type.
        unsafe {
            self.set.push(rel, slots);
            if self.set.bytes() > settings::load_memory_bytes() {
                self.set.close(rel, true);
            }
        }
    }

    /// Writes what is left.
    pub fn finish(mut self, rel: Open) {
        debug_assert!(self.set.placement() == Placement::Deferred);
        self.set.finish(rel);
    }
}
