//! `ambulkdelete` and `amvacuumcleanup`: rows of a heap block have died, so its copy does not count any more.
//!
//! VACUUM calls the first after it has found dead rows, and before it lets their line pointers go. A block
//! with a dead line pointer is not all-visible, and nobody sets its bit before that. So every copy of a block
//! whose bit is clear is given up, and VACUUM's list of dead rows need not be asked.

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, IndexBulkDeleteCallback, IndexBulkDeleteResult, IndexVacuumInfo};

use super::layout::{self, REGION_BLOCKS};
use super::{regions, visibility};
use crate::host::relation::{Open, with_table};

/// The callback.
#[pg_guard]
pub unsafe extern "C-unwind" fn bulk_delete(
    info: *mut IndexVacuumInfo,
    result: *mut IndexBulkDeleteResult,
    _callback: IndexBulkDeleteCallback,
    _state: *mut c_void,
) -> *mut IndexBulkDeleteResult {
    // SAFETY: the server passes an open index, whose table it has locked.
    unsafe {
        let index = Open::of((*info).index);
        let table = pg_sys::IndexGetRelation(index.oid(), false);
        with_table(table, pg_sys::NoLock, |heap| give_up(index, heap));
        if result.is_null() { pg_sys::palloc0(size_of::<IndexBulkDeleteResult>()).cast() } else { result }
    }
}

/// Gives up the copies of all blocks that are not all-visible.
///
/// # Safety
/// The table is locked as for VACUUM, or as for building an index.
unsafe fn give_up(index: Open, heap: Open) {
    let blocks = heap.block_count();
    for region in 0..blocks.div_ceil(REGION_BLOCKS) {
        pgrx::check_for_interrupts!();
        let Some(known) = regions::load(index, region) else { continue };
        if known.entries().iter().all(|&entry| entry == 0) {
            continue;
        }
        let first = region * REGION_BLOCKS;
        // SAFETY: the caller's promise. An entry may be set to none at any time.
        unsafe {
            let visible = visibility::visible(heap, first..(first + REGION_BLOCKS).min(blocks));
            // Blocks past the end of the table mean nothing.
            let is_loose = |at: usize| !visible.get(at).copied().unwrap_or(false);
            let given_up = (0..).zip(known.entries()).any(|(at, &entry)| entry != 0 && is_loose(at));
            if let Some(place) = regions::place(index, region).filter(|_| given_up) {
                regions::change(index, place, |page| {
                    for (at, entry) in layout::entries_mut(page).iter_mut().enumerate() {
                        if is_loose(at) {
                            *entry = 0;
                        }
                    }
                });
            }
        }
    }
}

/// The callback: counts only.
#[pg_guard]
pub unsafe extern "C-unwind" fn cleanup(
    info: *mut IndexVacuumInfo,
    result: *mut IndexBulkDeleteResult,
) -> *mut IndexBulkDeleteResult {
    // SAFETY: as `bulk_delete`.
    unsafe {
        if (*info).analyze_only {
            return result;
        }
        let result = match result.is_null() {
            true => pg_sys::palloc0(size_of::<IndexBulkDeleteResult>()).cast(),
            false => result,
        };
        (*result).num_pages = Open::of((*info).index).block_count();
        (*result).num_index_tuples = (*info).num_heap_tuples;
        (*result).estimated_count = (*info).estimated_count;
        result
    }
}
