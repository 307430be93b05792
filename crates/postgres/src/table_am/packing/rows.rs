//! The rows of a batch, by the TIDs that they have before they are moved.
//!
//! Used by `order`, `relocate`, `join` and the code that samples rows. Invariant: a hot row that this
//! transaction's snapshot sees stays where it is, and so do the stripes that this transaction is going to
//! replace.

use std::collections::BTreeMap;

use pgrx::pg_sys::{self, ItemPointerData, TupleTableSlot};

use crate::host::error;
use crate::host::heap_am::heap_guarded;
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::file::tid;
use crate::table_am::read::cold_fetch::ColdFetch;

/// Fetches rows of a table. Each stripe has a cursor of its own, because a sorted batch goes to and fro
/// between several stripes.
pub(super) struct Rows<'a> {
    rel: Open<'a>,
    /// By first row number.
    stripes: BTreeMap<u64, (StripeEntry, ColdFetch)>,
}

impl<'a> Rows<'a> {
    /// A source of the table's hot rows and of the rows of these stripes.
    ///
    /// # Safety
    /// `rel` stays open while this is used.
    pub unsafe fn new<'b>(rel: Open<'a>, stripes: impl IntoIterator<Item = &'b StripeEntry>) -> Self {
        // SAFETY: the table stays open, as is promised.
        let with_cursor =
            |entry: &StripeEntry| unsafe { (entry.first_row, (entry.clone(), ColdFetch::new(rel))) };
        Self { rel, stripes: stripes.into_iter().map(with_cursor).collect() }
    }

    /// Stores a row, alive or not, into a slot of the table. It stays there until the next row is fetched.
    pub unsafe fn fetch(&mut self, mut at: ItemPointerData, slot: *mut TupleTableSlot) {
        // SAFETY: the slot has the table's row type; the table is open, as `new` says.
        let found = unsafe {
            if let Some(row) = tid::row_of(at) {
                let stripe =
                    self.stripes.range_mut(..=row).next_back().filter(|(_, (entry, _))| entry.covers(row));
                stripe.map(|(_, (entry, cursor))| cursor.fetch(entry, row, slot)).is_some()
            } else {
                let any = &raw mut pg_sys::SnapshotAnyData;
                heap_guarded!(tuple_fetch_row_version(self.rel.as_ptr(), &raw mut at, any, slot))
            }
        };
        if !found {
            error::internal("a row that is to be moved is not there any more");
        }
    }
}
