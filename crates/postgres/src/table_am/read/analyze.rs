//! ANALYZE's sample.
//!
//! The server samples blocks of the file, and multiplies what it sees by the blocks that it did not see. So a
//! stripe page yields its share of its stripe's rows: page p of B gets rows R*p/B to R*(p+1)/B.
//!
//! The sampled pages may hold far more rows than the statistics need. Then one row at a random place of each
//! `every` rows is returned, hot and cold alike. So each row is as likely as any other, and a chunk is
//! decoded for no more rows than needed. (Rows at fixed distances would leave out values that recur with a
//! period.)
//!
//! The number of rows in stripes is known, and how many of them are dead. Each block of the file reports the
//! same share of both, whatever it holds, so the server's sum is exact. The stripes that count are the
//! committed ones and this transaction's own, with their rows' deaths as they are now. A dead row for which
//! VACUUM has nothing more to do does not count as dead (`vacuum_counts`).
//!
//! The server sorts the sample by TID and computes correlations in that order. So hot rows get places behind
//! all rows of stripes here: they are mostly younger, as rows get into stripes in the order of their arrival.

use pgrx::pg_sys::{
    self, BlockNumber, BufferHeapTupleTableSlot, TableScanDesc, TransactionId, TupleTableSlot,
};
use pgrx::{PgList, pg_guard};

use super::cold_rows::SLOT_WANTS_SYSTEM_COLUMNS;
use super::scan::{self, Scan};
use crate::compat::{self, AnalyzedBlocks};
use crate::host::heap_am::heap_guarded;
use crate::host::random;
use crate::host::relation::Open;
use crate::storage::change::row_proxy::{self, Tombstones};
use crate::storage::directory::StripeEntry;
use crate::storage::directory::entries;
use crate::storage::file::{metapage, tid};
use crate::table_am::maintain::vacuum_counts;

/// Rows that ANALYZE takes per unit of statistics target (the server's own constant).
const ROWS_PER_TARGET: f64 = 300.0;
/// At least this many times the needed rows are offered.
const SURPLUS: f64 = 1.5;

/// What an ANALYZE scan keeps between calls.
#[derive(Default)]
pub struct State {
    started: bool,
    /// The live stripes, ordered by first block.
    stripes: Vec<StripeEntry>,
    /// The dead rows of these stripes.
    tombstones: Tombstones,
    /// Blocks of the file.
    blocks: BlockNumber,
    /// The live and dead rows of stripes that each block of the file reports, and whether the present block
    /// has reported them.
    live_a_block: f64,
    dead_a_block: f64,
    is_told: bool,
    /// The rows of the present page that are left: the stripe, the next row, the end.
    page: Option<(usize, u32, u32)>,
    chooser: Chooser,
}

/// Chooses one row of each part of `every` rows.
#[derive(Default)]
struct Chooser {
    every: u64,
    /// Rows to pass over before the next one that is chosen.
    skip: u64,
    /// Rows behind the chosen one that belong to the same part.
    rest: u64,
}

impl Chooser {
    /// `random` returns a number below its argument.
    fn new(every: u64, random: impl Fn(u64) -> u64) -> Self {
        let mut chooser = Self { every: every.max(1), ..Self::default() };
        chooser.choose(random);
        chooser
    }

    fn choose(&mut self, random: impl Fn(u64) -> u64) {
        let at = random(self.every);
        self.skip = self.rest + at;
        self.rest = self.every - 1 - at;
    }

    /// Goes over the next `rows` rows up to the one that is chosen, and returns its place among them. None if
    /// all are passed over.
    fn pass(&mut self, rows: u64, random: impl Fn(u64) -> u64) -> Option<u64> {
        if self.skip >= rows {
            self.skip -= rows;
            return None;
        }
        let at = self.skip;
        self.choose(random);
        Some(at)
    }
}

/// # Safety
/// `rel` stays open while the scan lives.
unsafe fn start(rel: Open, state: &mut State) {
    // SAFETY: the table is open for the life of the scan.
    unsafe {
        state.started = true;
        state.blocks = rel.block_count().max(1);
        let blocks = f64::from(state.blocks);
        let mut rows = 0.0;
        if let Some(storage_id) = metapage::storage_id(rel) {
            let now = &raw mut pg_sys::SnapshotSelfData;
            state.stripes = entries::visible(storage_id, now);
            state.tombstones = row_proxy::tombstones(rel, storage_id, now, usize::MAX).unwrap_or_default();
            let swept_before = metapage::swept_before(rel);
            let count = vacuum_counts::cold(storage_id, &state.stripes, &mut state.tombstones, swept_before);
            rows = count.live;
            (state.live_a_block, state.dead_a_block) = (count.live / blocks, count.dead / blocks);
        }
        state.stripes.retain(|entry| entry.run.block_count > 0 && entry.row_count > 0);
        state.stripes.sort_by_key(|entry| entry.run.first_block);
        let wanted = rows_wanted(rel);
        let offered = rows * (wanted / blocks).min(1.0);
        state.chooser =
            Chooser::new((offered / (wanted * SURPLUS)).floor().clamp(1.0, 1e9) as u64, random::below);
    }
}

/// How many rows the statistics ask for: those of this table's columns, of its indexes' expressions, and of
/// CREATE STATISTICS.
fn rows_wanted(rel: Open) -> f64 {
    // SAFETY: indexes are closed again; a catalog's row is looked at while it is held.
    unsafe {
        let mut target = target_of(rel);
        for index in rel.open_indexes(pg_sys::AccessShareLock) {
            target = target.max(target_of(Open::of(index.as_ptr())));
            pg_sys::index_close(index.as_ptr(), pg_sys::AccessShareLock as i32);
        }
        for object in PgList::<pg_sys::Oid>::from_pg(pg_sys::RelationGetStatExtList(rel.as_ptr())).iter_oid()
        {
            let cache = pg_sys::SysCacheIdentifier::STATEXTOID as i32;
            let tuple = pg_sys::SearchSysCache1(cache, object.into());
            if !tuple.is_null() {
                target = target.max(compat::extended_target(tuple).unwrap_or(0));
                pg_sys::ReleaseSysCache(tuple);
            }
        }
        f64::from(target.max(1)) * ROWS_PER_TARGET
    }
}

/// The largest statistics target of a relation's columns.
fn target_of(rel: Open) -> i32 {
    // SAFETY: a plain global of the server.
    let usual = unsafe { pg_sys::default_statistics_target };
    let columns = rel.columns().iter().filter(|a| !a.attisdropped);
    // SAFETY: a catalog look-up.
    let target = |column| unsafe { compat::column_target(rel.oid(), column) }.unwrap_or(usual);
    columns.map(target).max().unwrap_or(usual)
}

/// `scan_analyze_next_block`.
pub struct Blocks;

impl AnalyzedBlocks for Blocks {
    unsafe fn begin(scan: TableScanDesc, block: BlockNumber) -> bool {
        // SAFETY: the scan is ours.
        unsafe {
            let ours = scan.cast::<Scan>();
            let state = &mut Scan::state(ours).analyze;
            if !state.started {
                start(Open::of((*scan).rs_rd), state);
            }
            state.is_told = false;
            let after = state.stripes.partition_point(|entry| entry.run.first_block <= block);
            state.page = None;
            if let Some(at) = after.checked_sub(1) {
                let entry = &state.stripes[at];
                let (page, pages) =
                    (u64::from(block - entry.run.first_block), u64::from(entry.run.block_count));
                if page < pages {
                    let rows = u64::from(entry.row_count);
                    let from = (rows * page / pages) as u32;
                    let to = (rows * (page + 1) / pages) as u32;
                    state.page = Some((at, from, to));
                }
            }
            state.page.is_some()
        }
    }

    unsafe fn heap(scan: TableScanDesc) -> TableScanDesc {
        // SAFETY: the scan is ours.
        unsafe { (*scan.cast::<Scan>()).heap }
    }
}

/// `scan_analyze_next_tuple`.
#[pg_guard]
pub unsafe extern "C-unwind" fn next_tuple(
    scan: TableScanDesc,
    oldest_xmin: TransactionId,
    live: *mut f64,
    dead: *mut f64,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: as above; live and dead point at the caller's counters.
    unsafe {
        let ours = scan.cast::<Scan>();
        let state = &mut Scan::state(ours).analyze;
        if !std::mem::replace(&mut state.is_told, true) {
            *live += state.live_a_block;
            *dead += state.dead_a_block;
        }
        let Some((at, mut next, end)) = state.page else {
            while heap_guarded!(scan_analyze_next_tuple((*ours).heap, oldest_xmin, live, dead, slot)) {
                if state.chooser.pass(1, random::below).is_some() {
                    put_behind(slot, state.blocks);
                    return true;
                }
            }
            return false;
        };
        let entry = &state.stripes[at];
        while let Some(ahead) = state.chooser.pass(u64::from(end - next), random::below) {
            let row = next + ahead as u32;
            next = row + 1;
            if state.tombstones.contains(entry.first_row + u64::from(row)) {
                continue;
            }
            state.page = Some((at, next, end));
            let entry = std::ptr::from_ref(entry);
            // The row is stored as a heap tuple, because that has a TID.
            (*slot).tts_flags |= SLOT_WANTS_SYSTEM_COLUMNS;
            scan::cold_rows(ours).fetch(&*entry, row, slot);
            return true;
        }
        state.page = Some((at, end, end));
        pg_sys::ExecClearTuple(slot);
        false
    }
}

/// Gives the hot row in a slot a place behind those of all rows of stripes.
unsafe fn put_behind(slot: *mut TupleTableSlot, blocks: BlockNumber) {
    // SAFETY: heap has just stored a tuple of a page in the slot, whose header it makes anew for each.
    unsafe {
        let tuple = (*slot.cast::<BufferHeapTupleTableSlot>()).base.tuple;
        if std::ptr::eq((*slot).tts_ops, &raw const pg_sys::TTSOpsBufferHeapTuple) && !tuple.is_null() {
            let at = (*tuple).t_self;
            let block = (BlockNumber::MAX - 1).saturating_sub(blocks).saturating_add(tid::block_of(at));
            (*tuple).t_self = tid::tid(block, at.ip_posid);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::Chooser;

    /// The rows that are chosen from pages with these numbers of rows. Instead of random numbers, `places`
    /// come in turn.
    fn chosen(every: u64, places: &[u64], pages: &[u64]) -> Vec<u64> {
        let places = RefCell::new(places.iter().copied().cycle());
        let random = |limit: u64| places.borrow_mut().next().unwrap_or(0).min(limit - 1);
        let mut chooser = Chooser::new(every, random);
        let (mut found, mut start) = (Vec::new(), 0);
        for &rows in pages {
            let mut next = start;
            start += rows;
            while let Some(ahead) = chooser.pass(start - next, random) {
                found.push(next + ahead);
                next += ahead + 1;
            }
        }
        found
    }

    #[test]
    fn each_part_gives_one_row() {
        let places = [0, 9, 0, 9, 5, 5];
        assert_eq!(chosen(10, &places, &[60]), [0, 19, 20, 39, 45, 55]);
        assert_eq!(chosen(10, &places, &[1, 18, 1, 1, 0, 30, 9]), [0, 19, 20, 39, 45, 55]);
        assert_eq!(chosen(10, &places, &[1; 60]), [0, 19, 20, 39, 45, 55]);
        assert_eq!(chosen(1, &[0], &[2, 0, 2]), [0, 1, 2, 3]);
    }

    #[test]
    fn the_last_part_may_give_none() {
        assert_eq!(chosen(10, &[3], &[13]), [3]);
        assert_eq!(chosen(10, &[3], &[14]), [3, 13]);
        assert_eq!(chosen(10, &[3], &[]), [0; 0]);
    }
}
