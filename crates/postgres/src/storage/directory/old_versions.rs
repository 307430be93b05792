//! Has the server prune rows of replaced stripes from the directory, and finds those that are left.
//!
//! Called by VACUUM. The server prunes a page of a catalog only when it needs the space, or when the catalog
//! itself is vacuumed. But a replaced stripe's pages, its index entries and what is known of its rows can go
//! only after its row. So these rows are pruned at once. Pruning logs the horizon that ends queries of
//! standbys which could still read the stripe (protocol point 7).
//!
//! An index entry of the directory may be gone before its row is. So before VACUUM takes anything away, it
//! looks into the heap of the directory itself.
//!
//! Invariant: only the server decides what is dead to everybody.

use pgrx::pg_sys::{self, BlockNumber};

use super::StripeEntry;
use super::cursor::walk;
use super::entries;
use crate::host::buffer;
use crate::host::relation::with_table;
use crate::storage::catalog::side_table::SideTable;
use crate::storage::file::tid;

/// Has the server prune the pages that hold rows of replaced stripes of a storage id.
pub unsafe fn prune(storage_id: u64) {
    let mut blocks = Vec::new();
    // SAFETY: the pages are pinned; the flag is a hint, set under the exclusive lock, and pruning takes the
    // lock that it needs if that is to be had at once.
    unsafe {
        walk(storage_id, None, |cursor| {
            if cursor.entry(false).replaced_by != pg_sys::InvalidTransactionId {
                blocks.push(tid::block_of(cursor.place()));
            }
            true
        });
        if !blocks.is_empty() {
            prune_pages(blocks);
        }
    }
}

/// The versions of rows of the directory, read from its heap (`entries::all_by_heap`), that are in the way of
/// what VACUUM is about to do. The server was asked to prune their pages first. The versions that are left
/// may be seen by somebody, or their page was in use.
pub fn holding_pages(storage_id: u64, is_in_the_way: impl Fn(&StripeEntry) -> bool) -> Vec<StripeEntry> {
    // SAFETY: in a transaction of VACUUM's.
    unsafe {
        let in_the_way =
            || entries::all_by_heap(storage_id).into_iter().filter(|(entry, _)| is_in_the_way(entry));
        let blocks: Vec<_> = in_the_way().map(|(_, block)| block).collect();
        if blocks.is_empty() {
            return Vec::new();
        }
        prune_pages(blocks);
        in_the_way().map(|(entry, _)| entry).collect()
    }
}

/// Has the server prune these pages of the directory.
unsafe fn prune_pages(mut blocks: Vec<BlockNumber>) {
    blocks.sort_unstable();
    blocks.dedup();
    // SAFETY: each page is pinned while it is looked at, and the flag is set under its lock.
    unsafe {
        with_table(SideTable::Stripe.oids().table, pg_sys::AccessShareLock, |table| {
            for block in blocks {
                let buf = buffer::read(table, block, std::ptr::null_mut());
                buffer::lock_exclusive(buf);
                // An UPDATE that has found no room sets this flag, too. It makes the next backend that comes
                // by prune the page.
                let page = buffer::page(buf).cast::<pg_sys::PageHeaderData>();
                (*page).pd_flags |= pg_sys::PD_PAGE_FULL as u16;
                buffer::unlock(buf);
                pg_sys::heap_page_prune_opt(table.as_ptr(), buf);
                pg_sys::ReleaseBuffer(buf);
            }
        });
    }
}
