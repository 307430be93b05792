//! Where rows of the directory are, so that finding a stripe again takes a look at one tuple instead of a
//! walk over the index. If the directory says the same of the table as before, it takes not even that.
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
//!
//! What such a tuple said is kept as well, if it was committed and nobody had deleted it. It holds for every
//! MVCC snapshot that sees its inserter, while the generation is the same (`catalog::generation`).

use std::cell::RefCell;
use std::collections::BTreeMap;

use pgrx::pg_sys::{self, ItemPointerData, Snapshot};

use super::StripeEntry;
use crate::host::numbers::NumberMap;
use crate::storage::catalog::generation::{self, Generation};
use crate::storage::catalog::side_table::{Cursor, SideTable};

/// If there are more places than this, all are forgotten.
const KEPT: usize = 4096;

#[derive(Default)]
struct Places {
    /// By storage id and first row number.
    by_row: NumberMap<u64, BTreeMap<u64, Place>>,
    count: usize,
}

/// What is known of a row of the directory.
struct Place {
    /// One past the stripe's last row.
    end: u64,
    /// The TID of the directory's row.
    at: ItemPointerData,
    /// The stripe, if it was settled in this generation.
    settled: Option<(Generation, StripeEntry)>,
}

impl Places {
    fn find(&self, storage_id: u64, row: u64) -> Option<&Place> {
        let (_, place) = self.by_row.get(&storage_id)?.range(..=row).next_back()?;
        (row < place.end).then_some(place)
    }

    fn find_mut(&mut self, storage_id: u64, row: u64) -> Option<&mut Place> {
        let (_, place) = self.by_row.get_mut(&storage_id)?.range_mut(..=row).next_back()?;
        (row < place.end).then_some(place)
    }
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
    let place = PLACES.with_borrow(|places| places.find(storage_id, row).map(|place| place.at))?;
    let generation = generation::of(storage_id);
    let mut settled = None;
    // SAFETY: see `SideTable::at`.
    let found = unsafe {
        SideTable::Stripe.at(place, |cursor| {
            let entry = cursor.entry(false);
            let meant = entry.storage_id == storage_id && !entry.reserved_only && entry.covers(row);
            if !meant {
                return None;
            }
            if entry.replaced_by == pg_sys::InvalidTransactionId && cursor.is_known_committed() {
                settled = generation.map(|generation| (generation, entry.clone()));
            }
            judge(cursor, entry)
        })
    };
    if settled.is_some() {
        PLACES.with_borrow_mut(|places| {
            if let Some(place) = places.find_mut(storage_id, row) {
                place.settled = settled;
            }
        });
    }
    found
}

/// The stripe that holds `row`, if it is certain that this MVCC snapshot sees it. It has no summary.
///
/// # Safety
/// The snapshot is live.
pub(super) unsafe fn settled(storage_id: u64, row: u64, snapshot: Snapshot) -> Option<StripeEntry> {
    let generation = generation::of(storage_id)?;
    PLACES.with_borrow(|places| {
        let (when, entry) = places.find(storage_id, row)?.settled.as_ref()?;
        // SAFETY: the snapshot is live. A frozen row has the invalid id, which precedes every other.
        let seen = unsafe { pg_sys::TransactionIdPrecedes(entry.inserter, (*snapshot).xmin) };
        (seen && *when == generation && entry.covers(row)).then(|| entry.clone())
    })
}

/// The first row number of the stripe that holds `row`, if it was met before. The stripe may be gone.
pub fn first_row(storage_id: u64, row: u64) -> Option<u64> {
    PLACES.with_borrow(|places| {
        let (&first, place) = places.by_row.get(&storage_id)?.range(..=row).next_back()?;
        (row < place.end).then_some(first)
    })
}

/// Notes where the row of a stripe was found.
pub(super) fn remember(entry: &StripeEntry, place: ItemPointerData) {
    PLACES.with_borrow_mut(|places| {
        if places.count >= KEPT {
            *places = Places::default();
        }
        let rows = places.by_row.entry(entry.storage_id).or_default();
        let place = Place { end: entry.end_row(), at: place, settled: None };
        if rows.insert(entry.first_row, place).is_none() {
            places.count += 1;
        }
    });
}
