//! Which stripes a batch joins.
//!
//! Candidates are stripes of which at least one in `WORN` rows is dead, and small ones, of less than half a
//! stripe's rows. The oldest that make one stripe together are taken. What a row's being rewritten costs is
//! paid for: by the dead rows that are left out, or by the growth of its stripe. For the latter the
//! background joins small stripes only where there are several of one size class (a power of four), or where
//! a stripe that is not small any more comes of it: so a row is rewritten for size at most once a class, as
//! in log-structured merging by size tiers. Wide rows fill a stripe by their bytes: how many these are is
//! estimated from a few rows. A stripe that somebody is just changing is left for later. Invariant: every
//! snapshot sees the rows of a stripe that is chosen, dead ones aside.

use pgrx::pg_sys::{self, ItemPointerData, TransactionId};

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

/// One in so many rows is dead in a stripe that is worth rewriting.
const WORN: u32 = 5;
/// Stripes of one batch at most: as many as a transaction locks one by one.
const MOST: usize = 64;
/// A stripe that takes so many bytes in the file is not small, whatever its rows; and no batch reads more.
const MOST_BYTES: u64 = 8 << 20;
/// Rows of a stripe that are looked at to estimate its bytes.
const SAMPLE: u32 = 32;

/// A stripe, and the TID of its row in the directory.
pub(super) struct Chosen {
    pub entry: StripeEntry,
    pub place: ItemPointerData,
    /// Rows that are not dead.
    live: u32,
}

impl Chosen {
    /// Whether it is worth rewriting by itself.
    pub fn is_worn(&self) -> bool {
        (self.entry.row_count - self.live) >= self.entry.row_count.div_ceil(WORN)
    }

    /// Whether every row of it is dead.
    pub const fn is_dead(&self) -> bool {
        self.live == 0
    }

    /// The class of its size.
    const fn class(&self) -> u32 {
        (if self.live == 0 { 0 } else { self.live.ilog2() }) / 2
    }
}

/// The stripes to join, none where it is not worth while. `limit`: rows of a full stripe; `fewest`: how many
/// small ones have to be of one class.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock.
pub(super) unsafe fn choose(
    rel: Open,
    storage_id: u64,
    limit: u32,
    fewest: usize,
    oldest_xmin: TransactionId,
) -> Vec<Chosen> {
    // SAFETY: the lock is promised.
    unsafe {
        let mut candidates = candidates(rel, storage_id, limit, oldest_xmin);
        let largest = (0..=u32::BITS / 2).rev().find(|&class| {
            candidates.iter().filter(|stripe| !stripe.is_worn() && stripe.class() == class).count() >= fewest
        });
        candidates.retain(|stripe| stripe.is_worn() || largest.is_some_and(|class| stripe.class() <= class));
        let mut chosen: Vec<Chosen> = Vec::new();
        let (mut rows, mut bytes) = (0, 0);
        for stripe in candidates {
            pgrx::check_for_interrupts!();
            if stripe.entry.byte_length >= MOST_BYTES && !stripe.is_worn() {
                continue;
            }
            // Not now, if anybody is at work on it.
            let Some(exclusion) = stripe_lock::exclude(rel, &stripe.entry) else { continue };
            exclusion.end(rel);
            let size = estimated_bytes(rel, &stripe.entry);
            if size >= pending_rows::STRIPE_BYTES / 2 && !stripe.is_worn() {
                continue;
            }
            // Half of what fits, as it is an estimate.
            let is_full = rows + stripe.live > limit || bytes + size > pending_rows::STRIPE_BYTES / 2;
            if is_full || chosen.len() == MOST {
                if is_worth_while(&chosen, limit, fewest) {
                    break;
                }
                chosen.clear();
                (rows, bytes) = (0, 0);
            }
            rows += stripe.live;
            bytes += size;
            chosen.push(stripe);
        }
        if !is_worth_while(&chosen, limit, fewest) {
            chosen.clear();
        }
        chosen
    }
}

fn is_worth_while(chosen: &[Chosen], limit: u32, fewest: usize) -> bool {
    let rows: u32 = chosen.iter().map(|stripe| stripe.live).sum();
    chosen.iter().any(Chosen::is_worn) || (chosen.len() > 1 && (chosen.len() >= fewest || rows >= limit / 2))
}

/// Small and worn stripes, the oldest first.
fn candidates(rel: Open, storage_id: u64, limit: u32, oldest_xmin: TransactionId) -> Vec<Chosen> {
    let mut found = seen_by_all(rel, storage_id, oldest_xmin);
    found.retain(|stripe| stripe.is_worn() || stripe.live < limit / 2);
    found
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
        entry.byte_length < MOST_BYTES && estimated_bytes(rel, entry) < pending_rows::STRIPE_BYTES / 4
    };
    stripes.iter().filter(is_small).take(2).count() == 2
}

/// Bytes that the rows of a stripe take in memory, about.
fn estimated_bytes(rel: Open, entry: &StripeEntry) -> usize {
    // SAFETY: the slot holds a row while it is measured.
    unsafe {
        let slot = pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut());
        let mut rows = Rows::new(rel, [entry]);
        let count = entry.row_count.min(SAMPLE);
        let mut columns: Vec<ColumnWriter> =
            ColumnType::of_all(rel.descriptor()).into_iter().map(ColumnWriter::new).collect();
        for at in 0..count {
            let position = u64::from(at) * u64::from(entry.row_count) / u64::from(count);
            rows.fetch(tid::cold_tid(entry.first_row + position), slot);
            pg_sys::slot_getallattrs(slot);
            columns.iter_mut().enumerate().for_each(|(index, column)| column.push(&[slot], index));
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        let bytes: usize = columns.iter().map(ColumnWriter::bytes).sum();
        bytes * entry.row_count as usize / count.max(1) as usize
    }
}
