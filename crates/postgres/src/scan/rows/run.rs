//! Handing out rows: the loop that runs once per row.
//!
//! Called by the server's executor through the node's `ExecProcNode`. No frame of this file owns anything.
//! Expressions and heap's scan are called without a guard, and an ERROR that they raise jumps over these
//! frames. A function that needs a guard (`refill`) has its own.

use pgrx::pg_sys::{self, PlanState, TupleTableSlot};

use super::Node;
use super::scroll::Next;
use super::state::{Phase, RowScan};
use crate::host::full_errors;
use crate::host::slots::{self, clear, deform, filled, passes};
use crate::scan::datums::{self, Batch, Step, fill};
use crate::storage::file::tid;

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
unsafe fn empty(scan: *mut RowScan) -> *mut TupleTableSlot {
    // SAFETY: the node's own slots.
    unsafe {
        clear((*scan).table.scan_slot);
        clear((*scan).result_slot);
        (*scan).result_slot
    }
}

/// The next row of the batch that passes; null when the batch is used up.
#[inline]
unsafe fn cold_row(state: *mut PlanState, scan: *mut RowScan) -> *mut TupleTableSlot {
    // SAFETY: the node runs; see the file's header for ERRORs.
    unsafe {
        let scan = &mut *scan;
        let slot = scan.table.scan_slot;
        let batch = &mut scan.table.batch;
        while batch.at < batch.end {
            let at = batch.at;
            batch.at += 1;
            if scan.keep_position {
                clear(slot);
                (*slot).tts_tid = position(batch, at).unwrap_or((*slot).tts_tid);
                filled(slot, scan.table.columns_in_scan_slot);
            }
            if !batch.steps.is_empty() {
                clear(slot);
                fill(slot, &batch.checks, at);
                filled(slot, scan.table.columns_in_scan_slot);
                slots::forget_row(scan.table.econtext);
                (*scan.table.econtext).ecxt_scantuple = slot;
                if let Some(step) = failing(&batch.steps, scan.table.econtext, at) {
                    count_failed(state, step, &mut scan.table.counters.rows_filtered);
                    continue;
                }
            }
            if !scan.direct && batch.steps.is_empty() {
                slots::forget_row(scan.table.econtext);
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
            filled(slot, scan.table.columns_in_scan_slot);
            return project(state, scan.table.econtext, slot);
        }
        std::ptr::null_mut()
    }
}

/// The TID of a row of the batch, where positions were kept.
#[inline]
fn position(batch: &Batch, at: usize) -> Option<pg_sys::ItemPointerData> {
    batch.positions.get(at).map(|&position| tid::cold_tid(batch.base + u64::from(position)))
}

/// The next hot row that passes; null when there are no more.
#[inline]
unsafe fn hot_row(state: *mut PlanState, scan: *mut RowScan, backward: bool) -> *mut TupleTableSlot {
    // SAFETY: as `cold_row`; the heap slot holds the row that `next` found, and has as many columns as the
    // table.
    unsafe {
        let scan = &mut *scan;
        loop {
            let Some(source) = &scan.table.hot else { return std::ptr::null_mut() };
            if !(if backward { source.previous() } else { source.next() }) {
                return std::ptr::null_mut();
            }
            let heap_slot = source.slot();
            let slot = scan.table.scan_slot;
            deform(heap_slot, scan.table.hot_columns);
            scan.table.hot_rows += 1;
            clear(slot);
            for &column in &scan.hot_fills {
                *(*slot).tts_values.add(column) = *(*heap_slot).tts_values.add(column);
                *(*slot).tts_isnull.add(column) = *(*heap_slot).tts_isnull.add(column);
            }
            (*slot).tts_tid = (*heap_slot).tts_tid;
            filled(slot, scan.table.columns_in_scan_slot);
            slots::forget_row(scan.table.econtext);
            if !scan.table.hot_steps.is_empty() {
                (*scan.table.econtext).ecxt_scantuple = slot;
                if let Some(step) = failing(&scan.table.hot_steps, scan.table.econtext, 0) {
                    count_failed(state, step, &mut scan.table.hot_filtered);
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
            return project(state, scan.table.econtext, slot);
        }
    }
}

/// The next row in the direction that the executor moves in, or an empty slot.
unsafe fn scroll_row(state: *mut PlanState, scan: *mut RowScan) -> *mut TupleTableSlot {
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
        full_errors::guarded(|| {
            pgrx::check_for_interrupts!();
            let scan = &mut *(*custom.cast::<Node>()).state;
            if used_up { scan.leave_hot() } else { scan.scroll() }
        })
    }
}

/// The first condition that the row in the scan slot fails.
#[inline]
unsafe fn failing(steps: &[Step], econtext: *mut pg_sys::ExprContext, at: usize) -> Option<&Step> {
    // SAFETY: codes have an entry a row and are below the number of verdicts, or NO_CODE.
    unsafe {
        for step in steps {
            let code = if step.codes.is_null() { datums::NO_CODE } else { *step.codes.add(at) };
            if code == datums::NO_CODE {
                if !passes(step.state, econtext) {
                    return Some(step);
                }
                continue;
            }
            let verdict = step.verdicts.add(code as usize);
            if *verdict == datums::UNKNOWN {
                // An ERROR leaves the verdict unknown.
                *verdict = if passes(step.state, econtext) { datums::PASSES } else { datums::FAILS };
            }
            if *verdict == datums::FAILS {
                return Some(step);
            }
        }
        None
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
        if slots::fill_projection(&raw mut (*projection).pi_state, econtext).is_none() {
            return slot;
        }
        filled(result, (*(*result).tts_tupleDescriptor).natts as i16);
        result
    }
}

/// Moves on to rows that are not in memory yet, and says in `phase` what there is.
unsafe extern "C-unwind" fn refill(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the node has begun.
    unsafe {
        full_errors::guarded(|| {
            pgrx::check_for_interrupts!();
            (*(*custom.cast::<Node>()).state).refill();
        })
    }
}

unsafe extern "C-unwind" fn test_row(custom: *mut pg_sys::CustomScanState) -> *mut TupleTableSlot {
    // SAFETY: the node has begun inside an EvalPlanQual query.
    unsafe { full_errors::guarded(|| super::recheck::next(custom, &mut *(*custom.cast::<Node>()).state)) }
}
