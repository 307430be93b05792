//! Changes a page and clears its bits in the visibility map, logged together.
//!
//! Called for changes of pages that heap never makes: a stripe page is freed (`space::free`), or a proxy that
//! nobody needs is removed (`row_proxy::unused`).

use pgrx::pg_sys::{self, Buffer};

use crate::host::relation::Open;
use crate::host::{buffer, critical};

pub const BITS: u32 = pg_sys::VISIBILITYMAP_ALL_VISIBLE | pg_sys::VISIBILITYMAP_ALL_FROZEN;

/// Notes that not everything on a page is visible to everybody.
pub unsafe fn clear(rel: Open, block: pg_sys::BlockNumber, buf: Buffer, map: Buffer) {
    // SAFETY: as `change`.
    unsafe {
        let head = buffer::page(buf).cast::<pg_sys::PageHeaderData>();
        if u32::from((*head).pd_flags) & pg_sys::PD_ALL_VISIBLE != 0 {
            change(rel, block, buf, map, |_| (*head).pd_flags &= !(pg_sys::PD_ALL_VISIBLE as u16));
        }
    }
}

/// Changes a page, clears its bits in the visibility map, and logs both pages whole. The page is locked
/// exclusively, and its page of the map is pinned. `what` changes the page; it allocates nothing and raises
/// no ERROR.
pub unsafe fn change(
    rel: Open,
    block: pg_sys::BlockNumber,
    buf: Buffer,
    map: Buffer,
    what: impl FnOnce(pg_sys::Page),
) {
    // SAFETY: inside the critical section are stores and the server's logging only.
    unsafe {
        let logged = rel.needs_wal();
        critical::start();
        let page = buffer::page(buf);
        what(page);
        pg_sys::MarkBufferDirty(buf);
        pg_sys::visibilitymap_clear(rel.as_ptr(), block, map, BITS as u8);
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
