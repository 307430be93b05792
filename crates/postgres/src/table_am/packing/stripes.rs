//! Which stripes a batch joins.
//!
//! `stripe::packing::joining` chooses them by their sizes. Wide rows fill a stripe by their bytes: how many
//! these are is estimated from a few rows. A stripe that somebody is just changing is left for later.
//! Invariant: every snapshot sees the rows of a stripe that is chosen, dead ones aside.

use pgrx::pg_sys::{self, ItemPointerData, TransactionId};
use stripe::packing::joining::{self, Joining, StripeSize};

use super::Wanted;
use super::rows::Rows;
use crate::convert::{ColumnType, ColumnWriter};
use crate::host::relation::Open;
use crate::storage::change::row_proxy::Tombstones;
use crate::storage::change::{row_move, stripe_lock};
use crate::storage::directory::StripeEntry;
use crate::storage::directory::age::Age;
use crate::storage::directory::entries;
use crate::storage::file::tid;
use crate::storage::pending_rows;

/// A stripe, and the TID of its row in the directory.
pub(super) struct Chosen {
    pub entry: StripeEntry,
    pub place: ItemPointerData,
    /// Rows that are not dead.
    live: u32,
}

impl Chosen {
    /// Whether it is worth rewriting by itself.
    pub fn is_worn(&self, min_fill: f64) -> bool {
        self.size().is_worn(min_fill)
    }

    /// Whether every row of it is dead.
    pub const fn is_dead(&self) -> bool {
        self.size().is_dead()
    }

    const fn size(&self) -> StripeSize {
        StripeSize { rows: self.entry.row_count, live: self.live, stored_bytes: self.entry.byte_length }
    }
}

/// Those of some stripes at these places, in the order of `stripes`.
pub(super) fn only(stripes: Vec<Chosen>, places: &[usize]) -> Vec<Chosen> {
    let all = stripes.into_iter().enumerate();
    all.filter_map(|(at, stripe)| places.contains(&at).then_some(stripe)).collect()
}

/// The places of the stripes to join, or none if it is not worth while. `limit`: rows of a full stripe.
/// `wanted`: how many small ones have to be of one class, and which are worn.
pub(super) unsafe fn choose(rel: Open, stripes: &[Chosen], limit: u32, wanted: Wanted) -> Vec<usize> {
    // SAFETY: rel is open with ShareUpdateExclusiveLock.
    unsafe {
        let sizes: Vec<StripeSize> = stripes.iter().map(Chosen::size).collect();
        let (fewest, min_fill) = (wanted.stripes, wanted.min_fill);
        let joining = Joining { rows: limit, bytes: pending_rows::STRIPE_BYTES, fewest, min_fill };
        joining.choose(&sizes, |at| {
            pgrx::check_for_interrupts!();
            let entry = &stripes[at].entry;
            // A stripe that somebody is at work on is left for later.
            stripe_lock::exclude(rel, entry)?.end(rel);
            Some(estimated_bytes(rel, entry))
        })
    }
}

/// The stripes whose rows every snapshot sees, dead ones aside, the oldest first.
pub(super) fn seen_by_all(rel: Open, storage_id: u64, oldest_xmin: TransactionId) -> Vec<Chosen> {
    // SAFETY: what is dead by now stays dead.
    unsafe {
        let mut tombstones = Tombstones::of_scan(rel, storage_id, &raw mut pg_sys::SnapshotSelfData);
        let mut found = Vec::new();
        for (entry, place) in entries::present(storage_id) {
            let dead = tombstones.among(entry.first_row..entry.end_row()).len();
            let live = entry.row_count.saturating_sub(u32::try_from(dead).unwrap_or(u32::MAX));
            if Age::of(entry.inserter, oldest_xmin) == Age::Everybody
                || row_move::is_mover(storage_id, entry.inserter)
            {
                found.push(Chosen { entry, place, live });
            }
        }
        found
    }
}

/// Whether at least two of these stripes are small in bytes, too.
pub(super) fn can_be_joined(rel: Open, stripes: &[StripeEntry]) -> bool {
    let is_small = |entry: &&StripeEntry| {
        let bytes = || estimated_bytes(rel, entry);
        joining::is_small(entry.byte_length, pending_rows::STRIPE_BYTES, bytes)
    };
    stripes.iter().filter(is_small).take(2).count() == 2
}

/// About how many bytes the rows of a stripe take in memory.
fn estimated_bytes(rel: Open, entry: &StripeEntry) -> usize {
    // SAFETY: the slot holds a row while it is measured.
    unsafe {
        let slot = pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut());
        let mut rows = Rows::new(rel, [entry]);
        let mut columns: Vec<ColumnWriter> =
            ColumnType::of_all(rel.descriptor()).into_iter().map(ColumnWriter::new).collect();
        for position in joining::sample(entry.row_count) {
            rows.fetch(tid::cold_tid(entry.first_row + position), slot);
            pg_sys::slot_getallattrs(slot);
            columns.iter_mut().enumerate().for_each(|(index, column)| column.push(&[slot], index));
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        joining::estimate(entry.row_count, columns.iter().map(ColumnWriter::bytes).sum())
    }
}
