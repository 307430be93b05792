//! Giving stripe pages back to heap (protocol point 7).
//!
//! Called by VACUUM. Pages of loads that never came to an end, and of stripes that were replaced, belong to
//! nobody. They are freed in this order:
//! 1. Find pages that no row of the directory names.
//! 2. See that the writer named in each page's own header has ended.
//! 3. Only *then* read the whole directory with SnapshotAny.
//! 4. Make each page that still no version names an empty heap page and clear its visibility bits, in one WAL
//!    record.
//!
//! Dead versions count in step 3, so a page is freed only after they were pruned. The pruning is what cancels
//! queries of standbys that could still read the stripe.

use pgrx::pg_sys::{self, BlockNumber, Buffer};

use super::emptied_pages;
use crate::host::buffer;
use crate::host::buffer::{PAGE_BYTES, PAGE_HEADER_BYTES};
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::{entries, old_versions};
use crate::storage::file::hot_runs;
use crate::storage::file::page_header::{self, Header, PageOwner, Parsed};
use crate::storage::file::{metapage, visibility_bits};

/// Frees the pages that can be freed, and returns how many.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock.
pub unsafe fn reclaim(rel: Open, strategy: pg_sys::BufferAccessStrategy) -> u64 {
    // SAFETY: the lock is promised.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return 0 };
        let mut vmbuffer: Buffer = 0;
        let mut candidates = unnamed(rel, storage_id, &mut vmbuffer, strategy);
        candidates.retain(|(_, owner)| ended(owner.writer));
        let mut freed = 0;
        if !candidates.is_empty() {
            // Both are searched by block: a table can have a million such pages and thousands of stripes.
            let named = old_versions::holding_pages(storage_id, |entry| {
                let at = candidates.partition_point(|&(block, _)| block < entry.run.first_block);
                candidates.get(at).is_some_and(|&(block, _)| block < entry.run.end())
            });
            let spans = hot_runs::hot_spans(named.into_iter().map(|entry| entry.run), BlockNumber::MAX);
            candidates.retain(|&(block, _)| {
                let at = spans.partition_point(|span| span.end <= block);
                spans.get(at).is_some_and(|span| span.start <= block)
            });
            for &(block, owner) in &candidates {
                pgrx::check_for_interrupts!();
                if free_page(rel, block, owner, &mut vmbuffer, strategy) {
                    freed += 1;
                }
            }
        }
        if vmbuffer != 0 {
            pg_sys::ReleaseBuffer(vmbuffer);
        }
        if freed > 0 {
            pg_sys::FreeSpaceMapVacuum(rel.as_ptr());
        }
        freed
    }
}

/// Stripe pages, each with its owner, that no version of any row of the directory names; ascending.
unsafe fn unnamed(
    rel: Open,
    storage_id: u64,
    vmbuffer: &mut Buffer,
    strategy: pg_sys::BufferAccessStrategy,
) -> Vec<(BlockNumber, PageOwner)> {
    let runs = entries::all_versions(storage_id).into_iter().map(|entry| entry.run);
    let spans = hot_runs::hot_spans(runs, rel.block_count());
    let mut candidates: Vec<(BlockNumber, PageOwner)> = Vec::new();
    // SAFETY: pages are looked at under pin and shared lock.
    unsafe {
        for span in spans {
            for block in span.start..span.end {
                // Stripe pages are marked all-frozen from the start, unless somebody has thrown the map away,
                // and the free space map never hears of them; but what it says of wholly empty pages may be
                // from before a crash, as it is not logged.
                let status = u32::from(pg_sys::visibilitymap_get_status(rel.as_ptr(), block, vmbuffer));
                if status & pg_sys::VISIBILITYMAP_VALID_BITS == pg_sys::VISIBILITYMAP_ALL_VISIBLE
                    || (pg_sys::GetRecordedFreeSpace(rel.as_ptr(), block) > 0
                        && !emptied_pages::seems_empty(rel, block))
                {
                    continue;
                }
                pgrx::check_for_interrupts!();
                let buf = buffer::read(rel, block, strategy);
                buffer::lock_shared(buf);
                if let Some(owner) = stripe_owner(buf) {
                    candidates.push((block, owner));
                }
                buffer::unlock_release(buf);
            }
        }
    }
    candidates
}

/// Frees the pages of a stripe that this transaction has written but not put into the directory.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock.
pub unsafe fn give_back(rel: Open, entry: &StripeEntry) {
    // SAFETY: the lock is promised. A page that is another's stays.
    unsafe {
        let owner = PageOwner::current(entry.storage_id, entry.first_row);
        let mut vmbuffer: Buffer = 0;
        let blocks = entry.run.first_block..entry.run.end();
        for block in blocks {
            free_page(rel, block, owner, &mut vmbuffer, std::ptr::null_mut());
        }
        if vmbuffer != 0 {
            pg_sys::ReleaseBuffer(vmbuffer);
        }
    }
}

/// Whose stripe page is in a buffer. None if the page is none.
///
/// # Safety
/// The buffer is pinned and locked.
pub(super) unsafe fn stripe_owner(buf: Buffer) -> Option<PageOwner> {
    // SAFETY: pinned and locked by the caller.
    unsafe {
        let page = buffer::page(buf);
        if pg_sys::PageIsNew(page) {
            return None;
        }
        match page_header::parse(buffer::bytes(page)) {
            Parsed::Ours(Header::Stripe { owner, .. }) => Some(owner),
            _ => None,
        }
    }
}

/// Whether the transaction with this full id is over (a prepared one is not).
pub fn ended(writer: u64) -> bool {
    // SAFETY: plain look-ups of the transaction system.
    unsafe {
        let next = pg_sys::ReadNextFullTransactionId().value;
        if writer >= next {
            return false;
        }
        if next - writer > u64::from(u32::MAX / 2) {
            return true;
        }
        let xid = pg_sys::TransactionId::from(writer as u32);
        !pg_sys::TransactionIdIsInProgress(xid)
    }
}

/// Makes a page of `owner`'s an empty heap page, and tells the free space map. False: the page is not that
/// owner's.
pub(super) unsafe fn free_page(
    rel: Open,
    block: BlockNumber,
    owner: PageOwner,
    vmbuffer: &mut Buffer,
    strategy: pg_sys::BufferAccessStrategy,
) -> bool {
    // SAFETY: pins and look-ups come before the critical section; inside are stores and the server's logging
    // only.
    unsafe {
        pg_sys::visibilitymap_pin(rel.as_ptr(), block, vmbuffer);
        let buf = buffer::read(rel, block, strategy);
        buffer::lock_exclusive(buf);
        if stripe_owner(buf) != Some(owner) {
            buffer::unlock_release(buf);
            return false;
        }
        visibility_bits::change(rel, block, buf, *vmbuffer, |page| {
            pg_sys::PageInit(page, PAGE_BYTES, 0);
        });
        buffer::unlock_release(buf);
        pg_sys::RecordPageWithFreeSpace(
            rel.as_ptr(),
            block,
            PAGE_BYTES - PAGE_HEADER_BYTES - size_of::<u32>(),
        );
        true
    }
}
