//! Pins and content locks of shared and local buffers, and the three page pointers.
//!
//! There are no guard objects. When an ERROR unwinds, the server's abort releases pins and locks itself, and
//! a destructor would release them twice.

use pgrx::pg_sys::{self, BlockNumber, Buffer, Page};

use super::relation::Open;

/// Bytes of a page.
pub const PAGE_BYTES: usize = pg_sys::BLCKSZ as usize;
/// Bytes of the server's page header; payload starts here.
pub const PAGE_HEADER_BYTES: usize = 24;
/// `P_NEW`: asks for a page past the end of the fork.
pub const NEW_BLOCK: BlockNumber = pg_sys::InvalidBlockNumber;

/// Pins one block of the main fork.
pub unsafe fn read(rel: Open, block: BlockNumber, strategy: pg_sys::BufferAccessStrategy) -> Buffer {
    // SAFETY: an unreadable block raises an ERROR.
    unsafe {
        pg_sys::ReadBufferExtended(
            rel.as_ptr(),
            pg_sys::ForkNumber::MAIN_FORKNUM,
            block,
            pg_sys::ReadBufferMode::RBM_NORMAL,
            strategy,
        )
    }
}

/// Extends the main fork by one zeroed page and returns it pinned and exclusively locked. The caller holds
/// the extension lock (unless the relation is local).
pub unsafe fn extend_locked(rel: Open) -> Buffer {
    // SAFETY: RBM_ZERO_AND_LOCK takes the content lock before anybody else can see the page.
    unsafe {
        pg_sys::ReadBufferExtended(
            rel.as_ptr(),
            pg_sys::ForkNumber::MAIN_FORKNUM,
            NEW_BLOCK,
            pg_sys::ReadBufferMode::RBM_ZERO_AND_LOCK,
            std::ptr::null_mut(),
        )
    }
}

/// Takes the shared content lock.
///
/// # Safety
/// The buffer is pinned.
pub unsafe fn lock_shared(buffer: Buffer) {
    // SAFETY: the buffer is pinned by the caller.
    unsafe { pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32) }
}

/// Takes the exclusive content lock.
///
/// # Safety
/// The buffer is pinned.
pub unsafe fn lock_exclusive(buffer: Buffer) {
    // SAFETY: the buffer is pinned by the caller.
    unsafe { pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32) }
}

/// Releases the content lock and keeps the pin.
///
/// # Safety
/// The buffer is pinned and locked.
pub unsafe fn unlock(buffer: Buffer) {
    // SAFETY: the buffer is pinned and locked by the caller.
    unsafe { pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as i32) }
}

/// Releases the content lock and the pin.
///
/// # Safety
/// The buffer is pinned and locked.
pub unsafe fn unlock_release(buffer: Buffer) {
    // SAFETY: the buffer is pinned and locked by the caller.
    unsafe { pg_sys::UnlockReleaseBuffer(buffer) }
}

/// The page's bytes. Valid while the pin is held. Reading needs a content lock, unless the page cannot
/// change.
///
/// # Safety
/// The buffer is pinned.
pub unsafe fn page(buffer: Buffer) -> Page {
    // SAFETY: the buffer is pinned by the caller.
    unsafe { pg_sys::BufferGetPage(buffer) }
}

/// The page as bytes.
pub unsafe fn bytes<'a>(page: Page) -> &'a [u8] {
    // SAFETY: a page is BLCKSZ bytes; the caller keeps pin and lock for as long as it looks.
    unsafe { std::slice::from_raw_parts(page.cast::<u8>(), PAGE_BYTES) }
}

/// Stamps a page with the position of the WAL record that covers it.
///
/// # Safety
/// The page is exclusively locked.
pub unsafe fn set_lsn(page: Page, at: pg_sys::XLogRecPtr) {
    // SAFETY: the page is exclusively locked by the caller.
    unsafe {
        let head = page.cast::<pg_sys::PageHeaderData>();
        (*head).pd_lsn.xlogid = (at >> 32) as u32;
        (*head).pd_lsn.xrecoff = at as u32;
    }
}
