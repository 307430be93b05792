//! The steps of a scan: which row comes next.
//!
//! Called by `scan` for every row that is not simply the next one of a hot segment. This file decides whether
//! to go on inside a segment, to turn round in it, or to move to the neighbouring one. Under a SnapshotDirty
//! it sets the snapshot's xmin and xmax to the transactions that are still at work on a cold row's stripe, as
//! heap does for its rows.
//!
//! Invariant: going one way and then the other gives the same rows.

use pgrx::pg_sys::{self, HeapScanDescData, ItemPointerData, ScanDirection, TransactionId, TupleTableSlot};

use super::cold_rows::SLOT_WANTS_SYSTEM_COLUMNS;
use super::parallel;
use super::scan::{Scan, State, cold_rows, count_row, survey};
use crate::compat;
use crate::host::error;
use crate::host::heap_am::heap_guarded;
use crate::host::relation::Open;
use crate::storage::change::row_proxy;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::{self, entries};
use crate::storage::file::hot_runs::Span;
use crate::storage::file::{metapage, tid};

const ALLOW_STRATEGY: u32 = pg_sys::ScanOptions::SO_ALLOW_STRAT;
const BACKWARD: ScanDirection::Type = ScanDirection::BackwardScanDirection;

/// Where a serial scan stands: before the first row, inside a segment, or past the last row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    Start,
    Hot(usize),
    Cold { stripe: usize, row: u32 },
    End,
}

/// A TID range, both ends included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) first: (u32, u16),
    pub(super) last: (u32, u16),
}

/// Points the inner scan at one span. A scan that is new, or has come to the end of its span, is not reset:
/// that would ask for the file's length again.
unsafe fn enter_hot(scan: *mut Scan, span: Span) {
    // SAFETY: heap_setscanlimits wants a scan that has been reset and does not synchronise.
    unsafe {
        if (*(*scan).heap.cast::<HeapScanDescData>()).rs_inited {
            let strategy = (*scan).base.rs_flags & ALLOW_STRATEGY != 0;
            let pagemode = (*scan).base.rs_flags & pg_sys::ScanOptions::SO_ALLOW_PAGEMODE != 0;
            heap_guarded!(scan_rescan((*scan).heap, std::ptr::null_mut(), true, strategy, false, pagemode));
        } else {
            compat::restart_scan((*scan).heap.cast());
        }
        pg_sys::heap_setscanlimits((*scan).heap, span.start, span.blocks());
    }
}

/// Sets which blocks the inner scan has left in `direction` from the block where it stands.
///
/// Minor versions of the server differ in what a limit means once a scan has begun. Older ones count it down
/// in both directions. Newer ones leave it: forwards they count it from the scan's first block, and backwards
/// the first block is the end. Both stop where they should if the first block is the present one, or the
/// span's.
unsafe fn turn(scan: *mut Scan, span: Span, direction: ScanDirection::Type) {
    // SAFETY: the inner scan is a heap scan; its limits were set by us.
    unsafe {
        let heap = (*scan).heap.cast::<HeapScanDescData>();
        if (*heap).rs_inited {
            let at = (*heap).rs_cblock;
            let (first, end) = if direction == BACKWARD { (span.start, at + 1) } else { (at, span.end) };
            (*heap).rs_startblock = first;
            (*heap).rs_numblocks = end - first;
            compat::turn_scan(heap, direction);
        }
    }
}

/// What comes next in a segment.
enum Met {
    /// A row for the scan, in the slot.
    Row,
    /// A row that is not for the scan.
    Other,
    /// None.
    End,
}

/// The next row of the hot segment that the scan stands in. `entered`: it has come there in this direction.
#[inline]
unsafe fn next_hot(
    scan: *mut Scan,
    at: usize,
    direction: ScanDirection::Type,
    slot: *mut TupleTableSlot,
    entered: bool,
) -> Met {
    // SAFETY: as `next`.
    unsafe {
        let state = Scan::state(scan);
        let Some(&span) = state.spans.get(at) else { error::internal("hot segment is gone") };
        if !entered && (*scan).hot_direction != direction {
            turn(scan, span, direction);
        }
        (*scan).hot_direction = direction;
        if !heap_guarded!(scan_getnextslot((*scan).heap, direction, slot)) {
            return Met::End;
        }
        let matches = in_range(state.range, (*slot).tts_tid) && Scan::gives(scan, slot);
        if matches { Met::Row } else { Met::Other }
    }
}

/// The next row of the stripe that the scan stands in, at this row. `entered`: it has just come there, so
/// this row is the next one.
#[inline]
unsafe fn next_cold(
    scan: *mut Scan,
    (stripe, row): (usize, u32),
    direction: ScanDirection::Type,
    slot: *mut TupleTableSlot,
    entered: bool,
) -> Met {
    // SAFETY: as `next`.
    unsafe {
        let state = Scan::state(scan);
        let Some(entry) = state.stripes.get(stripe) else { error::internal("stripe is gone") };
        let entry = std::ptr::from_ref(entry);
        let step = if entered {
            Some(row)
        } else if direction == BACKWARD {
            row.checked_sub(1)
        } else {
            row.checked_add(1)
        };
        let Some(row) = step.filter(|&row| row < (*entry).row_count) else { return Met::End };
        if !name_writers(scan, stripe, slot) {
            return Met::End;
        }
        state.position = Position::Cold { stripe, row };
        let number = (*entry).first_row + u64::from(row);
        if !in_range(state.range, tid::cold_tid(number)) || !is_there(scan, &*entry, number) {
            return Met::Other;
        }
        cold_rows(scan).fetch(&*entry, row, slot);
        count_row(Open::of((*scan).base.rs_rd));
        Met::Row
    }
}

/// The next row of a scan that is not simply going on inside a hot segment. `used_up`: the present hot
/// segment is known to have no more rows in this direction. Heap must not be asked again then, as it would
/// start over.
pub(super) unsafe fn next(
    scan: *mut Scan,
    direction: ScanDirection::Type,
    slot: *mut TupleTableSlot,
    mut used_up: bool,
) -> bool {
    let mut entered = false;
    // SAFETY: called by the guarded callbacks with live arguments.
    unsafe {
        survey(scan);
        let parallel = parallel::shared((*scan).base.rs_parallel);
        let state = Scan::state(scan);
        loop {
            let met = match state.position {
                Position::Hot(_) if used_up => {
                    used_up = false;
                    Met::End
                }
                Position::Hot(at) => next_hot(scan, at, direction, slot, entered),
                Position::Cold { stripe, row } => next_cold(scan, (stripe, row), direction, slot, entered),
                Position::Start | Position::End => Met::End,
            };
            match met {
                Met::Row => return true,
                Met::Other => {
                    entered = matches!(state.position, Position::Hot(_));
                    continue;
                }
                Met::End => {}
            }
            // Moves to the neighbouring segment.
            (*scan).hot_direction = ScanDirection::NoMovementScanDirection;
            state.position = match parallel {
                Some(shared) => step_parallel(state, shared),
                None if direction != BACKWARD && is_dirty((*scan).base.rs_snapshot) => step_by_now(scan),
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

/// Whether a row of a visible stripe is there for the scan's snapshot.
unsafe fn is_there(scan: *mut Scan, entry: &StripeEntry, row: u64) -> bool {
    // SAFETY: the relation and the snapshot are the scan's.
    unsafe {
        let (rel, snapshot) = ((*scan).base.rs_rd, (*scan).base.rs_snapshot);
        if is_dirty(snapshot) {
            return row_proxy::is_there(Open::of(rel), entry.storage_id, row, snapshot);
        }
        !Scan::state(scan).tombstones.contains(row)
    }
}

/// Whether a snapshot is a SnapshotDirty, which judges by what is there now.
pub(super) unsafe fn is_dirty(snapshot: pg_sys::Snapshot) -> bool {
    // SAFETY: the snapshot is null or live.
    unsafe { !snapshot.is_null() && (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY }
}

/// What a SnapshotDirty says about the rows of one stripe.
pub struct Writers {
    stripe: usize,
    xmin: TransactionId,
    xmax: TransactionId,
}

/// Makes a SnapshotDirty say which transactions are at work on the stripe. Other snapshots stay as they are.
/// False: the stripe's writer has been rolled back, so its rows are not there.
///
/// Under a SnapshotDirty the slot gets a tuple: the caller goes on with a copy of the slot, and a copy keeps
/// the TID only in a tuple.
unsafe fn name_writers(scan: *mut Scan, stripe: usize, slot: *mut TupleTableSlot) -> bool {
    // SAFETY: the relation and the snapshot are the scan's; only snapshots of this type are written to.
    unsafe {
        let snapshot = (*scan).base.rs_snapshot;
        if !is_dirty(snapshot) {
            return true;
        }
        (*slot).tts_flags |= SLOT_WANTS_SYSTEM_COLUMNS;
        let state = Scan::state(scan);
        if state.writers.as_ref().is_none_or(|known| known.stripe != stripe) {
            let first = state.stripes.get(stripe).map(|entry| entry.first_row);
            let storage_id = metapage::storage_id(Open::of((*scan).base.rs_rd));
            let found = storage_id.zip(first).and_then(|(id, row)| directory::find(id, row, snapshot));
            if found.is_none_or(|entry| entry.reserved_only) {
                return false;
            }
            state.writers = Some(Writers { stripe, xmin: (*snapshot).xmin, xmax: (*snapshot).xmax });
        }
        entries::clear_dirty(snapshot);
        if let Some(writers) = &state.writers {
            (*snapshot).xmin = writers.xmin;
            (*snapshot).xmax = writers.xmax;
        }
        true
    }
}

/// The segment after the present position for a SnapshotDirty. The scan may be a replication worker's that
/// looks for a row to change. A row that is packed meanwhile goes from a heap page to a stripe, and on to
/// stripes of higher row numbers, so it only moves ahead of the scan. A scan that asks at each step which
/// stripe comes next as of now does not miss it.
unsafe fn step_by_now(scan: *mut Scan) -> Position {
    // SAFETY: the relation and the snapshot are the scan's.
    unsafe {
        let state = Scan::state(scan);
        let next = step(state, ScanDirection::ForwardScanDirection);
        let from = match (next, state.position) {
            (Position::Hot(_), _) | (_, Position::End) => return next,
            (_, Position::Cold { stripe, .. }) => state.stripes.get(stripe).map_or(0, StripeEntry::end_row),
            _ => 0,
        };
        if state.range.is_some() || state.is_hot_only() {
            return next;
        }
        state.stripes =
            entries::survey(Open::of((*scan).base.rs_rd), (*scan).base.rs_snapshot, false).visible;
        state.stripes.retain(|entry| entry.first_row >= from && entry.row_count > 0);
        state.writers = None;
        if state.stripes.is_empty() { Position::End } else { Position::Cold { stripe: 0, row: 0 } }
    }
}

/// The segment after the present position, and the row to begin with there.
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

/// The next segment from the shared state. A hot piece becomes the only one in the list of spans.
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

pub(super) fn at_of(tid: ItemPointerData) -> (u32, u16) {
    (tid::block_of(tid), tid.ip_posid)
}

fn in_range(range: Option<Range>, tid: ItemPointerData) -> bool {
    let at = at_of(tid);
    range.is_none_or(|range| at >= range.first && at <= range.last)
}
