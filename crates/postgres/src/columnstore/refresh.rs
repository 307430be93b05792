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

use pgrx::pg_sys::{self, Buffer, Oid};

use super::layout::{self, LISTED, PENDING, REGION_BLOCKS, SLOTS, Slot};
use super::stop::{self, Step};
use super::{access_method, copy, options, progress, regions, space, visibility};
use crate::host::relation::{Open, with_index, with_table};
use crate::host::{error, memory};
use crate::storage::file::pages::{self, PageOwner};

/// If this many slots are used, a region is copied anew.
const MANY_SLOTS: usize = 8;

/// Steps after which pages are looked for that nothing names, before a refresh has come to its end: it may be
/// stopped each time.
const STEPS_UNSWEPT: u32 = 64;

/// What was found and done.
#[derive(Default, Clone, Copy)]
pub struct Done {
    /// Live rows of the table, where all blocks were looked at.
    pub rows: u64,
    /// Blocks that have a copy now.
    pub covered: u64,
    /// Blocks that were copied.
    pub copied: u64,
    /// Blocks that have none now because not everybody sees all of their rows.
    pub not_visible: u64,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.covered += other.covered;
        self.copied += other.copied;
        self.not_visible += other.not_visible;
    }
}

/// A refresh: copies what is all-visible and has no copy. Bits of the visibility map are set where VACUUM
/// would set them. It is done in steps, each of which may be a transaction of its own.
#[derive(Default)]
pub struct Refresh {
    /// Whether all blocks are looked at, and live rows counted; else only blocks that are not read from
    /// copies.
    counts: bool,
    /// Fewest blocks of a region that are worth a copy.
    fewest: usize,
    /// The region that it began with: where the one before it ended.
    first: u32,
    /// How many regions were seen to.
    seen: u32,
    /// Steps since pages were looked for that nothing names.
    unswept: u32,
    /// What was done so far.
    pub done: Done,
}

impl Refresh {
    /// Begins with the region where the last refresh ended. Regions with fewer than `fewest` blocks to be
    /// copied are left alone.
    pub fn begin(fewest: usize) -> Self {
        Self { fewest, ..Self::default() }
    }

    /// Fills an index whose file is empty, in one transaction. Returns what was found and done.
    ///
    /// # Safety
    /// As `step`.
    pub unsafe fn build(index: Open, heap: Open) -> Done {
        let mut refresh = Self { counts: true, ..Self::default() };
        // SAFETY: the caller's promise.
        unsafe { while refresh.step(index, heap) {} }
        refresh.done
    }

    /// Goes on to the next region that has something to be copied. Returns whether there are more regions.
    /// After the last one comes the first.
    ///
    /// # Safety
    /// The table is locked so that no VACUUM runs, the index so that nobody else makes copies. A snapshot is
    /// active. The table and the index are the same each time.
    pub unsafe fn step(&mut self, index: Open, heap: Open) -> bool {
        let attributes = access_method::attributes(index);
        let blocks = heap.block_count();
        let regions = blocks.div_ceil(REGION_BLOCKS);
        let is_shown = progress::begin(index, heap);
        progress::regions(self.seen, regions);
        if self.seen == 0 {
            self.first = regions::next_region(index);
        }
        while self.seen < regions {
            let region = (self.first + self.seen) % regions;
            // SAFETY: the caller's promise.
            let done = unsafe { self.refresh_region(index, heap, &attributes, (region, blocks)) };
            self.done.add(done);
            self.seen += 1;
            if done.copied > 0 {
                self.unswept += 1;
                break;
            }
        }
        let has_more = self.seen < regions;
        let covered = self.done.covered;
        // SAFETY: the caller's promise.
        unsafe {
            // The regions that were not looked at yet have what they had before.
            let next = if has_more { (self.first + self.seen) % regions } else { 0 };
            regions::note_progress(
                index,
                |before| if has_more { before.max(covered) } else { covered },
                next,
            );
            if self.unswept >= if has_more { STEPS_UNSWEPT } else { 1 } {
                space::sweep(index);
                self.unswept = 0;
            }
        }
        if is_shown {
            progress::end();
        }
        has_more
    }

    unsafe fn refresh_region(
        &self,
        index: Open,
        heap: Open,
        attributes: &[usize],
        (region, blocks): (u32, u32),
    ) -> Done {
        let mut done = Done::default();
        let first = region * REGION_BLOCKS;
        let here = first..first.saturating_add(REGION_BLOCKS).min(blocks);
        // SAFETY: the caller's promise.
        let mut visible = unsafe { visibility::visible(heap, here.clone()) };
        let oldest = heap.oldest_xmin();
        let mut map: Buffer = 0;
        for (block, is_visible) in here.zip(&mut visible) {
            if *is_visible && !self.counts {
                continue;
            }
            pgrx::check_for_interrupts!();
            // SAFETY: the caller's promise.
            let settled = unsafe { visibility::settle(heap, block, oldest, &mut map) };
            done.rows += settled.rows;
            *is_visible = settled.visible;
        }
        if map != 0 {
            // SAFETY: pinned by `settle`.
            unsafe { pg_sys::ReleaseBuffer(map) };
        }
        let known = regions::load(index, region);
        let has_copy = |at: u16| {
            let entry = known.as_ref().and_then(|known| known.entries().get(usize::from(at)));
            entry.is_some_and(|entry| (1..=SLOTS).contains(entry))
        };
        let all_visible: Vec<u16> =
            (0..).zip(&visible).filter(|(_, visible)| **visible).map(|(at, _)| at).collect();
        let mut chosen: Vec<u16> = all_visible.iter().copied().filter(|&at| !has_copy(at)).collect();
        done.not_visible = (visible.len() - all_visible.len()) as u64;
        done.covered = (all_visible.len() - chosen.len()) as u64;
        if chosen.is_empty() || chosen.len() < self.fewest {
            return done;
        }
        if known.as_ref().is_some_and(is_worn) {
            chosen = all_visible;
            done.covered = 0;
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
        done
    }
}

/// A step of a refresh that nobody has asked for. Returns whether there are more regions. None: the table or
/// the index cannot be locked at once, is gone, or is to be left alone.
///
/// # Safety
/// In a transaction with an active snapshot. Locks are kept to its end.
pub unsafe fn try_refresh(table: Oid, index: Oid, refresh: &mut Refresh) -> Option<bool> {
    let lock = pg_sys::ShareUpdateExclusiveLock as i32;
    // SAFETY: what is locked is looked up afterwards.
    unsafe {
        let locked = pg_sys::ConditionalLockRelationOid(table, lock)
            && pg_sys::ConditionalLockRelationOid(index, lock);
        if !locked || pg_sys::IndexGetRelation(index, true) != table {
            return None;
        }
        with_table(table, pg_sys::NoLock, |heap| {
            with_index(index, pg_sys::NoLock, |index| {
                let may = index.kind() == pg_sys::RELKIND_INDEX
                    && access_method::is_ours(index)
                    && access_method::is_valid(index)
                    && options::is_refreshed(index)
                    && !heap.is_foreign_temporary();
                may.then(|| refresh.step(index, heap))
            })
        })
    }
}

/// Whether a region is better copied anew as a whole: most slots are used, or a quarter of the copied rows do
/// not count.
fn is_worn(region: &regions::Region) -> bool {
    let used: Vec<(u8, u32)> = layout::counting_slots(region.entries()).collect();
    let copied: u32 = used.iter().map(|&(slot, _)| region.slot(slot).blocks).sum();
    let counted: u32 = used.iter().map(|&(_, blocks)| blocks).sum();
    used.len() >= MANY_SLOTS || copied.saturating_sub(counted) * 4 > copied
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
            slot = (1..=SLOTS).find(|&slot| !layout::is_named(entries, slot)).unwrap_or(0);
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
        let made = write(index, heap, &copied);
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

/// Writes a copy where nobody reads any more, or behind the others of the file.
unsafe fn write(index: Open, heap: Open, copied: &copy::Copied) -> Slot {
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
        let run = match space::take(index, heap, pages::pages_of(bytes.len())) {
            Some(first_block) => pages::overwrite_run(index, first_block, &bytes, owner),
            None => pages::append_run(index, &bytes, owner, pages::FileOf::Index),
        };
        (slot.first_block, slot.block_count) = (run.first_block, run.block_count);
        slot
    }
}
