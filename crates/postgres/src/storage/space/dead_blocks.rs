//! How many stripe pages belong to no stripe and wait for VACUUM.
//!
//! Asked by packing, which decides whether VACUUM pays, and by `engine.storage_health`.

use pgrx::pg_sys;

use super::free;
use crate::host::buffer;
use crate::host::relation::Open;
use crate::storage::file::hot_runs;
use crate::storage::file::pages::BlockRun;

/// How many stripe pages belong to none of these stripes: pages of loads that were rolled back, and of
/// stripes that were replaced. Pages that somebody is just writing do not count.
pub fn dead_blocks(rel: Open, live: impl Iterator<Item = BlockRun>) -> u32 {
    // SAFETY: pages are looked at under pin and shared lock.
    unsafe {
        let mut dead = 0;
        let mut vmbuffer: pg_sys::Buffer = 0;
        for span in hot_runs::hot_spans(live, rel.block_count()) {
            for block in span.start..span.end {
                pgrx::check_for_interrupts!();
                let status =
                    u32::from(pg_sys::visibilitymap_get_status(rel.as_ptr(), block, &raw mut vmbuffer));
                if status & pg_sys::VISIBILITYMAP_ALL_FROZEN == 0
                    || pg_sys::GetRecordedFreeSpace(rel.as_ptr(), block) > 0
                {
                    continue;
                }
                let buf = buffer::read(rel, block, std::ptr::null_mut());
                buffer::lock_shared(buf);
                let owner = free::stripe_owner(buf);
                buffer::unlock_release(buf);
                dead += u32::from(owner.is_some_and(|owner| free::ended(owner.writer)));
            }
        }
        if vmbuffer != 0 {
            pg_sys::ReleaseBuffer(vmbuffer);
        }
        dead
    }
}
