//! Files of relations.

use pgrx::pg_sys::{self, BlockNumber};

use super::relation::Open;

/// Identity of a relation's file: tablespace, database, number.
pub type FileLocator = pg_sys::RelFileNode;

/// The number in the file's name: changes with every rewrite of the relation.
pub fn file_number(locator: &FileLocator) -> u32 {
    u32::from(locator.relNode)
}

/// The file a relation has now.
pub fn locator(rel: Open) -> FileLocator {
    // SAFETY: a field of an open relation.
    unsafe { (*rel.as_ptr()).rd_node }
}

/// Copies a block of the main fork as it is on disk, past the buffers. The block is below the end of the
/// file.
pub fn read_from_disk(rel: Open, block: BlockNumber, image: &mut [u8; pg_sys::BLCKSZ as usize]) {
    // SAFETY: the server fills one page.
    unsafe {
        let file = pg_sys::smgropen((*rel.as_ptr()).rd_node, (*rel.as_ptr()).rd_backend);
        pg_sys::smgrread(file, pg_sys::ForkNumber::MAIN_FORKNUM, block, image.as_mut_ptr().cast());
    }
}
