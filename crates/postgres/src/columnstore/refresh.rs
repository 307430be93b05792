//! Which heap blocks are copied, and when their copy counts.
//!
//! The steps for a region, of which one session at a time goes through them:
//! 1. Under the region page's lock the entries of the chosen blocks become *pending*.
//! 2. Each block is copied if it is all-visible then (`copy`).
//! 3. The copy is written.
//! 4. Under the region page's lock, entries that are still pending come to name the copy if their block was
//!    copied, and none if not.
//!
//! Whoever changes a block in between sets its entry to none, and so step 4 leaves it alone.
//!
//! A region has few slots. If most are used, or many copied rows do not count any more, all of its blocks are
//! copied anew.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Buffer, Datum, FunctionCallInfo, Oid};

use super::layout::{self, LISTED, PENDING, REGION_BLOCKS, SLOTS, Slot};
use super::stop::{self, Step};
use super::{access_method, copy, options, regions, visibility};
use crate::host::relation::{Open, with_index, with_table};
use crate::host::{error, fmgr, memory};
use crate::options::maintenance;
use crate::storage::file::pages::{self, PageOwner};

/// If this many slots are used, a region is copied anew.
const MANY_SLOTS: usize = 8;

/// What was found and done.
#[derive(Default)]
pub struct Done {
    /// Live rows of the table.
    pub rows: u64,
    /// Blocks that have a copy now.
    pub covered: u64,
    /// Blocks that were copied.
    pub copied: u64,
}

/// Copies what is all-visible and has no copy, region by region. Bits of the visibility map are set where
/// VACUUM would set them, and live rows are counted.
///
/// # Safety
/// The table is locked so that no VACUUM runs, the index so that nobody else makes copies. A snapshot is
/// active.
pub unsafe fn refresh(index: Open, heap: Open) -> Done {
    let mut done = Done::default();
    let attributes = access_method::attributes(index);
    let blocks = heap.block_count();
    for region in 0..blocks.div_ceil(REGION_BLOCKS) {
        // SAFETY: the caller's promise.
        unsafe { refresh_region(index, heap, &attributes, region, blocks, &mut done) };
    }
    // SAFETY: the caller's promise.
    unsafe { regions::note_covered(index, done.covered) };
    done
}

unsafe fn refresh_region(
    index: Open,
    heap: Open,
    attributes: &[usize],
    region: u32,
    blocks: u32,
    done: &mut Done,
) {
    let first = region * REGION_BLOCKS;
    let oldest = heap.oldest_xmin();
    let mut map: Buffer = 0;
    let mut visible = Vec::new();
    for (at, block) in (0..).zip(first..(first + REGION_BLOCKS).min(blocks)) {
        pgrx::check_for_interrupts!();
        // SAFETY: the caller's promise.
        let settled = unsafe { visibility::settle(heap, block, oldest, &mut map) };
        done.rows += settled.rows;
        if settled.visible {
            visible.push(at);
        }
    }
    if map != 0 {
        // SAFETY: pinned by `settle`.
        unsafe { pg_sys::ReleaseBuffer(map) };
    }
    let known = regions::load(index, region);
    let entry =
        |at: u16| known.as_ref().and_then(|known| known.entries().get(usize::from(at)).copied()).unwrap_or(0);
    let has_copy = |at: &u16| (1..=SLOTS).contains(&entry(*at));
    let mut chosen: Vec<u16> = visible.iter().copied().filter(|at| !has_copy(at)).collect();
    if !chosen.is_empty() && known.as_ref().is_some_and(is_worn) {
        chosen.clone_from(&visible);
    }
    done.covered += (visible.len() - chosen.len()) as u64;
    if chosen.is_empty() {
        return;
    }
    // SAFETY: the caller's promise.
    let place = unsafe { regions::ensure(index, region) };
    let mut left = chosen.as_slice();
    while !left.is_empty() {
        // SAFETY: the caller's promise.
        let Some((taken, rest)) = (unsafe { copy_some(index, heap, attributes, (region, place), left) })
        else {
            break;
        };
        done.covered += taken;
        done.copied += taken;
        left = rest;
    }
}

/// Whether a region is better copied anew as a whole: most slots are used, or a quarter of the copied rows do
/// not count.
fn is_worn(region: &regions::Region) -> bool {
    let mut blocks = [0u32; SLOTS as usize + 1];
    for &entry in region.entries() {
        if let Some(count) = blocks.get_mut(usize::from(entry)) {
            *count += 1;
        }
    }
    let used: Vec<u8> =
        (1..=SLOTS).filter(|&slot| blocks.get(usize::from(slot)).is_some_and(|&count| count > 0)).collect();
    let copied: u32 = used.iter().map(|&slot| region.slot(slot).blocks).sum();
    let counted: u32 = blocks.iter().skip(1).sum();
    used.len() >= MANY_SLOTS || (copied - counted.min(copied)) * 4 > copied
}

/// Copies as many of these blocks as fit into a copy. Returns how many blocks it counts for, and the blocks
/// that are left. None: no slot is free.
unsafe fn copy_some<'a>(
    index: Open,
    heap: Open,
    attributes: &[usize],
    (region, place): (u32, u32),
    blocks: &'a [u16],
) -> Option<(u64, &'a [u16])> {
    // SAFETY: the caller's promise. Locks of pages are held within `change` only.
    unsafe {
        let mut slot = 0;
        regions::change(index, place, |page| {
            let entries = layout::entries_mut(page);
            for &at in blocks {
                if let Some(entry) = entries.get_mut(usize::from(at)) {
                    *entry = 0;
                }
            }
            slot =
                (1..=SLOTS).find(|slot| !entries.iter().any(|entry| entry & !PENDING == *slot)).unwrap_or(0);
            if slot != 0 {
                for &at in blocks {
                    if let Some(entry) = entries.get_mut(usize::from(at)) {
                        *entry = PENDING | slot;
                    }
                }
            }
        });
        if slot == 0 {
            return None;
        }
        stop::after(Step::Chosen);
        let copied = copy::copy(heap, attributes, region * REGION_BLOCKS, blocks);
        let made = write(index, &copied);
        stop::after(Step::Written);
        let mut taken = 0;
        regions::change(index, place, |page| {
            layout::set_slot(page, slot, &made);
            let entries = layout::entries_mut(page);
            for (at, _) in &copied.blocks {
                if let Some(entry) =
                    entries.get_mut(usize::from(*at)).filter(|entry| **entry == PENDING | slot)
                {
                    *entry = slot;
                    taken += 1;
                }
            }
            entries.iter_mut().filter(|entry| **entry == PENDING | slot).for_each(|entry| *entry = 0);
        });
        Some((taken, blocks.get(copied.looked_at..).unwrap_or(&[])))
    }
}

/// Writes a copy behind the others of the file.
unsafe fn write(index: Open, copied: &copy::Copied) -> Slot {
    // SAFETY: the caller's promise: nobody else makes copies in this index.
    unsafe {
        let encoded =
            match stripe::write_stripe(copied.rows, &copied.columns, &options::stripe_options(index)) {
                Ok(encoded) => encoded,
                Err(problem) => error::raise_plain(problem),
            };
        let copy = regions::take_copy_number(index);
        let mut slot = Slot {
            copy,
            rows: copied.rows,
            footer_length: encoded.footer_length,
            footer_offset: encoded.footer_offset,
            stripe_bytes: encoded.bytes.len() as u64,
            summary_bytes: encoded.summary.len() as u32,
            blocks: copied.blocks.len() as u32,
            ..Slot::default()
        };
        let mut bytes = encoded.bytes;
        memory::expect(bytes.len() + encoded.summary.len());
        bytes.extend_from_slice(&encoded.summary);
        bytes.reserve(copied.blocks.len() * LISTED);
        for (block, rows) in &copied.blocks {
            bytes.extend_from_slice(&block.to_le_bytes());
            bytes.extend_from_slice(&rows.to_le_bytes());
        }
        let owner = PageOwner::current(regions::storage_id(index), slot.first_row());
        let run = pages::append_run(index, &bytes, owner, pages::FileOf::Index);
        (slot.first_block, slot.block_count) = (run.first_block, run.block_count);
        slot
    }
}

crate::sql_function!(pg_finfo_colonnade_columnstore_refresh);

/// `engine.columnstore_refresh(regclass)`: how many blocks were copied.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_columnstore_refresh(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the argument is an OID.
    unsafe {
        let Some(index) = fmgr::argument(call, 0).map(|value| Oid::from(value.value() as u32)) else {
            return fmgr::return_null(call);
        };
        let table = access_method::table_of(index);
        maintenance::check_maintainer(table);
        // As VACUUM locks it.
        let copied = with_table(table, pg_sys::ShareUpdateExclusiveLock, |heap| {
            with_index(index, pg_sys::ShareUpdateExclusiveLock, |index| refresh(index, heap).copied)
        });
        Datum::from(copied)
    }
}
