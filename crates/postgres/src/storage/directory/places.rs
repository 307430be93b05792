//! Where rows of the directory are, so that finding a stripe again takes a look at one tuple instead of a
//! walk over the index.
//!
//! Called by `entries` for all code that looks a stripe up by one of its rows, and by `stripe_lock`.
//!
//! Invariant: a place is a hint and nothing more. The tuple there is read anew, compared with what is looked
//! for, and judged by the caller's snapshot, as the walk would do. If it is not the answer, the walk looks.
//! So nothing has to be invalidated:
//! - A row that was rolled back or deleted, or another row in its place, is not believed.
//! - The walk finds a newer version of a row.
//! - A hint that does answer is as good as any other: the stripes that one snapshot sees overlap only with
//!   other versions of themselves. So do the stripes that may be changed.

use std::cell::RefCell;
use std::collections::BTreeMap;

use pgrx::pg_sys::ItemPointerData;

use super::StripeEntry;
use crate::host::numbers::NumberMap;
use crate::storage::catalog::side_table::{Cursor, SideTable};

/// If there are more places than this, all are forgotten.
const KEPT: usize = 4096;

#[derive(Default)]
struct Places {
    /// By storage id and first row number: one past the stripe's last row, and the TID of its row of the
    /// directory.
    by_row: NumberMap<u64, BTreeMap<u64, (u64, ItemPointerData)>>,
    count: usize,
}

thread_local! {
    static PLACES: RefCell<Places> = RefCell::new(Places::default());
}

/// The answer of `judge` about the stripe that holds `row`, if its place is known. The stripe has no summary.
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

/// The first row number of the stripe that holds `row`, if it was met before. The stripe may be gone.
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
