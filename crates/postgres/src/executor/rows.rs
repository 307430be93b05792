//! Handing out rows: the loop that runs once per row.
//!
//! Called by the server's executor through the node's `ExecProcNode`. Nothing in the frames of this file owns
//! anything: expressions and heap's scan are called bare, and an ERROR they raise jumps past us. What needs a
//! guard (`refill`) has one of its own.

use pgrx::pg_sys::{self, PlanState, TupleTableSlot};

use super::Node;
use super::batch::{self, Fill, Step};
use super::begin::{Phase, Scan};
use super::scroll::Next;
use crate::host::carried;
use crate::storage::file::tid;

mod bare {
    use pgrx::pg_sys::{MemoryContext, TupleTableSlot};
    unsafe extern "C-unwind" {
        pub fn MemoryContextReset(context: MemoryContext);
        pub fn slot_getsomeattrs_int(slot: *mut TupleTableSlot, attnum: std::ffi::c_int);
    }
}

/// `TTS_FLAG_EMPTY`, `TTS_FLAG_SHOULDFREE`.
const EMPTY: u16 = 1 << 1;
const SHOULD_FREE: u16 = 1 << 2;

/// The callback that the server's wrapper node calls, where our own pointer was not used.
pub unsafe extern "C-unwind" fn exec_custom_scan(
    custom: *mut pg_sys::CustomScanState,
) -> *mut TupleTableSlot {
    // SAFETY: a node of ours begins with the server's.
    unsafe { exec_node(custom.cast()) }
}

/// The next row, or an empty slot.
pub unsafe extern "C-unwind" fn exec_node(state: *mut PlanState) -> *mut TupleTableSlot {
    // SAFETY: the node has begun, so its scan is there; slots and contexts are the node's own. See the file's
    // header for ERRORs.
    unsafe {
        let node = state.cast::<Node>();
        loop {
            let scan = (*node).state;
            let found = match (*scan).phase {
                Phase::Cold => cold_row(state, scan),
                Phase::Hot => hot_row(state, scan, false),
                Phase::Scroll => return scroll_row(state, scan),
                Phase::Start => std::ptr::null_mut(),
                Phase::Done => return empty(scan),
                Phase::Test => return test_row(state.cast()),
            };
            if !found.is_null() {
                return found;
            }
            refill(state.cast());
        }
    }
}

/// Nothing left.
unsafe fn empty(scan: *mut Scan) -> *mut TupleTableSlot {
    // SAFETY: the node's own slots.
    unsafe {
        clear((*scan).scan_slot);
        clear((*scan).result_slot);
        (*scan).result_slot
    }
}

/// Empties a virtual slot.
#[inline]
unsafe fn clear(slot: *mut TupleTableSlot) {
    // SAFETY: a virtual slot of the node; its callbacks are static.
    unsafe {
        if (*slot).tts_flags & SHOULD_FREE != 0
            && let Some(clear) = (*(*slot).tts_ops).clear
        {
            clear(slot);
        }
        (*slot).tts_flags |= EMPTY;
        (*slot).tts_nvalid = 0;
    }
}

#[inline]
unsafe fn fill(slot: *mut TupleTableSlot, fills: &[Fill], at: usize) {
    // SAFETY: `Batch` keeps every pointer readable for its rows; targets are within the slot's columns.
    unsafe {
        for fill in fills {
            *(*slot).tts_values.add(fill.to) = *fill.values.add(at);
            *(*slot).tts_isnull.add(fill.to) = *fill.nulls.add(at);
        }
    }
}

/// Declares a virtual slot full.
#[inline]
unsafe fn filled(slot: *mut TupleTableSlot, columns: i16) {
    // SAFETY: a virtual slot of the node whose wanted columns are set.
    unsafe {
        (*slot).tts_flags &= !EMPTY;
        (*slot).tts_nvalid = columns;
    }
}

/// The next row of the batch that passes; null when the batch is used up.
#[inline]
unsafe fn cold_row(state: *mut PlanState, scan: *mut Scan) -> *mut TupleTableSlot {
    // SAFETY: the node runs; see the file's header for ERRORs.
    unsafe {
        let scan = &mut *scan;
        let batch = &mut scan.batch;
        let slot = scan.scan_slot;
        while batch.at < batch.end {
            let at = batch.at;
            batch.at += 1;
            if scan.keep_position {
                clear(slot);
                if let Some(&position) = batch.positions.get(at) {
                    (*slot).tts_tid = tid::cold_tid(batch.base + u64::from(position));
                }
                filled(slot, scan.columns_in_scan_slot);
            }
            if !batch.steps.is_empty() {
                clear(slot);
                fill(slot, &batch.checks, at);
                filled(slot, scan.columns_in_scan_slot);
                bare::MemoryContextReset((*scan.econtext).ecxt_per_tuple_memory);
                (*scan.econtext).ecxt_scantuple = slot;
                if let Some(step) = failing(&batch.steps, scan.econtext, at) {
                    count_failed(state, step, &mut scan.counters.rows_filtered);
                    continue;
                }
            }
            if !scan.direct && batch.steps.is_empty() {
                bare::MemoryContextReset((*scan.econtext).ecxt_per_tuple_memory);
            }
            if scan.direct {
                let result = scan.result_slot;
                clear(result);
                fill(result, &batch.outputs, at);
                filled(result, scan.columns_in_result_slot);
                return result;
            }
            clear(slot);
            fill(slot, &batch.fills, at);
            filled(slot, scan.columns_in_scan_slot);
            return project(state, scan.econtext, slot);
        }
        std::ptr::null_mut()
    }
}

/// The next hot row that passes; null when there are no more.
#[inline]
unsafe fn hot_row(state: *mut PlanState, scan: *mut Scan, backward: bool) -> *mut TupleTableSlot {
    // SAFETY: as `cold_row`; the heap slot holds the row that `next` found, and has as many columns as the
    // table.
    unsafe {
        let scan = &mut *scan;
        loop {
            let Some(source) = &scan.hot else { return std::ptr::null_mut() };
            if !(if backward { source.previous() } else { source.next() }) {
                return std::ptr::null_mut();
            }
            let heap_slot = source.slot();
            let slot = scan.scan_slot;
            deform(heap_slot, scan.hot_columns);
            scan.counters.hot_rows += 1;
            clear(slot);
            for &column in &scan.hot_fills {
                *(*slot).tts_values.add(column) = *(*heap_slot).tts_values.add(column);
                *(*slot).tts_isnull.add(column) = *(*heap_slot).tts_isnull.add(column);
            }
            (*slot).tts_tid = (*heap_slot).tts_tid;
            filled(slot, scan.columns_in_scan_slot);
            bare::MemoryContextReset((*scan.econtext).ecxt_per_tuple_memory);
            if !scan.hot_steps.is_empty() {
                (*scan.econtext).ecxt_scantuple = slot;
                if let Some(step) = failing(&scan.hot_steps, scan.econtext, 0) {
                    count_failed(state, step, &mut scan.counters.hot_filtered);
                    continue;
                }
            }
            if scan.direct {
                let result = scan.result_slot;
                clear(result);
                for (to, &from) in scan.output_columns.iter().enumerate() {
                    *(*result).tts_values.add(to) = *(*slot).tts_values.add(from);
                    *(*result).tts_isnull.add(to) = *(*slot).tts_isnull.add(from);
                }
                filled(result, scan.columns_in_result_slot);
                return result;
            }
            return project(state, scan.econtext, slot);
        }
    }
}

/// The next row in the direction that the executor moves in, or an empty slot.
unsafe fn scroll_row(state: *mut PlanState, scan: *mut Scan) -> *mut TupleTableSlot {
    // SAFETY: as `cold_row`.
    unsafe {
        let mut next = scroll(state.cast(), false);
        loop {
            let found = match next {
                Next::Batch => cold_row(state, scan),
                Next::Hot => hot_row(state, scan, (*scan).is_backward()),
                Next::End => return empty(scan),
            };
            if !found.is_null() {
                return found;
            }
            next = scroll(state.cast(), next == Next::Hot);
        }
    }
}

/// Where the next row is; `used_up`: not in the heap pages.
unsafe extern "C-unwind" fn scroll(custom: *mut pg_sys::CustomScanState, used_up: bool) -> Next {
    // SAFETY: the node has begun.
    unsafe {
        carried::guarded(|| {
            pgrx::check_for_interrupts!();
            let scan = &mut *(*custom.cast::<Node>()).state;
            if used_up { scan.leave_hot() } else { scan.scroll() }
        })
    }
}

/// Puts the columns that conditions read of row `at` of the batch into the scan slot.
///
/// # Safety
/// The batch has been filled and has that row.
pub unsafe fn fill_for_checks(scan: &Scan, at: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        clear(scan.scan_slot);
        fill(scan.scan_slot, &scan.batch.checks, at);
        filled(scan.scan_slot, scan.columns_in_scan_slot);
    }
}

/// Takes the first `columns` attributes out of a heap row.
///
/// # Safety
/// The slot holds a row. An ERROR jumps past the caller.
#[inline]
pub unsafe fn deform(slot: *mut TupleTableSlot, columns: i32) {
    // SAFETY: the caller's promise.
    unsafe {
        if i32::from((*slot).tts_nvalid) < columns {
            bare::slot_getsomeattrs_int(slot, columns);
        }
    }
}

/// Whether a deformed row passes the native ones of these conditions.
///
/// # Safety
/// As `deform`.
#[inline]
pub unsafe fn passes_native(
    steps: &[Step],
    econtext: *mut pg_sys::ExprContext,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: the caller's promise; conditions read what the slot has.
    unsafe {
        if !steps.iter().any(|step| step.native) {
            return true;
        }
        bare::MemoryContextReset((*econtext).ecxt_per_tuple_memory);
        (*econtext).ecxt_scantuple = slot;
        steps.iter().filter(|step| step.native).all(|step| passes(step.state, econtext))
    }
}

/// The first condition that the row in the scan slot fails.
#[inline]
unsafe fn failing(steps: &[Step], econtext: *mut pg_sys::ExprContext, at: usize) -> Option<&Step> {
    // SAFETY: codes have an entry a row and are below the number of verdicts, or NO_CODE.
    unsafe {
        for step in steps {
            let code = if step.codes.is_null() { batch::NO_CODE } else { *step.codes.add(at) };
            if code == batch::NO_CODE {
                if !passes(step.state, econtext) {
                    return Some(step);
                }
                continue;
            }
            let verdict = step.verdicts.add(code as usize);
            if *verdict == batch::UNKNOWN {
                // An ERROR leaves the verdict unknown.
                *verdict = if passes(step.state, econtext) { batch::PASSES } else { batch::FAILS };
            }
            if *verdict == batch::FAILS {
                return Some(step);
            }
        }
        None
    }
}

/// Runs a qual in the per-tuple memory.
#[inline]
unsafe fn passes(state: *mut pg_sys::ExprState, econtext: *mut pg_sys::ExprContext) -> bool {
    // SAFETY: an initialised expression and the node's context.
    unsafe {
        let Some(evaluate) = (*state).evalfunc else { return true };
        let previous = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = (*econtext).ecxt_per_tuple_memory;
        let mut is_null = false;
        let result = evaluate(state, econtext, &raw mut is_null);
        pg_sys::CurrentMemoryContext = previous;
        !is_null && result.value() != 0
    }
}

#[inline]
unsafe fn count_failed(state: *mut PlanState, step: &Step, filtered: &mut u64) {
    // SAFETY: instrumentation is null or the node's own.
    unsafe {
        if step.native {
            *filtered += 1;
        } else if !(*state).instrument.is_null() {
            (*(*state).instrument).nfiltered1 += 1.0;
        }
    }
}

/// The row in the scan slot as the plan's target list wants it.
#[inline]
unsafe fn project(
    state: *mut PlanState,
    econtext: *mut pg_sys::ExprContext,
    slot: *mut TupleTableSlot,
) -> *mut TupleTableSlot {
    // SAFETY: an initialised projection and the node's context.
    unsafe {
        (*econtext).ecxt_scantuple = slot;
        let projection = (*state).ps_ProjInfo;
        if projection.is_null() {
            return slot;
        }
        let result = (*projection).pi_state.resultslot;
        clear(result);
        let Some(evaluate) = (*projection).pi_state.evalfunc else { return slot };
        let previous = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = (*econtext).ecxt_per_tuple_memory;
        let mut is_null = false;
        evaluate(&raw mut (*projection).pi_state, econtext, &raw mut is_null);
        pg_sys::CurrentMemoryContext = previous;
        filled(result, (*(*result).tts_tupleDescriptor).natts as i16);
        result
    }
}

/// Moves on to rows that are not in memory yet, and says in `phase` what there is.
unsafe extern "C-unwind" fn refill(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the node has begun.
    unsafe {
        carried::guarded(|| {
            pgrx::check_for_interrupts!();
            (*(*custom.cast::<Node>()).state).refill();
        })
    }
}

unsafe extern "C-unwind" fn test_row(custom: *mut pg_sys::CustomScanState) -> *mut TupleTableSlot {
    // SAFETY: the node has begun inside an EvalPlanQual query.
    unsafe { carried::guarded(|| super::recheck::next(custom, &mut *(*custom.cast::<Node>()).state)) }
}
