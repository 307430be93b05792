//! Changes of pages that the server logs by comparing them with what they were (generic WAL).
//!
//! For pages of an index of ours, which no core record describes. A standby replays such records without any
//! code of ours. Invariant: what is changed lies on a page without a hole (`pd_lower` = `pd_upper`): the
//! record would leave out what lies in the hole.

use pgrx::pg_sys::{self, BlockNumber, Buffer};

use super::buffer::{self, PAGE_BYTES, PAGE_HEADER_BYTES};
use super::relation::Open;

/// Changes a page and logs that, where the relation is logged. The page is locked exclusively.
///
/// # Safety
/// The buffer is one of the relation's. `edit` raises no ERROR.
pub unsafe fn change(rel: Open, buf: Buffer, edit: impl FnOnce(&mut [u8; PAGE_BYTES])) {
    // SAFETY: the caller's promise; the image is a page.
    unsafe { record(rel, buf, 0, |page| edit(&mut *page.cast::<[u8; PAGE_BYTES]>())) }
}

/// Changes two pages in one record.
///
/// # Safety
/// As `change`, for both.
pub unsafe fn change_both(
    rel: Open,
    bufs: [Buffer; 2],
    edit: impl FnOnce(&mut [u8; PAGE_BYTES], &mut [u8; PAGE_BYTES]),
) {
    // SAFETY: the caller's promise. The images are the server's own copies of the pages.
    unsafe {
        let state = pg_sys::GenericXLogStart(rel.as_ptr());
        let [first, second] =
            bufs.map(|buf| pg_sys::GenericXLogRegisterBuffer(state, buf, 0).cast::<[u8; PAGE_BYTES]>());
        edit(&mut *first, &mut *second);
        pg_sys::GenericXLogFinish(state);
    }
}

/// Adds a page to the relation's file, with all of its bytes after the server's header zero until `edit` has
/// filled it. Returns its number.
///
/// # Safety
/// As `change`. Nobody else adds pages to the file meanwhile but under the extension lock.
pub unsafe fn add_page(rel: Open, edit: impl FnOnce(&mut [u8; PAGE_BYTES])) -> BlockNumber {
    // SAFETY: the page is new, so nobody else knows it.
    unsafe {
        let needs_lock = !rel.is_local();
        if needs_lock {
            pg_sys::LockRelationForExtension(rel.as_ptr(), pg_sys::ExclusiveLock as i32);
        }
        let buf = buffer::extend_locked(rel);
        if needs_lock {
            pg_sys::UnlockRelationForExtension(rel.as_ptr(), pg_sys::ExclusiveLock as i32);
        }
        let block = pg_sys::BufferGetBlockNumber(buf);
        record(rel, buf, pg_sys::GENERIC_XLOG_FULL_IMAGE as i32, |page| {
            without_hole(page);
            edit(&mut *page.cast::<[u8; PAGE_BYTES]>());
        });
        buffer::unlock_release(buf);
        block
    }
}

/// Makes a page one that the server takes for full, with nothing on it.
///
/// # Safety
/// A page.
pub unsafe fn without_hole(page: pg_sys::Page) {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::PageInit(page, PAGE_BYTES, 0);
        let head = page.cast::<pg_sys::PageHeaderData>();
        let end = PAGE_HEADER_BYTES as pg_sys::LocationIndex;
        ((*head).pd_lower, (*head).pd_upper, (*head).pd_special) = (end, end, end);
    }
}

unsafe fn record(rel: Open, buf: Buffer, flags: i32, edit: impl FnOnce(pg_sys::Page)) {
    // SAFETY: the callers' promise. The image is the server's own copy of the page.
    unsafe {
        let state = pg_sys::GenericXLogStart(rel.as_ptr());
        edit(pg_sys::GenericXLogRegisterBuffer(state, buf, flags));
        pg_sys::GenericXLogFinish(state);
    }
}
