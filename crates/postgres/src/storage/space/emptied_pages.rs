//! Heap pages without rows, which stripes may take over.
//!
//! Called by movers, through `runs::write_to_emptied`. Packing leaves heap pages behind, and VACUUM empties
//! them. Other hot rows fill some of them again; without this file the others would never be used, and the
//! file would only grow.
//!
//! A mover holds ShareUpdateExclusiveLock, so there is no VACUUM and no other mover, and the file is not cut.
//! It may put a stripe on a run of empty pages. It takes each page under the page's exclusive lock, if no
//! line pointer of the page is in use. The page becomes a stripe page before the lock is released, and is
//! logged as an image.
//! - Inserters whom the free space map sends to the page look again under that lock, and find no room.
//! - Readers find a page without rows, which it was before.
//!
//! Invariants: a page with a line pointer in use is not taken, even if the pointer is dead, because index
//! entries may lead to it. A run that breaks off is given back.

use std::ops::Range;

use pgrx::pg_sys::{self, BlockNumber, Buffer};

use crate::host::buffer;
use crate::host::buffer::PAGE_BYTES;
use crate::host::relation::Open;
use crate::storage::directory::entries;
use crate::storage::file::hot_runs;
use crate::storage::file::metapage;

/// The free space map reports at most this many free bytes for a page with a row. For a page without rows it
/// reports 8,160.
const EMPTY: usize = 8_150;
/// LP_UNUSED.
const UNUSED: u32 = 0;

/// Whether the free space map takes a page for empty. A hint: the page has to be looked at.
pub fn seems_empty(rel: Open, block: BlockNumber) -> bool {
    // SAFETY: a look into a fork of an open relation.
    unsafe { pg_sys::GetRecordedFreeSpace(rel.as_ptr(), block) > EMPTY }
}

/// The first of `count` consecutive pages that are empty now, as near to the beginning of a part of the file
/// as possible. Reads pages only where the free space map takes that many in a row for empty, and corrects
/// the map where it is wrong.
pub fn find(rel: Open, count: u32, within: &Range<BlockNumber>) -> Option<BlockNumber> {
    // What is found here is looked at again when it is taken.
    let runs = entries::all_versions(metapage::storage_id(rel)?).into_iter().map(|entry| entry.run);
    for span in hot_runs::hot_spans(runs, rel.block_count().min(within.end)) {
        let start = span.start.max(within.start);
        if span.end.saturating_sub(start) < count {
            continue;
        }
        let mut length = 0;
        for block in start..span.end {
            pgrx::check_for_interrupts!();
            length = if seems_empty(rel, block) { length + 1 } else { 0 };
            if length == count {
                match (block + 1 - count..=block).rev().find(|&at| !check(rel, at)) {
                    None => return Some(block + 1 - count),
                    Some(used) => length = block - used,
                }
            }
        }
    }
    None
}

/// How many pages right before a block are empty now.
pub fn before(rel: Open, block: BlockNumber) -> u32 {
    // The metapage is not asked.
    let count = (1..block).rev().take_while(|&at| seems_empty(rel, at) && check(rel, at)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Whether a page is empty that the free space map takes for empty. Corrects the map if it is not.
fn check(rel: Open, block: BlockNumber) -> bool {
    // SAFETY: rel is open and has the block.
    unsafe {
        let buf = buffer::read(rel, block, std::ptr::null_mut());
        buffer::lock_shared(buf);
        let empty = is_empty(buf);
        let free = pg_sys::PageGetHeapFreeSpace(buffer::page(buf));
        buffer::unlock_release(buf);
        if !empty {
            pg_sys::RecordPageWithFreeSpace(rel.as_ptr(), block, free.min(EMPTY));
        }
        empty
    }
}

/// The page, exclusively locked, if it is still empty.
pub(super) unsafe fn take(rel: Open, block: BlockNumber) -> Option<Buffer> {
    // SAFETY: the page is changed and logged by the caller before its lock is released.
    unsafe {
        let buf = buffer::read(rel, block, std::ptr::null_mut());
        buffer::lock_exclusive(buf);
        if !is_empty(buf) {
            buffer::unlock_release(buf);
            return None;
        }
        Some(buf)
    }
}

/// Whether a page, pinned and locked, is a heap page without a line pointer in use.
pub(super) unsafe fn is_empty(buf: Buffer) -> bool {
    // SAFETY: the caller's pin and lock.
    unsafe {
        let page = buffer::page(buf);
        // A heap page has no special space; that of a stripe page begins at its header.
        let head = page.cast::<pg_sys::PageHeaderData>();
        !pg_sys::PageIsNew(page)
            && usize::from((*head).pd_special) == PAGE_BYTES
            && (1..=pg_sys::PageGetMaxOffsetNumber(page))
                .all(|offset| (*pg_sys::PageGetItemId(page, offset)).lp_flags() == UNUSED)
    }
}
