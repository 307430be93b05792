//! Scans of the whole table, forwards, backwards, by TID range, and the parts of a parallel one.
//!
//! A scan is a list of segments in a fixed order: the hot spans by block, then the visible stripes by row number. Hot
//! segments are read by one inner heap scan with limits. Going backwards walks the same list from the other end, and
//! turning round inside a segment continues from the row returned last. A parallel scan takes its segments from shared
//! state instead, forwards only. The thin callback at the end hands hot rows through without any of this.
//! Invariant: `Scan` begins with the server's descriptor; what it owns on Rust's heap belongs to the memory context
//! that the scan was made in.

use std::ffi::c_int;

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, HeapScanDescData, ItemPointer, ItemPointerData, ParallelTableScanDesc, Relation, ScanDirection,
    ScanKeyData, Snapshot, TableScanDesc, TableScanDescData, TupleTableSlot, uint32,
};

use super::cold_rows::ColdRows;
use super::delegate::{heap_direct, heap_guarded};
use super::hot_runs::{self, Span};
use super::{own_writes, parallel, tid};
use crate::host::{error, memory, relation};
use crate::storage::directory::StripeEntry;
use crate::storage::directory_scan;

const TEMP_SNAPSHOT: u32 = pg_sys::ScanOptions::SO_TEMP_SNAPSHOT;
const ALLOW_SYNC: u32 = pg_sys::ScanOptions::SO_ALLOW_SYNC;
const ALLOW_STRATEGY: u32 = pg_sys::ScanOptions::SO_ALLOW_STRAT;
const BACKWARD: ScanDirection::Type = ScanDirection::BackwardScanDirection;

/// Our scan descriptor.
#[repr(C)]
pub struct Scan {
    /// What generic code sees.
    pub base: TableScanDescData,
    /// The inner heap scan over `base.rs_rd`, always serial.
    pub heap: TableScanDesc,
    /// The direction in which the inner scan may be asked on for the next hot row; anything else means "go the long way".
    hot_direction: ScanDirection::Type,
    /// A bitmap scan stands on a block of cold rows.
    pub bitmap_cold: bool,
    /// Everything else.
    pub state: *mut State,
}

/// Where a serial scan stands: before the first row, inside a segment, or past the last row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Start,
    Hot(usize),
    Cold { stripe: usize, row: u32 },
    End,
}

/// A TID range, both ends included.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: (u32, u16),
    last: (u32, u16),
}

/// What a scan owns on Rust's heap.
pub struct State {
    /// Hot segments; filled at the first row.
    pub spans: Vec<Span>,
    /// Cold segments; filled at the first row.
    pub stripes: Vec<StripeEntry>,
    surveyed: bool,
    position: Position,
    range: Option<Range>,
    /// Only hot rows are wanted: the vectorised scan reads the stripes itself.
    hot_only: bool,
    /// The cursor over cold rows, made when the first one is reached.
    cold: Option<Box<ColdRows>>,
    /// State of the other kinds of scans, in their own files.
    pub sample: super::sample::State,
    pub bitmap: super::bitmap::State,
    pub analyze: super::analyze::State,
}

impl Scan {
    /// The owned state.
    pub unsafe fn state<'a>(scan: *mut Scan) -> &'a mut State {
        // SAFETY: made by scan_begin, dropped with the memory context; callbacks of one scan never overlap.
        unsafe { &mut *(*scan).state }
    }
}

/// Starts a scan; also for code of ours that reads the table through this file.
pub unsafe fn begin(
    rel: Relation,
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
        (*scan).base.rs_rd = rel;
        (*scan).base.rs_snapshot = snapshot;
        (*scan).base.rs_flags = flags;
        (*scan).base.rs_parallel = pscan;
        let inner = flags & !(TEMP_SNAPSHOT | ALLOW_SYNC);
        (*scan).heap = heap_guarded!(scan_begin(rel, snapshot, nkeys, key, std::ptr::null_mut(), inner));
        (*scan).hot_direction = ScanDirection::NoMovementScanDirection;
        (*scan).state = memory::leak_into_current_context(State {
            spans: Vec::new(),
            stripes: Vec::new(),
            surveyed: false,
            position: Position::Start,
            range: None,
            hot_only: false,
            cold: None,
            sample: Default::default(),
            bitmap: Default::default(),
            analyze: Default::default(),
        });
        scan
    }
}

/// Leaves the stripes to the caller: the scan returns hot rows only. Before the first row.
pub unsafe fn hot_only(scan: TableScanDesc) {
    // SAFETY: scan is one of ours.
    unsafe { Scan::state(scan.cast()).hot_only = true }
}

/// Surveys the table and leaves the stripes to the caller: from here on the scan returns hot rows only. Before the
/// first row.
pub unsafe fn take_stripes(scan: *mut Scan) -> Vec<StripeEntry> {
    // SAFETY: scan is one of ours.
    unsafe {
        survey(scan);
        let state = Scan::state(scan);
        state.hot_only = true;
        std::mem::take(&mut state.stripes)
    }
}

/// `scan_begin`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_begin(
    rel: Relation,
    snapshot: Snapshot,
    nkeys: c_int,
    key: *mut ScanKeyData,
    pscan: ParallelTableScanDesc,
    flags: uint32,
) -> TableScanDesc {
    // SAFETY: as the server calls it.
    unsafe { begin(rel, snapshot, nkeys, key, pscan, flags).cast() }
}

/// `scan_end`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_end(scan: TableScanDesc) {
    // SAFETY: the boxed state is emptied here and its shell freed with the memory context.
    unsafe {
        let ours = scan.cast::<Scan>();
        release(Scan::state(ours));
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
    state.surveyed = false;
    state.position = Position::Start;
    state.cold = None;
    state.sample = Default::default();
    state.bitmap = Default::default();
    state.analyze = Default::default();
}

/// `scan_rescan`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_rescan(
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
        own_writes::flush((*scan).rs_rd);
        let state = Scan::state(ours);
        state.position = Position::Start;
        state.sample = Default::default();
        state.bitmap = Default::default();
        (*ours).hot_direction = ScanDirection::NoMovementScanDirection;
        heap_guarded!(scan_rescan((*ours).heap, key, set_params, allow_strategy, false, allow_pagemode));
    }
}

/// Fills the segments, once the snapshot is final (a parallel bitmap scan gets its snapshot after scan_begin).
pub(super) unsafe fn survey(scan: *mut Scan) {
    // SAFETY: the relation is open for as long as the scan.
    unsafe {
        let state = Scan::state(scan);
        if state.surveyed {
            return;
        }
        let rel = (*scan).base.rs_rd;
        let blocks = relation::block_count(rel);
        let survey = directory_scan::survey(rel, (*scan).base.rs_snapshot);
        state.spans = hot_runs::hot_spans(survey.runs, blocks);
        state.stripes = if state.hot_only { Vec::new() } else { survey.visible };
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

/// The cursor over cold rows.
pub(super) unsafe fn cold_rows(scan: *mut Scan) -> &'static mut ColdRows {
    // SAFETY: the cursor lives in the scan's state; the reference is used up before the next callback.
    unsafe {
        let state: &'static mut State = Scan::state(scan);
        let rel = (*scan).base.rs_rd;
        let strategy = (*(*scan).heap.cast::<HeapScanDescData>()).rs_strategy;
        state.cold.get_or_insert_with(|| Box::new(ColdRows::new(rel, strategy)))
    }
}

/// Points the inner scan at one span.
unsafe fn enter_hot(scan: *mut Scan, span: Span) {
    // SAFETY: heap_setscanlimits wants a scan that has been reset and does not synchronise.
    unsafe {
        let strategy = (*scan).base.rs_flags & ALLOW_STRATEGY != 0;
        let pagemode = (*scan).base.rs_flags & pg_sys::ScanOptions::SO_ALLOW_PAGEMODE != 0;
        heap_guarded!(scan_rescan((*scan).heap, std::ptr::null_mut(), true, strategy, false, pagemode));
        pg_sys::heap_setscanlimits((*scan).heap, span.start, span.blocks());
    }
}

/// Makes the inner scan's remaining blocks right for going on in `direction` from the block it stands on: heap counts
/// them down whichever way it goes.
unsafe fn turn(scan: *mut Scan, span: Span, direction: ScanDirection::Type) {
    // SAFETY: the inner scan is a heap scan; its limits were set by us.
    unsafe {
        let heap = (*scan).heap.cast::<HeapScanDescData>();
        if (*heap).rs_inited {
            (*heap).rs_numblocks = if direction == BACKWARD {
                (*heap).rs_cblock - span.start + 1
            } else {
                span.end - (*heap).rs_cblock
            };
        }
    }
}

/// The next row of a scan that is not simply going on inside a hot segment. `used_up`: the hot segment it stands in is
/// known to have no more rows this way (asking heap again would start over).
unsafe fn next(
    scan: *mut Scan,
    direction: ScanDirection::Type,
    slot: *mut TupleTableSlot,
    mut used_up: bool,
) -> bool {
    // SAFETY: called by the guarded callbacks with live arguments.
    unsafe {
        survey(scan);
        let parallel = parallel::shared((*scan).base.rs_parallel);
        let state = Scan::state(scan);
        let mut entered = false;
        loop {
            match state.position {
                Position::Hot(_) if used_up => used_up = false,
                Position::Hot(at) => {
                    let Some(&span) = state.spans.get(at) else { error::internal("hot segment is gone") };
                    if !entered && (*scan).hot_direction != direction {
                        turn(scan, span, direction);
                    }
                    entered = true;
                    (*scan).hot_direction = direction;
                    if heap_guarded!(scan_getnextslot((*scan).heap, direction, slot)) {
                        if in_range(state.range, (*slot).tts_tid) {
                            return true;
                        }
                        continue;
                    }
                }
                Position::Cold { stripe, row } => {
                    let Some(entry) = state.stripes.get(stripe) else { error::internal("stripe is gone") };
                    let entry = std::ptr::from_ref(entry);
                    let step = if entered {
                        Some(row)
                    } else if direction == BACKWARD {
                        row.checked_sub(1)
                    } else {
                        row.checked_add(1)
                    };
                    entered = false;
                    if let Some(row) = step.filter(|&row| row < (*entry).row_count) {
                        state.position = Position::Cold { stripe, row };
                        if in_range(state.range, tid::cold_tid((*entry).first_row + u64::from(row))) {
                            cold_rows(scan).fetch(&*entry, row, slot);
                            count_row((*scan).base.rs_rd);
                            return true;
                        }
                        continue;
                    }
                }
                Position::Start | Position::End => {}
            }
            // On to the neighbouring segment.
            (*scan).hot_direction = ScanDirection::NoMovementScanDirection;
            state.position = match parallel {
                Some(shared) => step_parallel(state, shared),
                None => step(state, direction),
            };
            match state.position {
                Position::Hot(at) => enter_hot(scan, state.spans[at]),
                Position::Cold { .. } => {}
                Position::Start | Position::End => {
                    pg_sys::ExecClearTuple(slot);
                    return false;
                }
            }
            entered = true;
        }
    }
}

/// The segment after the present position, with the row to begin at.
fn step(state: &State, direction: ScanDirection::Type) -> Position {
    let hot = state.spans.len();
    let total = hot + state.stripes.len();
    let here = match state.position {
        Position::Start => None,
        Position::Hot(at) => Some(at),
        Position::Cold { stripe, .. } => Some(hot + stripe),
        Position::End => Some(total),
    };
    if direction == BACKWARD {
        // A scan that is asked backwards at its start begins with its last row, as heap does.
        let mut at = here.unwrap_or(total);
        while at > 0 {
            at -= 1;
            if at < hot {
                return Position::Hot(at);
            }
            if let Some(row) = state.stripes[at - hot].row_count.checked_sub(1) {
                return Position::Cold { stripe: at - hot, row };
            }
        }
        return Position::Start;
    }
    let mut at = here.map_or(0, |at| at + 1);
    while at < total {
        if at < hot {
            return Position::Hot(at);
        }
        if state.stripes[at - hot].row_count > 0 {
            return Position::Cold { stripe: at - hot, row: 0 };
        }
        at += 1;
    }
    Position::End
}

/// The next segment from the shared state. A hot piece replaces the list of spans.
fn step_parallel(state: &mut State, shared: &parallel::Shared) -> Position {
    if state.position == Position::End {
        return Position::End;
    }
    if !matches!(state.position, Position::Cold { .. })
        && let Some(span) = shared.take_hot()
    {
        state.spans = vec![span];
        return Position::Hot(0);
    }
    loop {
        match shared.take_cold(&state.stripes) {
            None => return Position::End,
            Some(stripe) if state.stripes[stripe].row_count > 0 => return Position::Cold { stripe, row: 0 },
            Some(_) => {}
        }
    }
}

fn at_of(tid: ItemPointerData) -> (u32, u16) {
    (tid::block_of(tid), tid.ip_posid)
}

fn in_range(range: Option<Range>, tid: ItemPointerData) -> bool {
    let at = at_of(tid);
    range.is_none_or(|range| at >= range.first && at <= range.last)
}

/// Counts a cold row as read in the statistics, as heap does for its rows.
pub(super) unsafe fn count_row(rel: Relation) {
    // SAFETY: pgstat_info is null or points at the backend's pending counters of this open relation.
    unsafe {
        let info = (*rel).pgstat_info;
        if !info.is_null() {
            (*info).t_counts.t_tuples_returned += 1;
        }
    }
}

/// `scan_getnextslot`: hot rows go straight through.
pub(super) unsafe extern "C-unwind" fn scan_getnextslot(
    scan: TableScanDesc,
    direction: ScanDirection::Type,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: the scan is ours; no frame here owns anything, so heap's ERROR may jump past it.
    unsafe {
        let ours = scan.cast::<Scan>();
        if (*ours).hot_direction == direction && heap_direct!(scan_getnextslot((*ours).heap, direction, slot))
        {
            return true;
        }
        scan_getnextslot_slow(scan, direction, slot)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_getnextslot_slow(
    scan: TableScanDesc,
    direction: ScanDirection::Type,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: as above.
    unsafe {
        let ours = scan.cast::<Scan>();
        // The short way has just found the end of the hot segment.
        let used_up = (*ours).hot_direction == direction
            && direction != ScanDirection::NoMovementScanDirection
            && matches!(Scan::state(ours).position, Position::Hot(_));
        next(ours, direction, slot, used_up)
    }
}

/// `scan_set_tidrange`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_set_tidrange(
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
pub(super) unsafe extern "C-unwind" fn scan_getnextslot_tidrange(
    scan: TableScanDesc,
    direction: ScanDirection::Type,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: as scan_getnextslot; every row passes the range here.
    unsafe { next(scan.cast(), direction, slot, false) }
}
