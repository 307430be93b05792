//! Moving a stripe to empty pages nearer to the beginning of the file, or out of their way.
//!
//! Called by `tidy` when a large part of the file is empty, so that its end can be cut off. There are two
//! moves:
//! - `step` moves a stripe from the end of the file to a run of empty pages nearer to the beginning.
//! - `widen` is for a file without a run that is long enough for a stripe at its end. It moves the stripe
//!   behind the longest run to the end of the file, and its old pages make the run longer. Another stripe
//!   that then fills the beginning of the run leaves the rest of it further on. So empty pages are gathered
//!   on the way.
//!
//! The stripe's bytes are copied to other pages. Its row of the directory is replaced by a new row with the
//! same row numbers. So index entries, proxies and tombstones stay as they are, and whatever a backend keeps
//! of the stripe stays right.
//!
//! A stripe is moved only if every snapshot sees it, and while all others are kept from locking or changing
//! its rows. Older snapshots go on reading the old pages. These are freed once no version of a directory row
//! names them (protocol point 7).
//!
//! Invariant: every snapshot sees the stripe exactly once.

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

/// A stripe is moved out of the way only if the run before it has at least one page for this many of the
/// stripe's own.
const WORTH: u32 = 16;

/// Moves the last stripe that ends beyond block `keep` and has enough empty pages before it. Returns false if
/// there is none. The caller holds ShareUpdateExclusiveLock.
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
            // Everybody must also see its last move, so that a backend that looks for the stripe twice finds
            // it (`entries::find`).
            Age::of(entry.inserter, oldest) == Age::Everybody && entry.run.end() > keep
        });
        stripes.sort_by_key(|(entry, _)| std::cmp::Reverse(entry.run.first_block));
        // No run of this many empty pages was found. A stripe nearer the beginning has even fewer empty pages
        // before it, so a stripe of this length need not be tried again.
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
            // This fails if somebody has put a row there meanwhile. The next call tries again.
            let before = 1..entry.run.first_block;
            let to_front = |bytes: &[u8], owner| runs::write_to_emptied(rel, bytes, owner, &before);
            return copy(rel, &entry, exclusion, to_front);
        }
        false
    }
}

/// Moves the stripe behind the longest run of empty pages to the end of the file. Returns false if that run
/// is too short to be worth it, or if all empty pages are behind the last stripe. The caller holds
/// ShareUpdateExclusiveLock.
pub(super) unsafe fn widen(rel: Open) -> bool {
    // SAFETY: as `step`.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel).filter(|_| settings::moves_stripes()) else {
            return false;
        };
        let oldest = rel.oldest_xmin();
        let stripes = entries::present(storage_id);
        if stripes.iter().any(|(entry, _)| Age::of(entry.inserter, oldest) != Age::Everybody) {
            // A stripe was moved lately, and its old pages may be the ones that are missing.
            return false;
        }
        let end = stripes.iter().map(|(entry, _)| entry.run.end()).max();
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
                .or_else(|| Some(pages::append_run(rel, bytes, owner, pages::FileOf::Table)))
        })
    }
}

/// Has `write` copy the stripe's bytes to other pages, and makes these its place. Returns false if `write`
/// cannot.
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
