//! Loads a table that is being rewritten: all rows become cold, in the order in which they come or sorted as
//! a whole.
//!
//! Used by merge, VACUUM FULL and CLUSTER (`table_am::rewrite`), which fill a new file for a table that
//! already exists. A loader is not registered as a command's pending rows are, because nobody reads a file
//! that is not the table's yet.
//!
//! Invariant: the table is complete when [`Loader::finish`] has returned. An ERROR before that leaves pages
//! without directory rows, which nobody sees.

use pgrx::pg_sys::{self, CommandId, TupleTableSlot};

use super::set::{PendingRows, Placement};
use super::{Key, settings};
use crate::host::relation::Open;
use crate::storage::directory::age::Age;

/// In which order rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadOrder {
    /// In the order in which they come.
    AsGiven,
    /// All of them sorted by the table's option `orderby`, or as they come if it is not set.
    Sorted,
}

/// Fills one relation with stripes.
pub struct Loader {
    set: PendingRows,
}

impl Loader {
    /// A loader for `rel`, the relation that is written and whose options hold. `age` says who will see the
    /// rows. In this transaction commands after `command` see them.
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
