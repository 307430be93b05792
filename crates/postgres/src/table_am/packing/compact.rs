//! Moving a stripe to empty pages nearer to the beginning of the file, or out of their way.
//!
//! Called by `tidy` where a large part of the file is empty, so that its end can be cut off. Where no run of
//! empty pages is long enough for a stripe at the end, the stripe behind the longest one is moved to the end,
//! which makes one run of both; a stripe that comes to fill its beginning leaves the longest one further on,
//! and so it gathers what is empty on its way. The stripe's bytes are copied to a run of empty pages, and the
//! directory gets a new row with the same row numbers in place of the old one: index entries, proxies and
//! tombstones stay as they are, and what a backend keeps of the stripe stays right. Only a stripe that every
//! snapshot sees is moved, while all others are kept from locking or changing its rows; snapshots of before
//! go on reading the old pages, which are freed when no version of a directory row names them (protocol point
//! 7). Invariant: for every snapshot the stripe is there once.

use pgrx::pg_sys;

use super::settings;
use super::statistics::{self, Sum};
use crate::host::error;
use crate::host::relation::Open;
use crate::storage::change::stripe_lock::{self, Exclusion};
use crate::storage::directory::StripeEntry;
use crate::storage::directory::age::Age;
use crate::storage::directory::{self, entries};
use crate::storage::file::metapage;
use crate::storage::file::pages::{self, BlockRun, PageOwner};
use crate::storage::space::{emptied_pages, runs};

/// A stripe is moved out of the way for one in so many of its own pages.
const WORTH: u32 = 16;

/// Moves the last stripe that ends beyond block `keep` and for which there are empty pages before it; false
/// where there is none. The caller holds ShareUpdateExclusiveLock.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock, and the transaction has an active snapshot.
pub(super) unsafe fn step(rel: Open, keep: u32) -> bool {
    // SAFETY: the lock and the snapshot are promised.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel).filter(|_| settings::moves_stripes()) else {
            return false;
        };
        let oldest = rel.oldest_xmin();
        let mut stripes = entries::present(storage_id);
        stripes.retain(|(entry, _)| {
            // Since it was moved last, too: who looks for it twice finds it (`entries::find`).
            Age::of(entry.inserter, oldest) == Age::Everybody
                && entry.run.first_block.saturating_add(entry.run.block_count) > keep
        });
        stripes.sort_by_key(|(entry, _)| std::cmp::Reverse(entry.run.first_block));
        // So many in a row there are not, and there are fewer the nearer the beginning.
        let mut too_many = u32::MAX;
        for (entry, _) in stripes {
            if entry.run.block_count >= too_many {
                continue;
            }
            if emptied_pages::find(rel, entry.run.block_count, &(1..entry.run.first_block)).is_none() {
                too_many = entry.run.block_count;
                continue;
            }
            let Some(exclusion) = stripe_lock::exclude(rel, &entry) else { continue };
            // Else somebody has put a row there meanwhile: there is a next time.
            let before = 1..entry.run.first_block;
            let to_front = |bytes: &[u8], owner| runs::write_to_emptied(rel, bytes, owner, &before);
            return copy(rel, &entry, exclusion, to_front);
        }
        false
    }
}

/// Moves the stripe behind the longest run of empty pages to the end of the file; false where that run is
/// short for that, or all that is empty is behind the last stripe. The caller holds ShareUpdateExclusiveLock.
pub(super) unsafe fn widen(rel: Open) -> bool {
    // SAFETY: as `step`.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel).filter(|_| settings::moves_stripes()) else {
            return false;
        };
        let oldest = rel.oldest_xmin();
        let stripes = entries::present(storage_id);
        if stripes.iter().any(|(entry, _)| Age::of(entry.inserter, oldest) != Age::Everybody) {
            // Its old pages may be what is missing.
            return false;
        }
        let end = stripes
            .iter()
            .map(|(entry, _)| entry.run.first_block.saturating_add(entry.run.block_count))
            .max();
        let with_room =
            stripes.into_iter().map(|(entry, _)| (emptied_pages::before(rel, entry.run.first_block), entry));
        let Some((room, entry)) = with_room.max_by_key(|(room, _)| *room) else { return false };
        if room == 0 || room < entry.run.block_count / WORTH {
            return false;
        }
        let Some(exclusion) = stripe_lock::exclude(rel, &entry) else { return false };
        let behind = end.unwrap_or(1)..u32::MAX;
        copy(rel, &entry, exclusion, |bytes, owner| {
            runs::write_to_emptied(rel, bytes, owner, &behind)
                .or_else(|| Some(pages::append_run(rel, bytes, owner)))
        })
    }
}

/// Has `write` write the stripe's bytes to other pages, and makes these its place; false where it cannot.
unsafe fn copy(
    rel: Open,
    entry: &StripeEntry,
    exclusion: Exclusion,
    write: impl FnOnce(&[u8], PageOwner) -> Option<BlockRun>,
) -> bool {
    // SAFETY: others are kept out to the end of the transaction.
    unsafe {
        let command = pg_sys::GetCurrentCommandId(true);
        let mut bytes = Vec::new();
        let strategy = std::ptr::null_mut();
        let range = 0..entry.byte_length;
        if let Err(problem) = pages::read_range(rel, entry.run, entry.expected(), range, strategy, &mut bytes)
        {
            error::raise_stripe(rel, entry.first_row, problem);
        }
        let Some(run) = write(&bytes, PageOwner::current(entry.storage_id, entry.first_row)) else {
            exclusion.end(rel);
            return false;
        };
        directory::relocate(entry, run, command);
        statistics::count(rel, &[(Sum::StripesMoved, 1)]);
        true
    }
}
