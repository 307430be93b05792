//! Handing out rows: the loop that runs once per row.
//!
//! Called by the server's executor through the node's `ExecProcNode`. No frame of this file owns anything,
//! because an ERROR raised below may jump over it. A function that needs a guard (`refill`) has its own.

use pgrx::pg_sys::{self, PlanState, TupleTableSlot};

use super::state::{Phase, State};
use super::{Node, fallback};
use crate::host::{full_errors, slots};

/// The callback that the server's wrapper node calls, where our own pointer was not used.
pub unsafe extern "C-unwind" fn exec_custom_scan(
    custom: *mut pg_sys::CustomScanState,
) -> *mut TupleTableSlot {
    // SAFETY: a node of ours begins with the server's.
    unsafe { exec_node(custom.cast()) }
}

/// The next row, or an empty slot.
pub unsafe extern "C-unwind" fn exec_node(planstate: *mut PlanState) -> *mut TupleTableSlot {
    // SAFETY: the node has begun, so its state is there; slots are the node's own. See the file's header for
    // ERRORs.
    unsafe {
        let node = planstate.cast::<Node>();
        let slot = (*node).custom.ss.ss_ScanTupleSlot;
        loop {
            let state = (*node).state;
            if (*state).at < (*state).end {
                next_row(state, slot);
                return project(planstate, slot);
            }
            match (*state).phase {
                Phase::Start | Phase::Running => refill(planstate.cast()),
                Phase::Fallback => {
                    let row = fallback::next(state);
                    if row.is_null() {
                        return none(slot);
                    }
                    // The slot's kind is promised to the node above, so values move into our own.
                    let columns = (*(*slot).tts_tupleDescriptor).natts as usize;
                    std::ptr::copy_nonoverlapping((*row).tts_values, (*slot).tts_values, columns);
                    std::ptr::copy_nonoverlapping((*row).tts_isnull, (*slot).tts_isnull, columns);
                    filled(slot);
                    return project(planstate, slot);
                }
                Phase::Done => return none(slot),
            }
        }
    }
}

/// Empties the slot, which says that there is no row.
///
/// # Safety
/// A virtual slot of the node.
#[inline]
unsafe fn none(slot: *mut TupleTableSlot) -> *mut TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe { slots::clear(slot) };
    slot
}

/// Declares the slot full.
///
/// # Safety
/// A virtual slot of the node, all of whose columns are set.
#[inline]
unsafe fn filled(slot: *mut TupleTableSlot) {
    // SAFETY: the caller's promise.
    unsafe { slots::filled(slot, (*(*slot).tts_tupleDescriptor).natts as i16) }
}

/// Puts the next row of the Datums into the slot.
///
/// # Safety
/// A running node that has a next row, and its slot.
#[inline]
unsafe fn next_row(state: *mut State, slot: *mut TupleTableSlot) {
    // SAFETY: there is an output for each column of the slot, each with `end` rows.
    unsafe {
        let state = &mut *state;
        let at = state.at;
        state.at += 1;
        slots::clear(slot);
        for (to, output) in state.outputs.iter().enumerate() {
            *(*slot).tts_values.add(to) = *output.values.as_ptr().add(at);
            *(*slot).tts_isnull.add(to) = *output.nulls.as_ptr().add(at);
        }
        filled(slot);
    }
}

/// The row in the slot as the plan's target list wants it: itself, unless that was changed after the subtree
/// was replaced.
///
/// # Safety
/// A running node, and its slot with a row in it. An ERROR jumps past the caller.
#[inline]
unsafe fn project(planstate: *mut PlanState, slot: *mut TupleTableSlot) -> *mut TupleTableSlot {
    // SAFETY: an initialised projection and the node's context.
    unsafe {
        let projection = (*planstate).ps_ProjInfo;
        if projection.is_null() {
            return slot;
        }
        project_slowly(planstate, slot)
    }
}

unsafe extern "C-unwind" fn project_slowly(
    planstate: *mut PlanState,
    slot: *mut TupleTableSlot,
) -> *mut TupleTableSlot {
    // SAFETY: as `project`.
    unsafe {
        full_errors::guarded(|| {
            let econtext = (*planstate).ps_ExprContext;
            pg_sys::MemoryContextReset((*econtext).ecxt_per_tuple_memory);
            (*econtext).ecxt_scantuple = slot;
            pg_sys::ExecProject((*planstate).ps_ProjInfo)
        })
    }
}

/// Moves on to rows that are not Datums yet.
unsafe extern "C-unwind" fn refill(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the node has begun.
    unsafe {
        full_errors::guarded(|| {
            pgrx::check_for_interrupts!();
            (*(*custom.cast::<Node>()).state).refill();
        })
    }
}
