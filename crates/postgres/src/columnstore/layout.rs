//! The pages of the index's file that say what it has, as bytes.
//!
//! | page | from byte 64 on |
//! | --- | --- |
//! | metapage, block 0 | the places of 2,000 root pages (u32 each; 0: none), that of the page of free runs, and the region where a refresh goes on (u32) |
//! | root page | the places of the region pages of 2,000 regions |
//! | region page | 15 slots of 64 bytes, each a copy; from byte 1024 on an entry for each of 2,048 heap blocks |
//! | page of free runs | up to 500 runs (first block u32, blocks u32, full transaction id u64) |
//! | stripe page | as in a table (`storage::file::page_header`): bytes of a copy |
//!
//! Bytes 24..64 are the header: magic (u32), version (u16), zero (u16), storage id (u64), and what the kind
//! of page says (three u64). All numbers are little-endian. The server's page header says that a page has
//! neither line pointers nor a hole, so generic WAL records cover all of its bytes.
//!
//! An entry is 0 where a block has no copy, 1 to 15 for the slot that has it. A copy that is being made has
//! `PENDING` set. A copy is a run of stripe pages: the stripe, its summary, and the list of its blocks, each
//! with the number of its rows.

use std::ops::Range;

use pgrx::pg_sys::BlockNumber;

use crate::host::buffer::PAGE_BYTES;
use crate::storage::directory::StripeEntry;
use crate::storage::file::pages::BlockRun;

/// Heap blocks of a region.
pub const REGION_BLOCKS: u32 = 2048;
/// Copies of a region.
pub const SLOTS: u8 = 15;
/// An entry whose copy is being made.
pub const PENDING: u8 = 0x80;
/// Places on the metapage, and on a root page.
pub const PLACES: u32 = 2000;

const VERSION: u16 = 1;
const BODY: usize = 64;
const SLOT_BYTES: usize = 64;
const ENTRIES: usize = 1024;

/// The blocks of a region in a table of so many.
pub fn blocks_of(region: u32, blocks: BlockNumber) -> Range<BlockNumber> {
    let first = region * REGION_BLOCKS;
    first..first.saturating_add(REGION_BLOCKS).min(blocks)
}

/// A page as bytes.
pub type PageBytes = [u8; PAGE_BYTES];

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Block 0.
    Meta,
    /// Places of region pages.
    Root,
    /// A region.
    Region,
    /// Runs of replaced copies.
    Free,
}

impl Kind {
    const fn magic(self) -> u32 {
        u32::from_le_bytes(match self {
            Self::Meta => *b"CNIM",
            Self::Root => *b"CNIT",
            Self::Region => *b"CNIR",
            Self::Free => *b"CNIF",
        })
    }
}

fn u32_at(page: &[u8], at: usize) -> u32 {
    let bytes = page.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(page: &[u8], at: usize) -> u64 {
    let bytes = page.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = page.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}

/// Writes the header of a page of which all else is zero but the server's part.
pub fn begin(page: &mut [u8], kind: Kind, storage_id: u64) {
    if let Some(body) = page.get_mut(24..) {
        body.fill(0);
    }
    put(page, 24, &kind.magic().to_le_bytes());
    put(page, 28, &VERSION.to_le_bytes());
    put(page, 32, &storage_id.to_le_bytes());
}

/// The storage id of a page of this kind. None if the page is no such page.
pub fn storage_id(page: &[u8], kind: Kind) -> Option<u64> {
    let version = page.get(28..).and_then(<[u8]>::first_chunk).map(|bytes| u16::from_le_bytes(*bytes));
    (u32_at(page, 24) == kind.magic() && version == Some(VERSION)).then(|| u64_at(page, 32))
}

/// The number of the next copy, of a metapage.
pub fn next_copy(page: &[u8]) -> u64 {
    u64_at(page, 40).max(1)
}

/// Sets it.
pub fn set_next_copy(page: &mut [u8], number: u64) {
    put(page, 40, &number.to_le_bytes());
}

/// How many regions have a page; of a metapage.
pub fn region_count(page: &[u8]) -> u64 {
    u64_at(page, 56)
}

/// Sets it.
pub fn set_region_count(page: &mut [u8], regions: u64) {
    put(page, 56, &regions.to_le_bytes());
}

/// A place on the metapage or a root page. None: there is nothing.
pub fn place(page: &[u8], at: u32) -> Option<u32> {
    let at = BODY + 4 * at.min(FREE_PAGE) as usize;
    Some(u32_at(page, at)).filter(|&block| block != 0)
}

/// Sets it.
pub fn set_place(page: &mut [u8], at: u32, block: u32) {
    put(page, BODY + 4 * at as usize, &block.to_le_bytes());
}

/// Which place of a metapage is that of the page of free runs.
pub const FREE_PAGE: u32 = PLACES;
/// Where a metapage has the region where a refresh goes on.
const NEXT_REGION: usize = BODY + 4 * (FREE_PAGE as usize + 1);
/// Runs on a page of free runs.
pub const FREE_RUNS: usize = 500;
const FREE_RUN_BYTES: usize = 16;

/// A run of pages that no region names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeRun {
    /// First block.
    pub first_block: u32,
    /// Number of blocks.
    pub block_count: u32,
    /// The transaction id, with its epoch, that was next when no region named it any more. Older snapshots
    /// may be reading it.
    pub since: u64,
}

impl FreeRun {
    /// The block after its last one.
    pub const fn end(&self) -> u32 {
        self.first_block.saturating_add(self.block_count)
    }
}

/// The region where a refresh goes on; of a metapage.
pub fn next_region(page: &[u8]) -> u32 {
    u32_at(page, NEXT_REGION)
}

/// Sets it.
pub fn set_next_region(page: &mut [u8], region: u32) {
    put(page, NEXT_REGION, &region.to_le_bytes());
}

/// The runs on a page of free runs.
pub fn free_runs(page: &[u8]) -> Vec<FreeRun> {
    let count = (u32_at(page, 40) as usize).min(FREE_RUNS);
    let places = (0..count).map(|at| BODY + at * FREE_RUN_BYTES);
    places
        .map(|at| FreeRun {
            first_block: u32_at(page, at),
            block_count: u32_at(page, at + 4),
            since: u64_at(page, at + 8),
        })
        .collect()
}

/// Sets them: as many as fit.
pub fn set_free_runs(page: &mut [u8], runs: &[FreeRun]) {
    let count = runs.len().min(FREE_RUNS);
    put(page, 40, &(count as u32).to_le_bytes());
    for (at, run) in (0..).map(|at| BODY + at * FREE_RUN_BYTES).zip(runs.iter().take(count)) {
        put(page, at, &run.first_block.to_le_bytes());
        put(page, at + 4, &run.block_count.to_le_bytes());
        put(page, at + 8, &run.since.to_le_bytes());
    }
}

/// Which region a region page is of.
pub fn region(page: &[u8]) -> u32 {
    u32_at(page, 40)
}

/// Sets it.
pub fn set_region(page: &mut [u8], region: u32) {
    put(page, 40, &region.to_le_bytes());
}

/// The entry of a block, by its place in the region.
pub fn entry(page: &[u8], at: usize) -> u8 {
    page.get(ENTRIES + at).copied().unwrap_or(0)
}

/// All entries of a region page.
pub fn entries(page: &[u8]) -> &[u8] {
    page.get(ENTRIES..ENTRIES + REGION_BLOCKS as usize).unwrap_or(&[])
}

/// All entries of a region page, to be changed.
pub fn entries_mut(page: &mut [u8]) -> &mut [u8] {
    page.get_mut(ENTRIES..ENTRIES + REGION_BLOCKS as usize).unwrap_or(&mut [])
}

/// Whether an entry names a slot, a pending one among them.
pub fn is_named(entries: &[u8], slot: u8) -> bool {
    entries.iter().any(|entry| entry & !PENDING == slot)
}

/// The slots whose copies count for at least one block, with the number of these blocks.
pub fn counting_slots(entries: &[u8]) -> impl Iterator<Item = (u8, u32)> {
    let mut blocks = [0; SLOTS as usize + 1];
    for &entry in entries {
        if let Some(blocks) = blocks.get_mut(usize::from(entry)) {
            *blocks += 1;
        }
    }
    (0..).zip(blocks).skip(1).filter(|&(_, blocks)| blocks > 0)
}

/// Where a copy is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot {
    /// Number of the copy, never used twice in a file.
    pub copy: u64,
    /// First block of its run.
    pub first_block: u32,
    /// Blocks of its run.
    pub block_count: u32,
    /// Rows.
    pub rows: u32,
    /// Bytes of the stripe's footer.
    pub footer_length: u32,
    /// Where in the stripe it begins.
    pub footer_offset: u64,
    /// Bytes of the stripe.
    pub stripe_bytes: u64,
    /// Bytes of the summary behind it.
    pub summary_bytes: u32,
    /// Blocks in the list behind that.
    pub blocks: u32,
}

/// Bytes of a block in the list of a copy's blocks: its place in the region, and its rows.
pub const LISTED: usize = 4;

impl Slot {
    /// The number of the copy's first row: no other copy of the file has it.
    pub const fn first_row(&self) -> u64 {
        self.copy << 32
    }

    /// The run of pages.
    pub const fn run(&self) -> BlockRun {
        BlockRun { first_block: self.first_block, block_count: self.block_count }
    }

    /// Where in the run the summary lies, and the list of blocks.
    pub fn tail(&self) -> (std::ops::Range<u64>, std::ops::Range<u64>) {
        let summary = self.stripe_bytes..self.stripe_bytes.saturating_add(self.summary_bytes.into());
        let list = u64::from(self.blocks).saturating_mul(LISTED as u64);
        (summary.clone(), summary.end..summary.end.saturating_add(list))
    }

    /// The copy as a stripe of a directory.
    pub fn stripe(&self, storage_id: u64, summary: Vec<u8>) -> StripeEntry {
        StripeEntry {
            run: self.run(),
            byte_length: self.stripe_bytes,
            footer_offset: self.footer_offset,
            footer_length: self.footer_length,
            summary,
            reserved_only: false,
            ..StripeEntry::reservation(storage_id, self.first_row(), self.rows)
        }
    }
}

/// The copy of a slot, 1 to 15. Its number is 0 if there is none.
pub fn slot(page: &[u8], number: u8) -> Slot {
    let at = BODY + SLOT_BYTES * usize::from(number.saturating_sub(1));
    Slot {
        copy: u64_at(page, at),
        first_block: u32_at(page, at + 8),
        block_count: u32_at(page, at + 12),
        rows: u32_at(page, at + 16),
        footer_length: u32_at(page, at + 20),
        footer_offset: u64_at(page, at + 24),
        stripe_bytes: u64_at(page, at + 32),
        summary_bytes: u32_at(page, at + 40),
        blocks: u32_at(page, at + 44),
    }
}

/// Sets it.
pub fn set_slot(page: &mut [u8], number: u8, slot: &Slot) {
    let at = BODY + SLOT_BYTES * usize::from(number.saturating_sub(1));
    put(page, at, &slot.copy.to_le_bytes());
    put(page, at + 8, &slot.first_block.to_le_bytes());
    put(page, at + 12, &slot.block_count.to_le_bytes());
    put(page, at + 16, &slot.rows.to_le_bytes());
    put(page, at + 20, &slot.footer_length.to_le_bytes());
    put(page, at + 24, &slot.footer_offset.to_le_bytes());
    put(page, at + 32, &slot.stripe_bytes.to_le_bytes());
    put(page, at + 40, &slot.summary_bytes.to_le_bytes());
    put(page, at + 44, &slot.blocks.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_on_a_page_is_found_there() {
        let mut page = [0xAAu8; PAGE_BYTES];
        begin(&mut page, Kind::Region, 77);
        assert_eq!(storage_id(&page, Kind::Region), Some(77));
        assert_eq!(storage_id(&page, Kind::Root), None);
        set_region(&mut page, 5);
        for number in 1..=SLOTS {
            let copy = u64::from(number);
            set_slot(
                &mut page,
                number,
                &Slot {
                    copy,
                    first_block: 9,
                    block_count: 8,
                    rows: 7,
                    footer_length: 6,
                    footer_offset: 5,
                    stripe_bytes: 4,
                    summary_bytes: 3,
                    blocks: 2,
                },
            );
        }
        entries_mut(&mut page)[2047] = PENDING | 15;
        for number in 1..=SLOTS {
            assert_eq!(slot(&page, number).copy, u64::from(number));
            assert_eq!(slot(&page, number).blocks, 2);
        }
        assert_eq!((region(&page), entry(&page, 2047), entry(&page, 0)), (5, PENDING | 15, 0));
        assert_eq!(entries(&page).len(), 2048);
    }

    #[test]
    fn free_runs_fill_a_page() {
        let mut page = [0u8; PAGE_BYTES];
        begin(&mut page, Kind::Free, 1);
        assert_eq!(free_runs(&page), []);
        let runs: Vec<FreeRun> = (1..=FREE_RUNS as u32 + 1)
            .map(|n| FreeRun { first_block: n, block_count: 2 * n, since: u64::from(n) << 33 })
            .collect();
        set_free_runs(&mut page, &runs);
        assert_eq!(free_runs(&page), runs[..FREE_RUNS]);
        set_free_runs(&mut page, &runs[3..5]);
        assert_eq!(free_runs(&page), runs[3..5]);
    }

    #[test]
    fn places_fill_a_page() {
        let mut page = [0u8; PAGE_BYTES];
        begin(&mut page, Kind::Meta, 1);
        set_next_copy(&mut page, 12);
        set_region_count(&mut page, 14);
        set_place(&mut page, 0, 3);
        set_place(&mut page, PLACES - 1, 4);
        assert_eq!(place(&page, FREE_PAGE), None);
        set_place(&mut page, FREE_PAGE, 5);
        set_next_region(&mut page, 6);
        assert_eq!((place(&page, FREE_PAGE), next_region(&page)), (Some(5), 6));
        assert_eq!((place(&page, 0), place(&page, 1), place(&page, PLACES - 1)), (Some(3), None, Some(4)));
        assert_eq!((next_copy(&page), region_count(&page)), (12, 14));
    }
}
