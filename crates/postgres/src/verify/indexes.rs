//! Compares indexes with rows, in both directions.
//!
//! Called by `verify` if every row can be read. All entries of an index are sorted by TID, on disk if they
//! are many. Each entry of a btree has a hash of its values. Then the table is read in the same order under a
//! snapshot that is older than the reading of the index.
//! - Every visible row must have its entry, with the values that the index's expressions have for it now,
//!   unless the predicate leaves the row out.
//! - An entry without a visible row may belong to a row that is dead or not yet committed. It must name a
//!   place where a row can be.
//!
//! This is what amcheck's heapallindexed checks, but exactly and for every access method. If an access method
//! cannot be read from end to end, its TIDs are listed as VACUUM asks for them, which is not possible on a
//! standby.

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, Datum, HeapScanDescData, ItemPointer, ItemPointerData, Snapshot};

use super::report::{Place, Report};
use crate::compat;
use crate::host::buffer;
use crate::host::relation::Open;
use crate::storage::file::page_header::{self, Parsed};
use crate::storage::file::{metapage, tid};
use crate::table_am::index::root_tids::RootTids;
use crate::table_am::index::rows::IndexRows;
use crate::table_am::read::scan;

/// Bytes of a sorted entry: eight for the TID and eight for the hash, both big-endian.
const ENTRY: usize = 16;

/// Whether the table has indexes.
pub fn are_there(rel: Open) -> bool {
    !rel.indexes().is_empty()
}

/// Checks all indexes that are in use.
///
/// # Safety
/// `rel` is locked.
pub unsafe fn check(rel: Open, snapshot: Snapshot, report: &mut Report) {
    // SAFETY: the lock is promised; the indexes stay as they are.
    unsafe {
        for index in rel.open_indexes(lock()) {
            // A BRIN index summarises hot rows, and no query uses it.
            if index.access_method() != pg_sys::BRIN_AM_OID && is_in_use(index, snapshot) {
                check_index(rel, index, snapshot, report);
            }
            pg_sys::index_close(index.as_ptr(), pg_sys::NoLock as i32);
        }
    }
}

unsafe fn lock() -> u32 {
    // SAFETY: the server's own flag.
    if unsafe { pg_sys::RecoveryInProgress() } { pg_sys::AccessShareLock } else { pg_sys::RowExclusiveLock }
}

/// Whether queries under the snapshot may use the index. They may not if it is being built or dropped, or if
/// it lacks old versions.
unsafe fn is_in_use(index: Open, snapshot: Snapshot) -> bool {
    // SAFETY: the catalog row that it was opened by is kept with it.
    unsafe {
        let form = (*index.as_ptr()).rd_index;
        let header = (*(*index.as_ptr()).rd_indextuple).t_data;
        let frozen = (pg_sys::HEAP_XMIN_COMMITTED | pg_sys::HEAP_XMIN_INVALID) as u16;
        let old = || {
            (*header).t_infomask & frozen == frozen
                || pg_sys::TransactionIdPrecedes((*header).t_choice.t_heap.t_xmin, (*snapshot).xmin)
        };
        (*form).indisvalid && (*form).indisready && (*form).indislive && (!(*form).indcheckxmin || old())
    }
}

/// How the entries of an index are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By reading it from end to end. `keyed`: with the values, which the index keeps as they are.
    Scan { keyed: bool },
    /// As VACUUM lists them.
    Vacuum,
}

impl Way {
    fn of(index: Open) -> Self {
        match index.access_method() {
            pg_sys::BTREE_AM_OID => Self::Scan { keyed: true },
            pg_sys::GIST_AM_OID | pg_sys::SPGIST_AM_OID => Self::Scan { keyed: false },
            _ => Self::Vacuum,
        }
    }
}

/// # Safety
/// Both relations are locked so that nobody else changes them.
unsafe fn check_index(rel: Open, index: Open, snapshot: Snapshot, report: &mut Report) {
    // SAFETY: both are locked, as is promised.
    unsafe {
        let way = Way::of(index);
        let name =
            std::ffi::CStr::from_ptr((*index.form()).relname.data.as_ptr()).to_string_lossy().into_owned();
        if way == Way::Vacuum && pg_sys::RecoveryInProgress() {
            pgrx::notice!(
                "index \"{name}\" is not checked, because entries of its access method can be listed on a primary only"
            );
            return;
        }
        let read_from = match pg_sys::RecoveryInProgress() {
            true => pg_sys::GetXLogReplayRecPtr(std::ptr::null_mut()),
            false => pg_sys::XLogRecPtr::MAX,
        };
        let mut entries = Entries::new();
        match way {
            Way::Scan { keyed } => entries.read(rel, index, snapshot, keyed),
            Way::Vacuum => entries.ask(rel, index),
        }
        let keyed = way == Way::Scan { keyed: true };
        let mut walk = Walk {
            entries: entries.sorted(),
            block: Vec::new(),
            rel,
            name,
            keyed,
            next_row: metapage::read(rel).map_or(0, |(_, next_row)| next_row),
            blocks: rel.block_count(),
            read_from,
        };
        read_rows(rel, index, snapshot, &mut walk, report);
        walk.finish(report);
    }
}

/// Reads all visible rows in order of their TIDs.
unsafe fn read_rows(rel: Open, index: Open, snapshot: Snapshot, walk: &mut Walk, report: &mut Report) {
    // SAFETY: as `index::validate` reads them; the scan is ended here.
    unsafe {
        let info = pg_sys::BuildIndexInfo(index.as_ptr());
        let mut rows = IndexRows::new(rel, info);
        let slot = rows.slot;
        let flags = pg_sys::ScanOptions::SO_TYPE_SEQSCAN
            | pg_sys::ScanOptions::SO_ALLOW_STRAT
            | pg_sys::ScanOptions::SO_ALLOW_PAGEMODE;
        let scan = scan::begin(rel, snapshot, 0, std::ptr::null_mut(), std::ptr::null_mut(), flags);
        let mut roots = RootTids::default();
        // Hash indexes hold no NULLs.
        let hash_index = index.access_method() == pg_sys::HASH_AM_OID;
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        while pg_sys::table_scan_getnextslot(scan.cast(), forward, slot) {
            pgrx::check_for_interrupts!();
            let at = match tid::is_cold((*slot).tts_tid) {
                true => (*slot).tts_tid,
                false => roots.root(rel, (*scan).heap.cast::<HeapScanDescData>(), slot),
            };
            let wanted = rows.form() && !(hash_index && rows.nulls[0]);
            let hash = if wanted && walk.keyed { hash_values(index, &rows.values, &rows.nulls) } else { 0 };
            walk.row(at, wanted.then_some(hash), report);
        }
        pg_sys::table_endscan(scan.cast());
        rows.finish();
    }
}

/// A TID as a number that orders like it.
fn number_of(tid: ItemPointerData) -> u64 {
    (u64::from(tid::block_of(tid)) << 16) | u64::from(tid.ip_posid)
}

fn tid_of(number: u64) -> ItemPointerData {
    tid::tid((number >> 16) as u32, (number & 0xffff) as u16)
}

/// The entries of one index on their way through a sort.
struct Entries {
    sort: *mut pg_sys::Tuplesortstate,
}

impl Entries {
    unsafe fn new() -> Self {
        // SAFETY: the type uuid is sixteen bytes that order as such.
        unsafe {
            let memory = pg_sys::maintenance_work_mem;
            let less = pg_sys::Oid::from(2974u32);
            let none = std::ptr::null_mut();
            Self {
                sort: pg_sys::tuplesort_begin_datum(
                    pg_sys::UUIDOID,
                    less,
                    pg_sys::Oid::INVALID,
                    false,
                    memory,
                    none,
                    0,
                ),
            }
        }
    }

    fn put(&self, tid: ItemPointerData, hash: u64) {
        let mut entry = [0u8; ENTRY];
        entry[..8].copy_from_slice(&number_of(tid).to_be_bytes());
        entry[8..].copy_from_slice(&hash.to_be_bytes());
        // SAFETY: the sort copies the bytes.
        unsafe { pg_sys::tuplesort_putdatum(self.sort, Datum::from(entry.as_mut_ptr() as usize), false) }
    }

    /// Takes the entries by scanning the index from end to end.
    unsafe fn read(&mut self, rel: Open, index: Open, snapshot: Snapshot, keyed: bool) {
        // SAFETY: an index scan without keys; its tuples are looked at before the next step.
        unsafe {
            let scan = pg_guard_ffi_boundary(|| {
                compat::index_beginscan(rel.as_ptr(), index.as_ptr(), snapshot, 0, 0)
            });
            (*scan).xs_want_itup = keyed;
            pg_sys::index_rescan(scan, std::ptr::null_mut(), 0, std::ptr::null_mut(), 0);
            let mut values = [Datum::null(); pg_sys::INDEX_MAX_KEYS as usize];
            let mut nulls = [false; pg_sys::INDEX_MAX_KEYS as usize];
            loop {
                let found = pg_sys::index_getnext_tid(scan, pg_sys::ScanDirection::ForwardScanDirection);
                if found.is_null() {
                    break;
                }
                pgrx::check_for_interrupts!();
                let mut hash = 0;
                if keyed {
                    pg_sys::index_deform_tuple(
                        (*scan).xs_itup,
                        (*scan).xs_itupdesc,
                        values.as_mut_ptr(),
                        nulls.as_mut_ptr(),
                    );
                    hash = hash_values(index, &values, &nulls);
                }
                self.put(*found, hash);
            }
            pg_sys::index_endscan(scan);
        }
    }

    /// Takes the entries by having them offered for deletion, as for VACUUM. None is deleted.
    fn ask(&mut self, rel: Open, index: Open) {
        // SAFETY: the table is locked against VACUUM.
        unsafe {
            let mut info = pg_sys::IndexVacuumInfo {
                index: index.as_ptr(),
                estimated_count: true,
                message_level: pg_sys::DEBUG2 as i32,
                num_heap_tuples: f64::from((*rel.form()).reltuples),
                ..pg_sys::IndexVacuumInfo::default()
            };
            compat::set_vacuumed_table(&mut info, rel.as_ptr());
            let state = std::ptr::from_mut(self).cast();
            pg_sys::index_bulk_delete(&raw mut info, std::ptr::null_mut(), Some(keep), state);
        }
    }

    fn sorted(self) -> Sorted {
        // SAFETY: all entries are in.
        unsafe {
            pg_sys::tuplesort_performsort(self.sort);
            let mut sorted = Sorted { sort: self.sort, next: None };
            sorted.step();
            sorted
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn keep(tid: ItemPointer, state: *mut c_void) -> bool {
    // SAFETY: the state is the `Entries` that asks.
    unsafe { (*state.cast::<Entries>()).put(*tid, 0) }
    false
}

/// The sorted entries, of which one is read ahead.
struct Sorted {
    sort: *mut pg_sys::Tuplesortstate,
    next: Option<(u64, u64)>,
}

impl Sorted {
    fn step(&mut self) {
        let (mut value, mut null) = (Datum::null(), true);
        // SAFETY: a sorted datum is sixteen bytes, allocated for the caller.
        unsafe {
            let more = compat::sorted_datum(self.sort, &mut value, &mut null);
            self.next = more.then(|| {
                let bytes = *value.cast_mut_ptr::<[u8; ENTRY]>();
                pg_sys::pfree(value.cast_mut_ptr());
                let whole = u128::from_be_bytes(bytes);
                ((whole >> 64) as u64, whole as u64)
            });
        }
    }
}

/// One entry of the present block.
struct Entry {
    tid: u64,
    hash: u64,
    matched: bool,
}

/// The walk over entries and rows together, block by block.
struct Walk<'a> {
    entries: Sorted,
    /// Entries of the present block.
    block: Vec<Entry>,
    rel: Open<'a>,
    name: String,
    keyed: bool,
    next_row: u64,
    blocks: u32,
    /// How far a standby had replayed the log before the index was read. A page that is newer says nothing of
    /// the entries: they may be gone, too. On a primary, which is locked against VACUUM, no page is newer.
    read_from: pg_sys::XLogRecPtr,
}

impl<'a> Walk<'a> {
    fn fault(&self, report: &mut Report, at: u64, what: &str) {
        let place = Place { tid: Some(tid_of(at)), ..Place::default() };
        report.add("index", place, format!("index \"{}\" {what}", self.name))
    }

    /// Compares a visible row with its entries. `wanted`: the hash of its values, if the index wants the row.
    fn row(&mut self, tid: ItemPointerData, wanted: Option<u64>, report: &mut Report) {
        let at = number_of(tid);
        self.enter(at >> 16, report);
        let mut here = self.block.iter_mut().filter(|entry| entry.tid == at).peekable();
        let some = here.peek().is_some();
        let (mut count, mut same) = (0, 0);
        for entry in here {
            entry.matched = true;
            count += 1;
            same += u32::from(Some(entry.hash) == wanted);
        }
        match wanted {
            Some(_) if !some => self.fault(report, at, "has no entry for the row"),
            Some(_) if self.keyed && same == 0 => {
                self.fault(report, at, "has an entry for the row with other values")
            }
            Some(_) if self.keyed && count > 1 => {
                self.fault(report, at, "has more than one entry for the row")
            }
            None if some => self.fault(report, at, "has an entry for a row that its predicate leaves out"),
            _ => {}
        }
    }

    /// Goes on to a block. The remaining entries before it have no visible row.
    fn enter(&mut self, block: u64, report: &mut Report) {
        if self.block.first().is_some_and(|entry| entry.tid >> 16 < block) {
            self.leave(report);
        }
        while let Some((tid, hash)) = self.entries.next
            && tid >> 16 <= block
        {
            if self.block.first().is_some_and(|entry| entry.tid >> 16 != tid >> 16) {
                self.leave(report);
            }
            // An inverted index has an entry of a row for each key.
            if self.keyed || self.block.last().is_none_or(|last| last.tid != tid) {
                self.block.push(Entry { tid, hash, matched: false });
            }
            self.entries.step();
        }
        if self.block.first().is_some_and(|entry| entry.tid >> 16 < block) {
            self.leave(report);
        }
    }

    fn finish(mut self, report: &mut Report) {
        // SAFETY: all rows have been seen; the sort is let go.
        unsafe {
            self.enter(u64::MAX >> 16, report);
            self.leave(report);
            pg_sys::tuplesort_end(self.entries.sort);
        }
    }

    /// Checks the entries of the present block to which no visible row belongs.
    fn leave(&mut self, report: &mut Report) {
        let left: Vec<u64> =
            self.block.drain(..).filter(|entry| !entry.matched).map(|entry| entry.tid).collect();
        let Some(&first) = left.first() else { return };
        pgrx::check_for_interrupts!();
        if tid::is_cold(tid_of(first)) {
            for at in left {
                match tid::row_of(tid_of(at)) {
                    None => self.fault(report, at, "has an entry with an offset that no row has"),
                    Some(row) if row >= self.next_row => {
                        self.fault(
                            report,
                            at,
                            &format!("has an entry for row number {row}, which was never given out"),
                        );
                    }
                    Some(_) => {}
                }
            }
        } else {
            self.leave_hot(&left, (first >> 16) as u32, report);
        }
    }

    fn leave_hot(&self, left: &[u64], block: u32, report: &mut Report) {
        // SAFETY: the page is looked at under pin and shared lock; faults are told after that.
        unsafe {
            if block >= self.blocks && block >= self.rel.block_count() {
                return left
                    .iter()
                    .for_each(|&at| self.fault(report, at, "has an entry past the end of the table"));
            }
            let buf = buffer::read(self.rel, block, std::ptr::null_mut());
            buffer::lock_shared(buf);
            let page = buffer::page(buf);
            let heap = !pg_sys::PageIsNew(page) && page_header::parse(buffer::bytes(page)) == Parsed::Foreign;
            let places = if heap { pg_sys::PageGetMaxOffsetNumber(page) } else { 0 };
            let empty: Vec<u64> = left
                .iter()
                .copied()
                .filter(|&at| {
                    let offset = (at & 0xffff) as u16;
                    offset == 0
                        || offset > places
                        || (*pg_sys::PageGetItemId(page, offset)).lp_flags() == pg_sys::LP_UNUSED
                })
                .collect();
            let changed = pg_sys::BufferGetLSNAtomic(buf);
            buffer::unlock_release(buf);
            // Replay may have taken the entries away, then the rows, and have put a stripe on the page.
            if changed > self.read_from {
                return;
            }
            let what = if heap {
                "has an entry where no row is"
            } else {
                "has an entry that points into a page without heap rows"
            };
            empty.into_iter().for_each(|at| self.fault(report, at, what));
        }
    }
}

/// A hash of an index tuple's values, the same however they are stored.
unsafe fn hash_values(index: Open, values: &[Datum], nulls: &[bool]) -> u64 {
    // SAFETY: the index is open, its row type says how long values are.
    unsafe {
        let desc = index.descriptor();
        let mut hash = 0u64;
        for ((attribute, &value), &null) in compat::attributes(desc).iter().zip(values).zip(nulls) {
            let part = if null { 1 } else { hash_value(value, attribute.attlen, attribute.attbyval) };
            hash = stripe::checksum(&[hash.to_le_bytes(), part.to_le_bytes()].concat());
        }
        hash
    }
}

unsafe fn hash_value(value: Datum, length: i16, by_value: bool) -> u64 {
    // SAFETY: the value is one of a type with this length.
    unsafe {
        match (by_value, usize::try_from(length)) {
            (true, Ok(bytes)) => stripe::checksum(value.value().to_le_bytes().get(..bytes).unwrap_or(&[])),
            (false, Ok(bytes)) => {
                stripe::checksum(std::slice::from_raw_parts(value.cast_mut_ptr::<u8>(), bytes))
            }
            (_, Err(_)) if length == -2 => {
                stripe::checksum(std::ffi::CStr::from_ptr(value.cast_mut_ptr()).to_bytes())
            }
            (_, Err(_)) => {
                let raw = value.cast_mut_ptr::<pg_sys::varlena>();
                let flat = pg_sys::pg_detoast_datum_packed(raw);
                let hash = stripe::checksum(pgrx::varlena::varlena_to_byte_slice(flat));
                if !std::ptr::eq(flat, raw) {
                    pg_sys::pfree(flat.cast());
                }
                hash
            }
        }
    }
}
