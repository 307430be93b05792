//! Moving a stripe to empty pages nearer to the beginning of the file.
//!
//! Called by `tidy` where a large part of the file is empty, so that its end can be cut off. The stripe's bytes are copied to a run of empty pages, and the directory gets a new row with the
//! same row numbers in place of the old one: index entries, proxies and tombstones stay as they are, and what a backend keeps of the stripe stays right. Only a stripe that every snapshot sees is
//! moved, while all others are kept from locking or changing its rows; snapshots of before go on reading the old pages, which are freed when no version of a directory row names
//! them (protocol point 7). Invariant: for every snapshot the stripe is there once.

use pgrx::pg_sys::{self, Relation};

use super::settings;
use crate::host::error;
use crate::storage::directory_age::Age;
use crate::storage::pages::{self, PageOwner};
use crate::storage::{directory, directory_scan, metapage, stripe_lock};

/// Moves the last stripe that ends beyond block `keep` and for which there are empty pages before it; false where there is none. The caller holds
/// ShareUpdateExclusiveLock.
pub(super) unsafe fn step(rel: Relation, keep: u32) -> bool {
    // SAFETY: rel is open, in a transaction with an active snapshot.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel).filter(|_| settings::moves_stripes()) else {
            return false;
        };
        let oldest = pg_sys::GetOldestNonRemovableTransactionId(rel);
        let mut stripes = directory_scan::present(storage_id);
        stripes.retain(|(entry, _)| {
            // Since it was moved last, too: who looks for it twice finds it (`directory_scan::find`).
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
            if !pages::has_spare(rel, entry.run.block_count, entry.run.first_block) {
                too_many = entry.run.block_count;
                continue;
            }
            let Some(exclusion) = stripe_lock::exclude(rel, &entry) else { continue };
            let command = pg_sys::GetCurrentCommandId(true);
            let mut bytes = Vec::new();
            let range = 0..entry.byte_length;
            let strategy = std::ptr::null_mut();
            if let Err(problem) =
                pages::read_range(rel, entry.run, entry.expected(), range, strategy, &mut bytes)
            {
                error::raise_stripe(rel, entry.first_row, problem);
            }
            let owner = PageOwner::current(storage_id, entry.first_row);
            let Some(run) = pages::write_to_spare(rel, &bytes, owner, entry.run.first_block) else {
                // Somebody has put a row there meanwhile: there is a next time.
                exclusion.end(rel);
                return false;
            };
            // Others are kept out to the end of the transaction.
            directory::relocate(&entry, run, command);
            return true;
        }
        false
    }
}
