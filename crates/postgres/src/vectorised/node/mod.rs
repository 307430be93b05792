//! The executor's node: a `Custom Scan (Colonnade)` that stands in for a subtree of the plan and runs it on
//! vectors.
//!
//! This file owns the callbacks and the memory. The node's Rust values live on Rust's heap. They are dropped
//! when the node ends, or by the query's memory context after an ERROR. The other files:
//! - `state` holds what the node remembers, translates the kept subtree and builds its execution;
//! - `rows` hands rows out;
//! - `fallback` runs the kept subtree itself where exact semantics are not implemented;
//! - `values` evaluates parameters and stable expressions;
//! - `pruning` says which partitions these values leave;
//! - `host` is what a running plan asks of the server.
//!
//! Invariant: the node never runs backwards, and never where single rows are checked again (EvalPlanQual). It
//! has no flag for backward scans, and it falls back under EvalPlanQual.

mod fallback;
mod host;
mod pruning;
mod rows;
mod state;
mod temp_files;
mod threads;
mod values;

use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys;

pub(super) use host::operator_memory;
pub use state::{Leaf, State};

use crate::host::custom_node::{CustomNode, Methods};
use crate::host::full_errors;
use crate::planner::plan::NAME;

/// Registered apart from the scan node, under another name, so that plans read back from text find the right
/// one. EXPLAIN shows the name of the execution methods, which is the same for both.
const REGISTERED: &std::ffi::CStr = c"Colonnade Vectorised";

/// The node's state as the server sees it.
pub type Node = CustomNode<State>;

/// The plan node's callbacks.
pub fn scan_methods() -> *const pg_sys::CustomScanMethods {
    static METHODS: OnceLock<Methods<pg_sys::CustomScanMethods>> = OnceLock::new();
    &raw const METHODS
        .get_or_init(|| {
            Methods(pg_sys::CustomScanMethods {
                CustomName: REGISTERED.as_ptr(),
                CreateCustomScanState: Some(create_state),
            })
        })
        .0
}

fn exec_methods() -> *const pg_sys::CustomExecMethods {
    static METHODS: OnceLock<Methods<pg_sys::CustomExecMethods>> = OnceLock::new();
    &raw const METHODS
        .get_or_init(|| {
            Methods(pg_sys::CustomExecMethods {
                CustomName: NAME.as_ptr(),
                BeginCustomScan: Some(begin),
                ExecCustomScan: Some(rows::exec_custom_scan),
                EndCustomScan: Some(end),
                ReScanCustomScan: Some(rescan),
                ExplainCustomScan: Some(explain),
                ..Default::default()
            })
        })
        .0
}

/// Makes the plan node known, so that plans can be read back from text.
///
/// # Safety
/// Runs once per process, while the library is loaded.
pub unsafe fn register() {
    // SAFETY: nothing else runs yet.
    unsafe {
        pg_sys::RegisterCustomScanMethods(scan_methods());
        threads::register();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn create_state(_plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: called by the server for the executor's own memory; the methods are static.
    unsafe { Node::create(exec_methods()) }
}

unsafe extern "C-unwind" fn begin(
    custom: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    eflags: i32,
) {
    // SAFETY: the server passes the node that `create_state` made.
    unsafe {
        full_errors::guarded(|| {
            Node::begin(custom, estate, || State::begin(custom, eflags));
            // One call less per row; interrupts are checked per batch.
            (*custom).ss.ps.ExecProcNode = Some(rows::exec_node);
        })
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the node has begun. Slots point at nothing of ours once they are cleared.
    unsafe {
        pg_sys::ExecClearTuple((*custom).ss.ss_ScanTupleSlot);
        pg_sys::ExecClearTuple((*custom).ss.ps.ps_ResultTupleSlot);
        for child in pgrx::PgList::<pg_sys::PlanState>::from_pg((*custom).custom_ps).iter_ptr() {
            pg_sys::ExecEndNode(child);
        }
        Node::end(custom, |state| state.close());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the node has begun; its children are initialised.
    unsafe {
        pg_sys::ExecClearTuple((*custom).ss.ss_ScanTupleSlot);
        for child in pgrx::PgList::<pg_sys::PlanState>::from_pg((*custom).custom_ps).iter_ptr() {
            if !(*custom).ss.ps.chgParam.is_null() {
                pg_sys::UpdateChangedParamSet(child, (*custom).ss.ps.chgParam);
            }
            // Children with changed parameters are restarted when they are first asked. A pruned partition is
            // never asked.
            if (*child).chgParam.is_null() {
                pg_sys::ExecReScan(child);
            }
        }
        (*(*custom.cast::<Node>()).state).restart();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain(
    custom: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: the node has begun.
    unsafe { super::explain::explain(custom, &*(*custom.cast::<Node>()).state, ancestors, es) };
}
