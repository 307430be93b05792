//! Running the kept subtree with the server's own executor.
//!
//! Called when the vectorised plan declines or meets an error that SQL defines, before any row was handed
//! out. The server then gives the answer, or raises the error in its own words. The subtree becomes one more
//! child of the node, so that EXPLAIN ANALYZE shows what it did. Invariant: the subtree sees the same
//! snapshot, parameters and command id as the node, because it is part of the same executor state.

use pgrx::pg_sys::{self, NodeTag};

use super::state::{Phase, State};
use crate::host::slots;
use crate::table_am::hooks;

/// Initialises the subtree and hands over to it.
///
/// # Safety
/// Called under guard while the node begins or runs, before any row was handed out.
pub unsafe fn start(state: &mut State, reason: String) {
    // SAFETY: the subtree belongs to the plan being run; what is made for it lives as long as the executor
    // state.
    unsafe {
        let custom = state.custom;
        let estate = (*custom).ss.ps.state;
        let previous = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
        let subtree = || pg_sys::ExecInitNode(state.subtree, estate, state.eflags);
        state.fallback = state.identity.during(subtree);
        (*custom).custom_ps = pg_sys::lappend((*custom).custom_ps, state.fallback.cast());
        // The statement's start has gone by: bitmap scans must not prefetch, system columns must come along.
        hooks::adjust(state.fallback);
        pg_sys::MemoryContextSwitchTo(previous);
    }
    state.reason = Some(reason);
    state.phase = Phase::Fallback;
}

mod bare {
    use pgrx::pg_sys::PlanState;
    unsafe extern "C-unwind" {
        pub fn ExecReScan(node: *mut PlanState);
    }
}

/// The next row of the subtree, its columns out of the tuple; null at the end.
///
/// # Safety
/// The subtree was started. An ERROR jumps past the caller.
#[inline]
pub unsafe fn next(state: *mut State) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the subtree runs; every initialised node has the callback.
    unsafe {
        let child = (*state).fallback;
        debug_assert!((*child).type_ != NodeTag::T_Invalid);
        if !(*child).chgParam.is_null() {
            bare::ExecReScan(child);
        }
        let Some(run) = (*child).ExecProcNode else { return std::ptr::null_mut() };
        let slot = run(child);
        if slots::is_empty(slot) {
            return std::ptr::null_mut();
        }
        slots::deform(slot, (*(*slot).tts_tupleDescriptor).natts);
        slot
    }
}
