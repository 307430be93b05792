//! Visibility-map bits that stripe pages have lost, and pages that lose theirs.
//!
//! Called by VACUUM, after heap's own (`restore`), and by what changes pages as heap never does. Stripe pages
//! are marked all-visible and all-frozen when they are written. Whoever throws the map away
//! (`pg_truncate_visibility_map`, a repair by hand) takes these bits too; heap's VACUUM reads such a page
//! each time and never sets them again, because the page itself says that it is all-visible. Invariant: bits
//! are set only on pages that carry a stripe's header.

use pgrx::pg_sys::{self, Buffer, Relation};

use super::{directory_scan, free, metapage};
use crate::host::{buffer, critical, relation};

const BITS: u32 = pg_sys::VISIBILITYMAP_ALL_VISIBLE | pg_sys::VISIBILITYMAP_ALL_FROZEN;

/// Marks the pages of all stripes that the directory names.
pub unsafe fn restore(rel: Relation, strategy: pg_sys::BufferAccessStrategy) {
    // SAFETY: rel is open with ShareUpdateExclusiveLock, so nobody frees a page meanwhile.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return };
        let blocks = relation::block_count(rel);
        let mut vmbuffer: Buffer = 0;
        for run in directory_scan::all_versions(storage_id).into_iter().map(|entry| entry.run) {
            let end = run.first_block.saturating_add(run.block_count).min(blocks);
            for block in run.first_block..end {
                if u32::from(pg_sys::visibilitymap_get_status(rel, block, &raw mut vmbuffer)) & BITS == BITS {
                    continue;
                }
                pgrx::check_for_interrupts!();
                pg_sys::visibilitymap_pin(rel, block, &raw mut vmbuffer);
                let buf = buffer::read(rel, block, strategy);
                buffer::lock_exclusive(buf);
                if free::stripe_owner(buf).is_some() {
                    let none = pg_sys::InvalidTransactionId;
                    pg_sys::visibilitymap_set(rel, block, buf, 0, vmbuffer, none, BITS as u8);
                }
                buffer::unlock_release(buf);
            }
        }
        if vmbuffer != 0 {
            pg_sys::ReleaseBuffer(vmbuffer);
        }
    }
}

/// Says that not everything on a page is visible to everybody.
pub(super) unsafe fn clear(rel: Relation, block: pg_sys::BlockNumber, buf: Buffer, map: Buffer) {
    // SAFETY: as `change`.
    unsafe {
        let head = buffer::page(buf).cast::<pg_sys::PageHeaderData>();
        if u32::from((*head).pd_flags) & pg_sys::PD_ALL_VISIBLE != 0 {
            change(rel, block, buf, map, |_| (*head).pd_flags &= !(pg_sys::PD_ALL_VISIBLE as u16));
        }
    }
}

/// Changes a page, takes its bits in the visibility map away and logs both pages whole. The page is locked
/// exclusively, its page of the map pinned. What is called allocates nothing and raises no ERROR.
pub(super) unsafe fn change(
    rel: Relation,
    block: pg_sys::BlockNumber,
    buf: Buffer,
    map: Buffer,
    what: impl FnOnce(pg_sys::Page),
) {
    // SAFETY: inside the critical section are stores and the server's logging only.
    unsafe {
        let logged = relation::needs_wal(rel);
        critical::start();
        let page = buffer::page(buf);
        what(page);
        pg_sys::MarkBufferDirty(buf);
        pg_sys::visibilitymap_clear(rel, block, map, BITS as u8);
        if logged {
            buffer::lock_exclusive(map);
            pg_sys::XLogBeginInsert();
            let image = pg_sys::REGBUF_FORCE_IMAGE as u8;
            pg_sys::XLogRegisterBuffer(0, buf, image | pg_sys::REGBUF_STANDARD as u8);
            pg_sys::XLogRegisterBuffer(1, map, image);
            let at = pg_sys::XLogInsert(pg_sys::RmgrIds::RM_XLOG_ID as u8, pg_sys::XLOG_FPI as u8);
            buffer::set_lsn(page, at);
            buffer::set_lsn(buffer::page(map), at);
            buffer::unlock(map);
        }
        critical::end();
    }
}
