//! `ambulkdelete` and `amvacuumcleanup`: rows of a heap block have died, so its copy does not count any more.
//!
//! VACUUM calls the first after it has found dead rows, and before it lets their line pointers go. A block
//! with a dead line pointer is not all-visible, and nobody sets its bit before that. So only blocks whose bit
//! is clear are looked at. A block whose copy has none of the dead rows keeps its copy: what VACUUM takes
//! away there was never copied, or is an old version that a HOT update has left.

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, IndexBulkDeleteCallback, IndexBulkDeleteResult, IndexVacuumInfo, ItemPointerData};

use super::layout::{self, REGION_BLOCKS, Slot};
use super::regions::{self, Region};
use super::{access_method, checked, cover, visibility};
use crate::host::relation::{Open, with_table};
use crate::storage::file::tid;
use crate::storage::read::stripe_on_pages::{self, Pages};

/// The callback.
#[pg_guard]
pub unsafe extern "C-unwind" fn bulk_delete(
    info: *mut IndexVacuumInfo,
    result: *mut IndexBulkDeleteResult,
    callback: IndexBulkDeleteCallback,
    state: *mut c_void,
) -> *mut IndexBulkDeleteResult {
    // SAFETY: the server passes an open index, whose table it has locked.
    unsafe {
        let index = Open::of((*info).index);
        let table = pg_sys::IndexGetRelation(index.oid(), false);
        let is_dead = |mut row: ItemPointerData| callback.is_none_or(|dead| dead(&raw mut row, state));
        with_table(table, pg_sys::NoLock, |heap| give_up(index, heap, &is_dead));
        if result.is_null() { pg_sys::palloc0(size_of::<IndexBulkDeleteResult>()).cast() } else { result }
    }
}

/// Gives up the copies of blocks in which a row of the copy is dead.
///
/// # Safety
/// The table is locked as for VACUUM, or as for building an index.
unsafe fn give_up(index: Open, heap: Open, is_dead: &dyn Fn(ItemPointerData) -> bool) {
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
            let visible = visibility::visible(heap, region, blocks);
            let given_up =
                with_dead(index, &known, &visible, &|at, root| is_dead(tid::tid(first + at, root)));
            if let Some(place) = regions::place(index, region).filter(|_| given_up.contains(&true)) {
                regions::change(index, place, |page| {
                    let entries = layout::entries_mut(page).iter_mut().zip(&given_up);
                    entries.filter(|(_, given_up)| **given_up).for_each(|(entry, _)| *entry = 0);
                });
            }
        }
    }
}

/// Which blocks of a region have an entry that must name no copy: those with a dead row, blocks past the end
/// of the table, and those of copies that were never finished. All-visible blocks have no dead row.
fn with_dead(index: Open, known: &Region, visible: &[bool], is_dead: &dyn Fn(u32, u16) -> bool) -> Vec<bool> {
    let entries = known.entries();
    let is_visible = |at: usize| visible.get(at) == Some(&true);
    let mut found: Vec<bool> =
        entries.iter().enumerate().map(|(at, &entry)| entry != 0 && !is_visible(at)).collect();
    for (number, _) in layout::counting_slots(entries) {
        let is_open = |at: usize| entries.get(at) == Some(&number) && visible.get(at) == Some(&false);
        if !(0..visible.len()).any(is_open) {
            continue;
        }
        let slot = known.slot(number);
        // A copy that cannot be read is given up.
        let Ok(roots) = roots_of(index, known.storage_id, &slot) else { continue };
        let list = cover::read_tail(index, known.storage_id, &slot, slot.tail().1);
        for (rows, at) in cover::rows_of_blocks(&list, 0).filter(|(_, at)| is_open(usize::from(*at))) {
            let own = roots.get(rows.start as usize..rows.end as usize);
            if let (Some(own), Some(found)) = (own, found.get_mut(usize::from(at))) {
                *found = own.iter().any(|&root| is_dead(u32::from(at), root));
            }
        }
    }
    found
}

/// The roots of all rows of a copy.
fn roots_of(index: Open, storage_id: u64, slot: &Slot) -> vector::Result<Vec<u16>> {
    let entry = slot.stripe(storage_id, Vec::new());
    let open = stripe_on_pages::open(index, &entry)?;
    let column = access_method::attributes(index).len();
    checked::roots(&open.reader, &Pages::new(index, &entry), column, 0..u64::from(slot.rows))
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
