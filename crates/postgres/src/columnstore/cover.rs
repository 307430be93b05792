//! What of a table a scan reads from copies, and what from the heap.
//!
//! Asked once, when a scan starts, after its snapshot was taken. A region is judged at one moment, by two
//! looks in this order: the visibility map, then the region's page. The other order is wrong: between the
//! looks a VACUUM could take a copy's entry away because a row is dead, and then set the block's bit.

use std::ops::Range;

use pgrx::pg_sys::{self, BlockNumber, Snapshot};

use super::layout::{LISTED, REGION_BLOCKS, SLOTS, Slot};
use super::regions::{self, Region};
use super::stop::{self, Step};
use super::visibility;
use crate::compat;
use crate::host::relation::Open;
use crate::host::{error, predicate_locks};
use crate::storage::directory::StripeEntry;
use crate::storage::file::hot_runs::Span;
use crate::storage::file::pages;

/// What a scan reads.
#[derive(Default)]
pub struct Cover {
    /// Copies of which at least one block counts.
    pub stripes: Vec<StripeEntry>,
    /// Their rows that do not count, by number, ascending.
    pub elsewhere: Vec<Range<u64>>,
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
    /// Read from the heap because somebody may not see all of their rows.
    pub not_visible: u64,
    /// Read from the heap because they have no copy that counts.
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

/// Judges all blocks that the table has now.
///
/// # Safety
/// Both are open and locked, and the scan's snapshot was taken before.
pub unsafe fn take(index: Open, heap: Open, uses_copies: bool) -> Cover {
    let blocks = heap.block_count();
    let mut cover = Cover::default();
    for region in 0..blocks.div_ceil(REGION_BLOCKS) {
        pgrx::check_for_interrupts!();
        let first = region * REGION_BLOCKS;
        let here = first..first.saturating_add(REGION_BLOCKS).min(blocks);
        if !uses_copies {
            cover.counts.not_copied += u64::from(here.end - here.start);
            cover.read_from_heap(here);
            continue;
        }
        // SAFETY: the caller's promise.
        unsafe {
            let visible = visibility::visible(heap, here.clone());
            stop::after(Step::Looked);
            let known = match visible.contains(&true) {
                true => regions::load(index, region),
                false => None,
            };
            cover.judge(index, here, &visible, known.as_ref());
        }
    }
    // Slots are in no order of their copies' numbers.
    cover.elsewhere.sort_unstable_by_key(|rows| rows.start);
    cover
}

impl Cover {
    fn read_from_heap(&mut self, blocks: Range<BlockNumber>) {
        match self.loose.last_mut() {
            Some(last) if last.end == blocks.start => last.end = blocks.end,
            _ => self.loose.push(Span { start: blocks.start, end: blocks.end }),
        }
    }

    unsafe fn judge(
        &mut self,
        index: Open,
        here: Range<BlockNumber>,
        visible: &[bool],
        known: Option<&Region>,
    ) {
        let entries = known.map_or(&[][..], Region::entries);
        let mut counted = [0; SLOTS as usize + 1];
        for (at, (block, &visible)) in here.zip(visible).enumerate() {
            let entry = entries.get(at).copied().unwrap_or(0);
            match counted.get_mut(usize::from(entry)).filter(|_| visible && entry != 0) {
                Some(counted) => {
                    *counted += 1;
                    self.counts.clean += 1;
                }
                None => {
                    *(if visible { &mut self.counts.not_copied } else { &mut self.counts.not_visible }) += 1;
                    self.read_from_heap(block..block + 1);
                }
            }
        }
        let Some(region) = known else { return };
        for (number, counted) in
            (1..=SLOTS).zip(counted.into_iter().skip(1)).filter(|(_, counted)| *counted > 0)
        {
            let slot = region.slot(number);
            let (summary, list) = slot.tail();
            self.stripes
                .push(slot.stripe(region.storage_id, read_tail(index, region.storage_id, &slot, summary)));
            if counted == slot.blocks {
                continue;
            }
            let list = read_tail(index, region.storage_id, &slot, list);
            let counts = |block: u16| {
                let at = usize::from(block);
                visible.get(at) == Some(&true) && entries.get(at) == Some(&number)
            };
            for (rows, block) in rows_of_blocks(&list, slot.first_row()) {
                if !counts(block) {
                    match self.elsewhere.last_mut() {
                        Some(last) if last.end == rows.start => last.end = rows.end,
                        _ => self.elsewhere.push(rows),
                    }
                }
            }
        }
    }
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
