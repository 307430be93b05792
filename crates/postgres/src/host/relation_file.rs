//! Files of relations.

use pgrx::pg_sys::{self, BlockNumber};

use super::relation::Open;
use crate::compat;
pub use crate::compat::{FileLocator, file_number};

/// The file a relation has now.
pub fn locator(rel: Open) -> FileLocator {
    // SAFETY: it is open.
    unsafe { compat::locator(rel.as_ptr()) }
}

/// Copies a block of the main fork as it is on disk, past the buffers. The block is below the end of the
/// file.
pub fn read_from_disk(rel: Open, block: BlockNumber, image: &mut [u8; pg_sys::BLCKSZ as usize]) {
    // SAFETY: the server fills one page.
    unsafe { compat::read_from_disk(rel.as_ptr(), block, image.as_mut_ptr().cast()) }
}
