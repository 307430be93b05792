//! Scans of the whole table, forwards, backwards, by TID range, and the parts of a parallel one.
//!
//! A scan is a list of segments in a fixed order: the hot spans by block, then the visible stripes by row
//! number. One inner heap scan with limits reads the hot segments. A backward scan walks the same list from
//! the other end. A parallel scan takes its segments from shared state instead, and goes forwards only. A
//! SnapshotDirty judges by now, so under one each step looks for the next stripe anew.
//!
//! `scan_steps` finds the next row. The thin callback at the end of this file hands on hot rows without any
//! of this.
//!
//! Invariant: `Scan` begins with the server's descriptor; what it owns on Rust's heap belongs to the memory
//! context that the scan was made in.

use std::ffi::c_int;

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, HeapScanDescData, ItemPointer, ParallelTableScanDesc, Relation, ScanDirection, ScanKeyData,
    Snapshot, TableScanDesc, TableScanDescData, TupleTableSlot, uint32,
};

use super::cold_rows::ColdRows;
use super::scan_steps::{self, Position, Range, at_of, next};
use super::{moved, own_writes};
use crate::compat;
use crate::host::heap_am::{heap_direct, heap_guarded};
use crate::host::relation::Open;
use crate::host::{error, memory};
use crate::storage::change::row_proxy::Tombstones;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::entries;
use crate::storage::file::hot_runs::{self, Span};
use crate::storage::file::tid;

const TEMP_SNAPSHOT: u32 = pg_sys::ScanOptions::SO_TEMP_SNAPSHOT;
const SEQUENTIAL: u32 = pg_sys::ScanOptions::SO_TYPE_SEQSCAN;
const ALLOW_SYNC: u32 = pg_sys::ScanOptions::SO_ALLOW_SYNC;

/// Our scan descriptor.
#[repr(C)]
pub struct Scan {
    /// What generic code sees.
    pub base: TableScanDescData,
    /// The inner heap scan over `base.rs_rd`, always serial.
    pub heap: TableScanDesc,
    /// The direction in which the inner scan may be asked directly for the next hot row. For any other
    /// direction `scan_steps` decides.
    pub(super) hot_direction: ScanDirection::Type,
    /// The table is a heap (`only_blocks`), so nobody has moved rows of it.
    is_heap: bool,
    /// Where a bitmap scan stands.
    pub(super) bitmap: compat::BitmapState,
    /// Everything else.
    pub state: *mut State,
}

/// What a scan owns on Rust's heap.
pub struct State {
    /// Hot segments; filled at the first row.
    pub spans: Vec<Span>,
    /// Cold segments; filled at the first row.
    pub stripes: Vec<StripeEntry>,
    /// The rows of these stripes that are dead to the scan's snapshot.
    pub tombstones: Tombstones,
    surveyed: bool,
    pub(super) position: Position,
    pub(super) range: Option<Range>,
    /// Only hot rows are wanted: the vectorised scan reads the stripes itself.
    hot_only: bool,
    /// The transactions at work on the stripe that the scan stands in, if the snapshot asks for them.
    pub(super) writers: Option<scan_steps::Writers>,
    /// The cursor over cold rows, made when the first one is reached.
    cold: Option<Box<ColdRows>>,
    /// State of the other kinds of scans, in their own files.
    pub sample: super::sample::State,
    pub bitmap: super::bitmap::State,
    pub analyze: super::analyze::State,
}

impl State {
    /// Whether the stripes are left to the caller.
    pub(super) fn is_hot_only(&self) -> bool {
        self.hot_only
    }
}

impl Scan {
    /// Whether the row in the slot, which heap has given, is one of the scan's.
    #[inline]
    pub(super) unsafe fn gives(scan: *mut Scan, slot: *mut TupleTableSlot) -> bool {
        // SAFETY: the scan is open.
        unsafe {
            (*scan).is_heap || moved::is_there(Open::of((*scan).base.rs_rd), (*scan).base.rs_snapshot, slot)
        }
    }

    /// The owned state.
    pub unsafe fn state<'a>(scan: *mut Scan) -> &'a mut State {
        // SAFETY: made by scan_begin, dropped with the memory context; callbacks of one scan never overlap.
        unsafe { &mut *(*scan).state }
    }
}

/// Starts a scan. The callback uses it, and so does our code that reads a table through this file.
pub unsafe fn begin(
    rel: Open,
    snapshot: Snapshot,
    nkeys: c_int,
    key: *mut ScanKeyData,
    pscan: ParallelTableScanDesc,
    flags: u32,
) -> *mut Scan {
    // SAFETY: palloc0 gives zeroed memory of the right size and alignment; the inner scan pins the relation.
    unsafe {
        if nkeys > 0 {
            error::internal("scans of colcompress tables take no scan keys");
        }
        own_writes::flush(rel);
        let scan = pg_sys::palloc0(size_of::<Scan>()).cast::<Scan>();
        (*scan).base.rs_rd = rel.as_ptr();
        (*scan).base.rs_snapshot = snapshot;
        (*scan).base.rs_flags = flags;
        (*scan).base.rs_parallel = pscan;
        let inner = flags & !(TEMP_SNAPSHOT | ALLOW_SYNC) | compat::NEED_TUPLES;
        (*scan).heap =
            heap_guarded!(scan_begin(rel.as_ptr(), snapshot, nkeys, key, std::ptr::null_mut(), inner));
        // The statistics have counted one scan by now. Entering a hot segment must not count as another one.
        (*(*scan).heap).rs_flags &= !SEQUENTIAL;
        (*scan).hot_direction = ScanDirection::NoMovementScanDirection;
        (*scan).state = memory::leak_into_current_context(State {
            spans: Vec::new(),
            stripes: Vec::new(),
            tombstones: Tombstones::default(),
            surveyed: false,
            position: Position::Start,
            range: None,
            hot_only: false,
            writers: None,
            cold: None,
            sample: Default::default(),
            bitmap: Default::default(),
            analyze: Default::default(),
        });
        scan
    }
}

/// Leaves the stripes to the caller: the scan returns hot rows only. Must be called before the first row.
pub unsafe fn hot_only(scan: TableScanDesc) {
    // SAFETY: scan is one of ours.
    unsafe { Scan::state(scan.cast()).hot_only = true }
}

/// Has the scan read these blocks, which are a heap's. Must be called before the first row.
pub unsafe fn only_blocks(scan: *mut Scan, blocks: Vec<Span>) {
    // SAFETY: scan is one of ours.
    let state = unsafe {
        (*scan).is_heap = true;
        Scan::state(scan)
    };
    state.spans = blocks;
    state.surveyed = true;
    state.hot_only = true;
}

/// Surveys the table and hands the stripes and their dead rows to the caller. From here on the scan returns
/// hot rows only. Must be called before the first row.
pub unsafe fn take_stripes(scan: *mut Scan) -> (Vec<StripeEntry>, Tombstones) {
    // SAFETY: scan is one of ours.
    unsafe {
        survey_with(scan, true);
        let state = Scan::state(scan);
        state.hot_only = true;
        (std::mem::take(&mut state.stripes), std::mem::take(&mut state.tombstones))
    }
}

/// `scan_begin`.
#[pg_guard]
pub unsafe extern "C-unwind" fn scan_begin(
    rel: Relation,
    snapshot: Snapshot,
    nkeys: c_int,
    key: *mut ScanKeyData,
    pscan: ParallelTableScanDesc,
    flags: uint32,
) -> TableScanDesc {
    // SAFETY: as the server calls it.
    unsafe { begin(Open::of(rel), snapshot, nkeys, key, pscan, flags).cast() }
}

/// `scan_end`.
#[pg_guard]
pub unsafe extern "C-unwind" fn scan_end(scan: TableScanDesc) {
    // SAFETY: the boxed state is emptied here and its shell freed with the memory context.
    unsafe {
        let ours = scan.cast::<Scan>();
        release(Scan::state(ours));
        compat::end_bitmap(&mut (*ours).bitmap);
        heap_guarded!(scan_end((*ours).heap));
        if (*scan).rs_flags & TEMP_SNAPSHOT != 0 {
            pg_sys::UnregisterSnapshot((*scan).rs_snapshot);
        }
        pg_sys::pfree(ours.cast());
    }
}

fn release(state: &mut State) {
    state.spans = Vec::new();
    state.stripes = Vec::new();
    state.tombstones = Tombstones::default();
    state.surveyed = false;
    state.position = Position::Start;
    state.cold = None;
    state.sample = Default::default();
    state.bitmap = Default::default();
    state.analyze = Default::default();
}

/// `scan_rescan`.
#[pg_guard]
pub unsafe extern "C-unwind" fn scan_rescan(
    scan: TableScanDesc,
    key: *mut ScanKeyData,
    set_params: bool,
    allow_strategy: bool,
    _allow_sync: bool,
    allow_pagemode: bool,
) {
    // SAFETY: as scan_begin.
    unsafe {
        let ours = scan.cast::<Scan>();
        own_writes::flush(Open::of((*scan).rs_rd));
        let state = Scan::state(ours);
        state.position = Position::Start;
        if scan_steps::is_dirty((*scan).rs_snapshot) {
            // A SnapshotDirty judges by now: the caller has waited for a transaction and wants to see what it
            // has left.
            state.writers = None;
            state.surveyed = false;
        }
        state.sample = Default::default();
        state.bitmap.leave_block();
        compat::restart_bitmap(&mut (*ours).bitmap);
        (*ours).hot_direction = ScanDirection::NoMovementScanDirection;
        heap_guarded!(scan_rescan((*ours).heap, key, set_params, allow_strategy, false, allow_pagemode));
        if (*scan).rs_flags & SEQUENTIAL != 0 {
            count_scan(Open::of((*scan).rs_rd));
        }
    }
}

/// Fills the list of segments. The snapshot must be final: a parallel bitmap scan gets its snapshot after
/// scan_begin.
pub(super) unsafe fn survey(scan: *mut Scan) {
    // SAFETY: as `survey_with`.
    unsafe { survey_with(scan, false) }
}

/// `survey`, with the summaries of the stripes for a caller that prunes by them.
unsafe fn survey_with(scan: *mut Scan, summaries: bool) {
    // SAFETY: the relation is open for as long as the scan.
    unsafe {
        let state = Scan::state(scan);
        if state.surveyed {
            return;
        }
        let rel = (*scan).base.rs_rd;
        // The length of the file is the one that the inner scan found when it began. The snapshot was taken
        // by then.
        let blocks = (*(*scan).heap.cast::<HeapScanDescData>()).rs_nblocks;
        let survey = entries::survey(Open::of(rel), (*scan).base.rs_snapshot, summaries);
        state.spans = hot_runs::hot_spans(survey.runs, blocks);
        state.stripes = if state.hot_only { Vec::new() } else { survey.visible };
        state.tombstones = tombstones(Open::of(rel), &state.stripes, (*scan).base.rs_snapshot);
        state.surveyed = true;
        if let Some(range) = state.range {
            state.spans = hot_runs::clip(&state.spans, range.first.0, range.last.0);
            state.stripes.retain(|entry| {
                let first = tid::cold_tid(entry.first_row);
                let last = tid::cold_tid(entry.end_row().saturating_sub(1).max(entry.first_row));
                at_of(first) <= range.last && at_of(last) >= range.first
            });
        }
    }
}

/// The rows of these stripes that are dead to a snapshot. Empty for a SnapshotDirty, which asks about each
/// row.
///
/// # Safety
/// The snapshot is null or live.
unsafe fn tombstones(rel: Open, stripes: &[StripeEntry], snapshot: Snapshot) -> Tombstones {
    let Some(entry) = stripes.first() else { return Tombstones::default() };
    // SAFETY: the snapshot is null or live.
    unsafe {
        let by_row = !snapshot.is_null() && (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY;
        if by_row {
            return Tombstones::default();
        }
        let mut found = Tombstones::of_scan(rel, entry.storage_id, snapshot);
        found.add(moved::dead_elsewhere(rel, stripes, snapshot));
        found
    }
}

/// The cursor over cold rows.
pub(super) unsafe fn cold_rows(scan: *mut Scan) -> &'static mut ColdRows {
    // SAFETY: the cursor lives in the scan's state; the reference is used up before the next callback.
    unsafe {
        let state: &'static mut State = Scan::state(scan);
        let rel = (*scan).base.rs_rd;
        let strategy = (*(*scan).heap.cast::<HeapScanDescData>()).rs_strategy;
        state.cold.get_or_insert_with(|| Box::new(ColdRows::new(Open::of(rel), strategy)))
    }
}

/// Counts a scan that starts over, as heap does.
fn count_scan(rel: Open) {
    // SAFETY: see count_row.
    unsafe {
        if let Some(counts) = (*rel.as_ptr()).pgstat_info.as_mut() {
            compat::count_scan(counts);
        }
    }
}

/// Counts a cold row as read in the statistics, as heap does for its rows.
pub(super) fn count_row(rel: Open) {
    // SAFETY: pgstat_info is null or points at the backend's pending counters of this open relation.
    unsafe {
        if let Some(counts) = (*rel.as_ptr()).pgstat_info.as_mut() {
            compat::count_returned(counts, 1);
        }
    }
}

/// `scan_getnextslot`: hot rows go straight through.
pub unsafe extern "C-unwind" fn scan_getnextslot(
    scan: TableScanDesc,
    direction: ScanDirection::Type,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: the scan is ours; no frame here owns anything, so heap's ERROR may jump past it.
    unsafe {
        let ours = scan.cast::<Scan>();
        while (*ours).hot_direction == direction
            && heap_direct!(scan_getnextslot((*ours).heap, direction, slot))
        {
            if Scan::gives(ours, slot) {
                return true;
            }
        }
        scan_getnextslot_slow(scan, direction, slot)
    }
}

/// Not inlined: its frame is large, and the callback is called for every row.
#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn scan_getnextslot_slow(
    scan: TableScanDesc,
    direction: ScanDirection::Type,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: the scan is ours.
    unsafe {
        let ours = scan.cast::<Scan>();
        // The thin callback has just found the end of the hot segment.
        let used_up = (*ours).hot_direction == direction
            && direction != ScanDirection::NoMovementScanDirection
            && matches!(Scan::state(ours).position, Position::Hot(_));
        next(ours, direction, slot, used_up)
    }
}

/// `scan_set_tidrange`.
#[pg_guard]
pub unsafe extern "C-unwind" fn scan_set_tidrange(
    scan: TableScanDesc,
    first: ItemPointer,
    last: ItemPointer,
) {
    // SAFETY: the server passes two valid TIDs.
    unsafe {
        let ours = scan.cast::<Scan>();
        let state = Scan::state(ours);
        state.range = Some(Range { first: at_of(*first), last: at_of(*last) });
        state.surveyed = false;
        state.position = Position::Start;
        (*ours).hot_direction = ScanDirection::NoMovementScanDirection;
    }
}

/// `scan_getnextslot_tidrange`.
#[pg_guard]
pub unsafe extern "C-unwind" fn scan_getnextslot_tidrange(
    scan: TableScanDesc,
    direction: ScanDirection::Type,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: as scan_getnextslot; every row passes the range here.
    unsafe { next(scan.cast(), direction, slot, false) }
}
