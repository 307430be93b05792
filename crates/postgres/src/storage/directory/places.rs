//! Where directory rows lie, so that finding a stripe again takes a look at one tuple instead of a walk over
//! the index.
//!
//! Called by `entries` for all who look a stripe up by one of its rows, and by `stripe_lock`. A place
//! is a hint and nothing more: the tuple there is read anew, held against what is looked for and judged by
//! the caller's snapshot, as the walk would; where it does not answer, the walk does. So nothing has to be
//! invalidated: a rolled-back or deleted row, or another one in its place, is not believed, and a newer
//! version of a row is found by the walk. The stripes that one snapshot sees do not overlap but with other
//! versions of themselves, nor do those that may be changed, so a hint that does answer is as good as any.

use std::cell::RefCell;
use std::collections::BTreeMap;

use pgrx::pg_sys::ItemPointerData;

use super::StripeEntry;
use crate::host::numbers::NumberMap;
use crate::storage::catalog::side_table::{Cursor, SideTable};

/// Places kept, before all are forgotten.
const KEPT: usize = 4096;

#[derive(Default)]
struct Places {
    /// By storage id and first row number: one past the last row, and the TID of the directory row.
    by_row: NumberMap<u64, BTreeMap<u64, (u64, ItemPointerData)>>,
    count: usize,
}

thread_local! {
    static PLACES: RefCell<Places> = RefCell::new(Places::default());
}

/// What `judge` says of the stripe that holds `row`, without its summary, if its place is known.
pub(super) fn find<T>(
    storage_id: u64,
    row: u64,
    judge: impl FnOnce(&Cursor, StripeEntry) -> Option<T>,
) -> Option<T> {
    let place = PLACES.with_borrow(|places| {
        let (_, &(end, place)) = places.by_row.get(&storage_id)?.range(..=row).next_back()?;
        (row < end).then_some(place)
    })?;
    // SAFETY: see `SideTable::at`.
    unsafe {
        SideTable::Stripe.at(place, |cursor| {
            let entry = cursor.entry(false);
            let meant = entry.storage_id == storage_id && !entry.reserved_only && entry.covers(row);
            if meant { judge(cursor, entry) } else { None }
        })
    }
}

/// The first row number of the stripe that holds `row`, if it was met before: it may be gone.
pub fn first_row(storage_id: u64, row: u64) -> Option<u64> {
    PLACES.with_borrow(|places| {
        let (&first, &(end, _)) = places.by_row.get(&storage_id)?.range(..=row).next_back()?;
        (row < end).then_some(first)
    })
}

/// Notes where the row of a stripe was found.
pub(super) fn remember(entry: &StripeEntry, place: ItemPointerData) {
    PLACES.with_borrow_mut(|places| {
        if places.count >= KEPT {
            *places = Places::default();
        }
        let rows = places.by_row.entry(entry.storage_id).or_default();
        if rows.insert(entry.first_row, (entry.end_row(), place)).is_none() {
            places.count += 1;
        }
    });
}
