//! What of a table a scan reads from copies, and what from the heap.
//!
//! A scan may need the columns of several indexes. Then a block is read from copies where all of them have
//! it, in copies of the same blocks: each row has one place in all of them (`copy` puts rows in the order of
//! their places in indexes), so the copies lie side by side.
//!
//! A block is *clean* if everybody sees all of its rows: then the copy is read as it is. It is *checked* if
//! it has a copy and its bit of the visibility map is clear: then its page is asked which rows the snapshot
//! sees (`checked`). All other blocks are *loose* and read from the heap.
//!
//! Asked once, when a scan starts, after its snapshot was taken. A region is judged at one moment, by two
//! looks in this order: the visibility map, then the region's page. The other order is wrong: between the
//! looks a VACUUM could take a copy's entry away because a row is dead, and then set the block's bit.

use std::ops::Range;

use pgrx::pg_sys::{self, BlockNumber, Snapshot};

use super::checked::CheckedBlock;
use super::layout::{self, LISTED, REGION_BLOCKS, SLOTS, Slot};
use super::regions::{self, Region};
use super::stop::{self, Step};
use super::visibility;
use crate::compat;
use crate::host::relation::Open;
use crate::host::{error, predicate_locks};
use crate::storage::directory::StripeEntry;
use crate::storage::file::hot_runs::Span;
use crate::storage::file::pages;
use crate::storage::read::stripe_on_pages;

/// What a scan reads.
#[derive(Default)]
pub struct Cover {
    /// Copies of which at least one block counts, of each index. Those at one position lie side by side.
    pub stripes: Vec<Vec<StripeEntry>>,
    /// Their rows that do not count, by number, ascending.
    pub elsewhere: Vec<Range<u64>>,
    /// Blocks of which a page says which rows count, in the order of their rows' numbers.
    pub checked: Vec<CheckedBlock>,
    /// Blocks to be read from the heap.
    pub loose: Vec<Span>,
    /// How many blocks are of which kind.
    pub counts: Counts,
}

/// Blocks of a table, as a scan met them.
#[derive(Default, Clone, Copy)]
pub struct Counts {
    /// Read from copies.
    pub clean: u64,
    /// Read from copies, after a look at the page.
    pub checked: u64,
    /// Read from the heap because they have no copy that counts, and somebody may not see all of their rows.
    pub not_visible: u64,
    /// Read from the heap because they have no copy that counts, although everybody sees all of their rows.
    pub not_copied: u64,
}

/// Whether a scan with this snapshot may use copies. A serializable transaction reads the heap, as a row that
/// is deleted beside it would not be noticed otherwise; so do snapshots that do not see what was committed
/// at one moment.
///
/// # Safety
/// The snapshot is live.
pub unsafe fn may_use_copies(snapshot: Snapshot) -> bool {
    // SAFETY: the caller's promise.
    let is_mvcc = unsafe { (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC };
    is_mvcc && !predicate_locks::is_serializable() && !compat::snapshots_become_too_old()
}

/// Most indexes whose columns a scan puts together.
pub const MOST_INDEXES: usize = 16;

/// The slots of a block's copies, four bits for each index. 0: it is read from the heap.
pub type Slots = u64;

fn slot_of(slots: Slots, index: usize) -> u8 {
    (slots >> (4 * index)) as u8 & SLOTS
}

/// Judges all blocks that the table has now.
///
/// # Safety
/// All are open and locked, and the scan's snapshot was taken before. There is an index, and `MOST_INDEXES`
/// at most.
pub unsafe fn take(indexes: &[Open], heap: Open, uses_copies: bool) -> Cover {
    let blocks = heap.block_count();
    let mut cover = Cover { stripes: vec![Vec::new(); indexes.len()], ..Cover::default() };
    // Since 17 `ALTER TABLE ONLY ... SET EXPRESSION` on a partitioned table leaves the indexes of its
    // partitions without a page.
    let uses_copies = uses_copies && indexes.iter().all(|index| index.block_count() > 0);
    for region in 0..blocks.div_ceil(REGION_BLOCKS) {
        pgrx::check_for_interrupts!();
        let here = layout::blocks_of(region, blocks);
        if !uses_copies {
            cover.counts.not_copied += u64::from(here.end - here.start);
            cover.read_from_heap(here);
            continue;
        }
        // SAFETY: the caller's promise.
        let visible = unsafe { visibility::visible(heap, region, blocks) };
        stop::after(Step::Looked);
        let known: Option<Vec<Region>> = indexes.iter().map(|&index| regions::load(index, region)).collect();
        cover.judge(indexes, here, &visible, &known.unwrap_or_default());
    }
    // Slots are in no order of their copies' numbers.
    cover.elsewhere.sort_unstable_by_key(|rows| rows.start);
    cover.checked.sort_unstable_by_key(|block| block.rows.start);
    // SAFETY: no page is locked.
    unsafe { stop::after(Step::Judged) };
    cover
}

impl Cover {
    fn read_from_heap(&mut self, blocks: Range<BlockNumber>) {
        match self.loose.last_mut() {
            Some(last) if last.end == blocks.start => last.end = blocks.end,
            _ => self.loose.push(Span { start: blocks.start, end: blocks.end }),
        }
    }

    /// Judges the blocks of a region, as it is in each index; `known` is empty where it is not in all.
    fn judge(&mut self, indexes: &[Open], here: Range<BlockNumber>, visible: &[bool], known: &[Region]) {
        let (slots, used) = copied(indexes, visible.len(), known);
        let mut end = here.start;
        for (run, visible) in runs(&slots, visible) {
            let start = end;
            end += run.len() as u32;
            let all_visible = visible.iter().filter(|visible| **visible).count() as u64;
            let others = visible.len() as u64 - all_visible;
            if run.first() == Some(&0) {
                self.counts.not_copied += all_visible;
                self.counts.not_visible += others;
                self.read_from_heap(start..end);
            } else {
                self.counts.clean += all_visible;
                self.counts.checked += others;
            }
        }
        for (named, counted) in used {
            for (at, ((&index, known), stripes)) in
                indexes.iter().zip(known).zip(&mut self.stripes).enumerate()
            {
                let slot = known.slot(slot_of(named, at));
                let summary = read_tail(index, known.storage_id, &slot, slot.tail().0);
                stripes.push(slot.stripe(known.storage_id, summary));
            }
            let (Some(&index), Some(known)) = (indexes.first(), known.first()) else { continue };
            let slot = known.slot(slot_of(named, 0));
            let is_checked = |at: usize| visible.get(at) == Some(&false);
            let checks = slots.iter().enumerate().any(|(at, slots)| *slots == named && is_checked(at));
            if counted == slot.blocks && !checks {
                continue;
            }
            let stripe = self.stripes.first().map_or(0, |stripes| stripes.len().saturating_sub(1));
            let list = read_tail(index, known.storage_id, &slot, slot.tail().1);
            let listed = rows_of_blocks(&list, slot.first_row());
            for (rows, block) in listed.filter(|(rows, _)| !rows.is_empty()) {
                if slots.get(usize::from(block)) == Some(&named) {
                    if is_checked(usize::from(block)) {
                        let block = here.start + u32::from(block);
                        self.checked.push(CheckedBlock::new(rows, block, stripe));
                    }
                } else {
                    match self.elsewhere.last_mut() {
                        Some(last) if last.end == rows.start => last.end = rows.end,
                        _ => self.elsewhere.push(rows),
                    }
                }
            }
        }
    }
}

/// The slots of each of the first `blocks` blocks of a region, and each combination of slots with the number
/// of its blocks. The region is given as it is in each index; `known` is empty where it is not in all.
pub fn copied(indexes: &[Open], blocks: usize, known: &[Region]) -> (Vec<Slots>, Vec<(Slots, u32)>) {
    let mut slots = slots_of_blocks(blocks, known);
    let mut used = used_slots(&slots);
    if known.len() > 1 {
        keep_side_by_side(indexes, known, &mut used);
        let is_kept = |slots: &Slots| used.iter().any(|(kept, _)| kept == slots);
        slots.iter_mut().filter(|slots| !is_kept(slots)).for_each(|slots| *slots = 0);
    }
    (slots, used)
}

/// The slots of each block that all indexes have a copy of.
fn slots_of_blocks(blocks: usize, known: &[Region]) -> Vec<Slots> {
    let mut slots: Vec<Slots> = vec![0; blocks];
    for (index, region) in known.iter().enumerate() {
        for (slots, &entry) in slots.iter_mut().zip(region.entries()) {
            let has_copy = (1..=SLOTS).contains(&entry) && (index == 0 || *slots != 0);
            *slots = if has_copy { *slots | Slots::from(entry) << (4 * index) } else { 0 };
        }
    }
    slots
}

/// Blocks side by side with the same slots, and which of them are all-visible. Blocks come in long runs, so
/// little is done for each.
fn runs<'a>(slots: &'a [Slots], visible: &'a [bool]) -> impl Iterator<Item = (&'a [Slots], &'a [bool])> {
    let mut rest = visible;
    slots.chunk_by(PartialEq::eq).map(move |run| {
        let (visible, after) = rest.split_at(run.len().min(rest.len()));
        rest = after;
        (run, visible)
    })
}

/// Each combination of slots, with the number of its blocks.
fn used_slots(of_blocks: &[Slots]) -> Vec<(Slots, u32)> {
    let mut used: Vec<(Slots, u32)> = Vec::new();
    for run in of_blocks.chunk_by(PartialEq::eq) {
        let Some(&slots) = run.first().filter(|slots| **slots != 0) else { continue };
        match used.iter_mut().find(|(found, _)| *found == slots) {
            Some((_, blocks)) => *blocks += run.len() as u32,
            None => used.push((slots, run.len() as u32)),
        }
    }
    used.sort_unstable();
    used
}

/// Leaves those combinations whose copies have the same rows in the same order. No copy of the first index is
/// in two: its numbers are those of the rows.
fn keep_side_by_side(indexes: &[Open], known: &[Region], used: &mut Vec<(Slots, u32)>) {
    used.sort_unstable_by_key(|&(slots, blocks)| (std::cmp::Reverse(blocks), slots));
    let mut taken: Vec<u8> = Vec::new();
    used.retain(|&(slots, _)| {
        let first = slot_of(slots, 0);
        let fits = !taken.contains(&first) && fit(indexes, known, slots);
        if fits {
            taken.push(first);
        }
        fits
    });
    used.sort_unstable();
}

/// Whether copies have the same blocks with as many rows, in chunks of the same sizes.
fn fit(indexes: &[Open], known: &[Region], slots: Slots) -> bool {
    let mut first = None;
    indexes.iter().zip(known).enumerate().all(|(at, (&index, known))| {
        let slot = known.slot(slot_of(slots, at));
        let list = read_tail(index, known.storage_id, &slot, slot.tail().1);
        let entry = slot.stripe(known.storage_id, Vec::new());
        let open = stripe_on_pages::open(index, &entry)
            .unwrap_or_else(|problem| error::raise_stripe(index, slot.first_row(), problem));
        match &first {
            None => {
                first = Some((list, open));
                true
            }
            Some((blocks, copy)) => *blocks == list && copy.reader.fits(&open.reader),
        }
    })
}

/// The rows of each block of a copy, by number.
pub fn rows_of_blocks(list: &[u8], first_row: u64) -> impl Iterator<Item = (Range<u64>, u16)> {
    let mut at = first_row;
    list.as_chunks::<LISTED>().0.iter().map(move |&[a, b, c, d]| {
        let (block, rows) = (u16::from_le_bytes([a, b]), u64::from(u16::from_le_bytes([c, d])));
        let start = at;
        at += rows;
        (start..at, block)
    })
}

/// A part of what lies behind a copy's stripe (`Slot::tail`): its summary, or the list of its blocks.
pub fn read_tail(index: Open, storage_id: u64, slot: &Slot, part: Range<u64>) -> Vec<u8> {
    let expected = pages::Expected { storage_id, first_row: slot.first_row() };
    let mut bytes = Vec::new();
    // SAFETY: no strategy.
    let read =
        unsafe { pages::read_range(index, slot.run(), expected, part, std::ptr::null_mut(), &mut bytes) };
    match read {
        Ok(()) => bytes,
        Err(problem) => error::raise_stripe(index, slot.first_row(), problem),
    }
}
