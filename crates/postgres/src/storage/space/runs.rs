//! Puts a new run of stripe pages on pages that hot rows have left, or at the end of the file.
//!
//! Called by every writer of a stripe. Only a holder of ShareUpdateExclusiveLock may use emptied pages,
//! because there is neither a VACUUM nor another mover then.
//!
//! Invariant: a run breaks off if somebody has put a row on one of its pages meanwhile. Such a run is given
//! back page by page.

use std::ops::Range;

use pgrx::pg_sys::{self, BlockNumber, Buffer};

use super::{emptied_pages, free};
use crate::host::buffer;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::host::server_locks;
use crate::storage::file::page_header::{Header, PAYLOAD_BYTES};
use crate::storage::file::pages::{BLOCK_LIMIT, BlockRun, FileOf, PageOwner, append_run, format_new};

/// Writes `bytes` as a run of stripe pages. The metapage exists (`metapage::ensure`). The pages mean nothing
/// until a directory row names them; if none ever does, VACUUM gives them back.
///
/// # Safety
/// `rel` is locked with at least RowExclusiveLock.
pub unsafe fn write_run(rel: Open, bytes: &[u8], owner: PageOwner) -> BlockRun {
    // SAFETY: the lock is promised.
    unsafe {
        predicate_locks::serializable_write(rel);
        let may_reuse = server_locks::holds_lock(rel.oid(), pg_sys::ShareUpdateExclusiveLock);
        let reused = if may_reuse { write_to_emptied(rel, bytes, owner, &(1..BLOCK_LIMIT)) } else { None };
        reused.unwrap_or_else(|| append_run(rel, bytes, owner, FileOf::Table))
    }
}

/// `write_run` on pages that hot rows have left, within a part of the file. None if there are not enough of
/// them in a row. The caller holds ShareUpdateExclusiveLock.
pub unsafe fn write_to_emptied(
    rel: Open,
    bytes: &[u8],
    owner: PageOwner,
    within: &Range<BlockNumber>,
) -> Option<BlockRun> {
    // SAFETY: a page is changed and logged under the lock that it was found empty under.
    unsafe {
        let block_count = u32::try_from(bytes.len().div_ceil(PAYLOAD_BYTES)).ok()?;
        let first_block = emptied_pages::find(rel, block_count, within)?;
        let logged = rel.needs_wal();
        let mut vmbuffer: Buffer = 0;
        let mut written = 0;
        for (page_number, payload) in (0..).zip(bytes.chunks(PAYLOAD_BYTES)) {
            pgrx::check_for_interrupts!();
            let block = first_block + page_number;
            pg_sys::visibilitymap_pin(rel.as_ptr(), block, &raw mut vmbuffer);
            let Some(buf) = emptied_pages::take(rel, block) else { break };
            // Clears the bits first, so that setting them is logged. Replaying that record is what updates
            // the free space map on a standby or after a crash.
            let bits = pg_sys::VISIBILITYMAP_VALID_BITS as u8;
            pg_sys::visibilitymap_clear(rel.as_ptr(), block, vmbuffer, bits);
            let header = Header::Stripe { owner, page_number };
            format_new(rel, buf, Some(&mut vmbuffer), &header, payload, logged);
            buffer::unlock_release(buf);
            pg_sys::RecordPageWithFreeSpace(rel.as_ptr(), block, 0);
            written += 1;
        }
        let whole = written == block_count;
        if !whole {
            // Gives the run back: somebody has put a row on one of its pages meanwhile.
            for block in first_block..first_block + written {
                free::free_page(rel, block, owner, &mut vmbuffer, std::ptr::null_mut());
            }
        }
        if vmbuffer != 0 {
            pg_sys::ReleaseBuffer(vmbuffer);
        }
        whole.then_some(BlockRun { first_block, block_count })
    }
}
