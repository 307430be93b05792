//! Gives stripe pages the visibility-map bits back that they have lost.
//!
//! Called by VACUUM, after heap's own. Stripe pages are marked all-visible and all-frozen when they are
//! written. If somebody throws the map away (`pg_truncate_visibility_map`, a repair by hand), these bits are
//! lost, too. Heap's VACUUM then reads such a page each time. It never sets the bits again, because the page
//! itself says that it is all-visible.
//!
//! Invariant: bits are set only on pages that carry a stripe's header.

use pgrx::pg_sys::{self, Buffer};

use super::free;
use crate::host::buffer;
use crate::host::relation::Open;
use crate::storage::directory::entries;
use crate::storage::file::metapage;
use crate::storage::file::visibility_bits::BITS;

/// Marks the pages of all stripes that the directory names.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock.
pub unsafe fn restore(rel: Open, strategy: pg_sys::BufferAccessStrategy) {
    // SAFETY: the lock is promised, so nobody frees a page meanwhile.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return };
        let blocks = rel.block_count();
        let mut vmbuffer: Buffer = 0;
        for run in entries::all_versions(storage_id).into_iter().map(|entry| entry.run) {
            let end = run.end().min(blocks);
            for block in run.first_block..end {
                if u32::from(pg_sys::visibilitymap_get_status(rel.as_ptr(), block, &raw mut vmbuffer)) & BITS
                    == BITS
                {
                    continue;
                }
                pgrx::check_for_interrupts!();
                pg_sys::visibilitymap_pin(rel.as_ptr(), block, &raw mut vmbuffer);
                let buf = buffer::read(rel, block, strategy);
                buffer::lock_exclusive(buf);
                if free::stripe_owner(buf).is_some() {
                    let none = pg_sys::InvalidTransactionId;
                    pg_sys::visibilitymap_set(rel.as_ptr(), block, buf, 0, vmbuffer, none, BITS as u8);
                }
                buffer::unlock_release(buf);
            }
        }
        if vmbuffer != 0 {
            pg_sys::ReleaseBuffer(vmbuffer);
        }
    }
}
