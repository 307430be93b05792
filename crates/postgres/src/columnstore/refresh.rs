//! Which heap blocks are copied, and when their copy counts.
//!
//! `making` has the steps for some blocks of a region.
//!
//! A region has few slots. If most are used, or many copied rows do not count any more, all of its blocks are
//! copied anew.
//!
//! The other columnstore indexes of the table are refreshed with the one that is asked for, as far as nobody
//! has them locked: scans read copies side by side that have the same blocks. Where copies of a block cannot
//! be read so, the block is copied anew.

use pgrx::pg_sys::{self, Buffer, Oid, Relation};

use super::layout::{self, REGION_BLOCKS};
use super::making::{self, Making, Target};
use super::{access_method, cover, options, progress, regions, space, visibility};
use crate::host::relation::{Open, with_index, with_table};

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
    /// Blocks of which not everybody sees all rows now. They may have a copy.
    pub not_visible: u64,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.covered += other.covered;
        self.copied += other.copied;
        self.not_visible += other.not_visible;
    }

    /// Brings a copy to its end.
    ///
    /// # Safety
    /// As `Making::finish`.
    unsafe fn finish(&mut self, making: Option<Making<'_>>) {
        if let Some(making) = making {
            // SAFETY: the caller's promise.
            let taken = unsafe { making.finish() };
            self.covered += taken;
            self.copied += taken;
        }
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
    /// The indexes that each step so far has seen to. None before the first step.
    together: Option<Vec<Oid>>,
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
        let is_shown = progress::begin(index, heap);
        let mut making = None;
        // SAFETY: the caller's promise.
        unsafe {
            while refresh.see_to_next(&[index], heap, &mut making).is_some() {}
            refresh.done.finish(making);
        }
        if is_shown {
            progress::end();
        }
        refresh.done
    }

    /// The indexes that all steps have seen to: after the last one they need no refresh of their own.
    pub fn together(&self) -> &[Oid] {
        self.together.as_deref().unwrap_or_default()
    }

    /// Goes on to the next region that has something to be copied. Returns whether there are more regions.
    /// After the last one comes the first.
    ///
    /// # Safety
    /// The table is locked so that no VACUUM runs, the index so that nobody else makes copies. A snapshot is
    /// active. The table and the index are the same each time.
    pub unsafe fn step(&mut self, index: Open, heap: Open) -> bool {
        // SAFETY: the caller's promise. What is opened is closed below, or after an ERROR by the server.
        let others = unsafe { open_others(index, heap) };
        // SAFETY: it stays open as long as `others`.
        let open = |&other: &Relation| unsafe { Open::of(other) };
        let indexes: Vec<Open> = std::iter::once(index).chain(others.iter().map(open)).collect();
        let seen_to = |other: &Oid| indexes.iter().any(|index| index.oid() == *other);
        match &mut self.together {
            Some(together) => together.retain(seen_to),
            None => self.together = Some(indexes.iter().map(|index| index.oid()).collect()),
        }
        let is_shown = progress::begin(index, heap);
        if self.seen == 0 {
            self.first = regions::next_region(index);
        }
        let mut making = None;
        // SAFETY: the caller's promise.
        unsafe {
            while let Some(begun) = self.see_to_next(&indexes, heap, &mut making) {
                if begun {
                    self.unswept += 1;
                    break;
                }
            }
            self.done.finish(making);
            let regions = heap.block_count().div_ceil(REGION_BLOCKS);
            let has_more = self.seen < regions;
            let next = if has_more { (self.first + self.seen) % regions } else { 0 };
            let sweeps = self.unswept >= if has_more { STEPS_UNSWEPT } else { 1 };
            for &index in &indexes {
                regions::note_progress(index, next);
                if sweeps {
                    space::sweep(index);
                }
            }
            self.unswept = if sweeps { 0 } else { self.unswept };
            others.iter().for_each(|&index| pg_sys::index_close(index, pg_sys::NoLock as i32));
            if is_shown {
                progress::end();
            }
            has_more
        }
    }

    /// Sees to the next region, in all of these indexes. Returns whether a copy was begun; the one that is
    /// `making` is brought to its end then. None: there is no region left.
    ///
    /// # Safety
    /// As `step`.
    unsafe fn see_to_next<'a>(
        &mut self,
        indexes: &[Open<'a>],
        heap: Open<'a>,
        making: &mut Option<Making<'a>>,
    ) -> Option<bool> {
        let blocks = heap.block_count();
        let regions = blocks.div_ceil(REGION_BLOCKS);
        if self.seen >= regions {
            return None;
        }
        progress::regions(self.seen, regions);
        let region = (self.first + self.seen) % regions;
        self.seen += 1;
        // SAFETY: the caller's promise.
        let (done, begun) = unsafe { self.refresh_region(indexes, heap, (region, blocks), making) };
        self.done.add(done);
        Some(begun)
    }

    /// Begins copies of what a region has and indexes have not. Returns what was done, and whether a copy was
    /// begun.
    unsafe fn refresh_region<'a>(
        &self,
        indexes: &[Open<'a>],
        heap: Open<'a>,
        (region, blocks): (u32, u32),
        making: &mut Option<Making<'a>>,
    ) -> (Done, bool) {
        let mut done = Done::default();
        let here = layout::blocks_of(region, blocks);
        // SAFETY: the caller's promise.
        let mut visible = unsafe { visibility::visible(heap, region, blocks) };
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
        let known: Option<Vec<_>> = indexes.iter().map(|&index| regions::load(index, region)).collect();
        let known = known.unwrap_or_default();
        let (slots, _) = cover::copied(indexes, visible.len(), &known);
        let all_visible: Vec<u16> =
            (0..).zip(&visible).filter(|(_, visible)| **visible).map(|(at, _)| at).collect();
        let has_copy = |&at: &u16| slots.get(usize::from(at)).is_some_and(|&slots| slots != 0);
        let mut chosen: Vec<u16> = all_visible.iter().copied().filter(|at| !has_copy(at)).collect();
        done.not_visible = (visible.len() - all_visible.len()) as u64;
        done.covered = (all_visible.len() - chosen.len()) as u64;
        if chosen.is_empty() || chosen.len() < self.fewest {
            return (done, false);
        }
        if known.iter().any(|region| is_worn(region, &visible)) {
            chosen = all_visible;
            done.covered = 0;
        }
        // SAFETY: the caller's promise.
        let targets = unsafe { indexes.iter().map(|&index| Target::of(index, region)).collect::<Vec<_>>() };
        let (mut left, mut begun) = (chosen.as_slice(), false);
        while !left.is_empty() {
            // SAFETY: the caller's promise.
            let Some((next, rest)) = (unsafe { making::begin(&targets, heap, region, left) }) else { break };
            begun = true;
            // SAFETY: the caller's promise.
            unsafe { done.finish(making.replace(next)) };
            left = rest;
        }
        (done, begun)
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
/// not count. Copies of which no block is all-visible cannot be replaced now.
fn is_worn(region: &regions::Region, visible: &[bool]) -> bool {
    let has_visible =
        |slot: u8| region.entries().iter().zip(visible).any(|(&entry, &is)| is && entry == slot);
    let used: Vec<(u8, u32)> =
        layout::counting_slots(region.entries()).filter(|&(slot, _)| has_visible(slot)).collect();
    let copied: u32 = used.iter().map(|&(slot, _)| region.slot(slot).blocks).sum();
    let counted: u32 = used.iter().map(|&(_, blocks)| blocks).sum();
    used.len() >= MANY_SLOTS || copied.saturating_sub(counted) * 4 > copied
}

/// Opens the table's other columnstore indexes that are refreshed and that nobody has locked. The locks stay
/// to the end of the transaction.
///
/// # Safety
/// As `Refresh::step`.
unsafe fn open_others(index: Open, heap: Open) -> Vec<Relation> {
    let lock = pg_sys::ShareUpdateExclusiveLock as i32;
    let method = access_method::method_of(index.oid());
    let mut opened = Vec::new();
    for other in access_method::valid_indexes(heap.oid(), method) {
        // SAFETY: what is locked is looked up afterwards.
        unsafe {
            if other == index.oid() || !pg_sys::ConditionalLockRelationOid(other, lock) {
                continue;
            }
            if pg_sys::IndexGetRelation(other, true) != heap.oid() {
                continue;
            }
            let other = pg_sys::index_open(other, pg_sys::NoLock as i32);
            let open = Open::of(other);
            if access_method::is_ours(open) && access_method::is_valid(open) && options::is_refreshed(open) {
                opened.push(other);
            } else {
                pg_sys::index_close(other, pg_sys::NoLock as i32);
            }
        }
    }
    opened
}
