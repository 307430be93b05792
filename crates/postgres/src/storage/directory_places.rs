//! Where directory rows lie, so that finding a stripe again takes a look at one tuple instead of a walk over the index.
//!
//! Called by `directory_scan` for MVCC snapshots. A place is a hint and nothing more: the tuple there is read anew, held against what is looked for and judged by the caller's snapshot,
//! as the walk would; where it does not answer, the walk does. So nothing has to be invalidated: a rolled-back or deleted row, or another one in its place, is not believed, and a newer
//! version of a row is found by the walk. The stripes that one snapshot sees do not overlap, so a hint that does answer is the only answer.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use pgrx::pg_sys::{ItemPointerData, Snapshot};

use super::directory::StripeEntry;
use super::side_table::SideTable;

/// Places kept, before all are forgotten.
const KEPT: usize = 4096;

#[derive(Default)]
struct Places {
    /// By storage id and first row number: one past the last row, and the TID of the directory row.
    by_row: HashMap<u64, BTreeMap<u64, (u64, ItemPointerData)>>,
    count: usize,
}

thread_local! {
    static PLACES: RefCell<Places> = RefCell::new(Places::default());
}

/// The stripe that holds `row`, if its place is known and `snapshot`, an MVCC one, sees it there; without its summary.
pub(super) unsafe fn find(storage_id: u64, row: u64, snapshot: Snapshot) -> Option<StripeEntry> {
    let place = PLACES.with_borrow(|places| {
        let (_, &(end, place)) = places.by_row.get(&storage_id)?.range(..=row).next_back()?;
        (row < end).then_some(place)
    })?;
    // SAFETY: see `SideTable::at`.
    unsafe {
        SideTable::Stripe.at(place, |cursor| {
            let entry = cursor.entry(false);
            let meant = entry.storage_id == storage_id && !entry.reserved_only && entry.covers(row);
            (meant && cursor.satisfies(snapshot)).then_some(entry)
        })
    }
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
