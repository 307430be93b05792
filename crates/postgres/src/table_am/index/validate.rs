//! The last scan of CREATE INDEX CONCURRENTLY: rows that the index lacks are put into it.
//!
//! The index's TIDs come sorted. The table is walked in the same order: hot rows by block, then cold rows by
//! number. So one merge finds the rows that are missing. An index has a hot row under the TID of the root of
//! its update chain. The roots of a page do not come in order, so the TIDs that were passed on the present
//! page are remembered.

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{
    self, Datum, HeapScanDescData, IndexInfo, ItemPointerData, Relation, Snapshot, ValidateIndexState,
};

use super::root_tids::RootTids;
use super::rows::{self, IndexRows};
use crate::compat;
use crate::host::full_errors;
use crate::host::relation::Open;
use crate::storage::change::row_proxy;
use crate::storage::directory::{self, entries};
use crate::storage::file::tid;
use crate::table_am::read::cold_rows::ColdRows;
use crate::table_am::read::own_writes;
use crate::table_am::read::scan;

fn encode(tid: ItemPointerData) -> u64 {
    (u64::from(tid::block_of(tid)) << 16) | u64::from(tid.ip_posid)
}

/// The sorted TIDs of the index.
struct Indexed {
    sort: *mut pg_sys::Tuplesortstate,
    current: Option<u64>,
    done: bool,
    /// The TIDs that were passed already on the present block.
    passed: Vec<u64>,
}

impl Indexed {
    /// Whether the index has this TID. It must be asked in the order of blocks.
    unsafe fn contains(&mut self, tid: u64) -> bool {
        let block = tid >> 16;
        self.passed.retain(|&seen| seen >> 16 == block);
        while !self.done && self.current.is_none_or(|current| current < tid) {
            if let Some(current) = self.current.filter(|current| current >> 16 == block) {
                self.passed.push(current);
            }
            let (mut value, mut null) = (Datum::null(), true);
            // SAFETY: the sort was performed by the caller of the validation.
            let more = unsafe { compat::sorted_datum(self.sort, &mut value, &mut null) };
            self.current = more.then_some(value.value() as u64);
            self.done = !more;
        }
        self.current == Some(tid) || self.passed.contains(&tid)
    }
}

/// `index_validate_scan`.
pub unsafe extern "C-unwind" fn index_validate_scan(
    rel: Relation,
    index: Relation,
    info: *mut IndexInfo,
    snapshot: Snapshot,
    state: *mut ValidateIndexState,
) {
    // SAFETY: called by the server with a registered MVCC snapshot and a finished sort.
    unsafe {
        let rel = Open::of(rel);
        let index = Open::of(index);
        full_errors::guarded(|| {
            own_writes::flush(rel);
            directory::prepare();
            let mut indexed =
                Indexed { sort: (*state).tuplesort, current: None, done: false, passed: Vec::new() };
            let mut entries = IndexRows::new(rel, info);
            let flags = pg_sys::ScanOptions::SO_TYPE_SEQSCAN | pg_sys::ScanOptions::SO_ALLOW_STRAT;
            let flags = flags | pg_sys::ScanOptions::SO_ALLOW_PAGEMODE;
            let hot = scan::begin(rel, snapshot, 0, std::ptr::null_mut(), std::ptr::null_mut(), flags);
            scan::hot_only(hot.cast());
            let mut roots = RootTids::default();
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            let slot = entries.slot;
            while pg_guard_ffi_boundary(|| scan::scan_getnextslot(hot.cast(), forward, slot)) {
                pgrx::check_for_interrupts!();
                (*state).htups += 1.0;
                let root = roots.root(rel, (*hot).heap.cast::<HeapScanDescData>(), slot);
                if !indexed.contains(encode(root)) {
                    insert(&mut entries, rel, index, info, root, state);
                }
            }
            insert_cold(&mut entries, &mut indexed, (rel, index), info, snapshot, state);
            scan::scan_end(hot.cast());
            entries.finish();
        })
    }
}

/// Inserts rows of stripes that the index lacks.
unsafe fn insert_cold(
    entries: &mut IndexRows,
    indexed: &mut Indexed,
    (rel, index): (Open, Open),
    info: *mut IndexInfo,
    snapshot: Snapshot,
    state: *mut ValidateIndexState,
) {
    // SAFETY: as `index_validate_scan`.
    unsafe {
        let mut cold = ColdRows::new(rel, std::ptr::null_mut());
        cold.restrict(rows::columns_used(rel, info));
        // A BRIN index has nothing of cold rows, see `index::build`.
        let stripes = match (*info).ii_Am {
            pg_sys::BRIN_AM_OID => Vec::new(),
            _ => entries::survey(rel, snapshot, false).visible,
        };
        let storage_id = stripes.first().map(|entry| entry.storage_id);
        let tombstones = storage_id.and_then(|id| row_proxy::tombstones(rel, id, snapshot, usize::MAX));
        let mut tombstones = tombstones.unwrap_or_default();
        for entry in stripes {
            for position in 0..entry.row_count {
                if position % 1024 == 0 {
                    pgrx::check_for_interrupts!();
                }
                let row = entry.first_row + u64::from(position);
                if tombstones.contains(row) {
                    continue;
                }
                (*state).htups += 1.0;
                let tid = tid::cold_tid(row);
                if !indexed.contains(encode(tid)) {
                    cold.fetch(&entry, position, entries.slot);
                    insert(entries, rel, index, info, tid, state);
                }
            }
        }
    }
}

unsafe fn insert(
    entries: &mut IndexRows,
    rel: Open,
    index: Open,
    info: *mut IndexInfo,
    mut tid: ItemPointerData,
    state: *mut ValidateIndexState,
) {
    // SAFETY: the row is in the entries' slot. The unique check runs even if the row has died since: it
    // stands for its whole update chain.
    unsafe {
        if !entries.form() {
            return;
        }
        let unique = if (*info).ii_Unique {
            pg_sys::IndexUniqueCheck::UNIQUE_CHECK_YES
        } else {
            pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO
        };
        pg_sys::index_insert(
            index.as_ptr(),
            entries.values.as_mut_ptr(),
            entries.nulls.as_mut_ptr(),
            &raw mut tid,
            rel.as_ptr(),
            unique,
            false,
            info,
        );
        (*state).tups_inserted += 1.0;
    }
}
