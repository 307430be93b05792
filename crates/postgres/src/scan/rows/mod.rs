//! The node that hands out rows: `Custom Scan (Colonnade)` under the server's executor.
//!
//! - `state`: what it remembers, read off the plan
//! - `run`: the loop that runs once per row
//! - `refill`: the next chunk of stripes; `scroll`: both ways, for cursors
//! - `recheck`: EvalPlanQual; `parallel`: a scan shared among workers
//!
//! Two kinds of code meet here. Everything that owns Rust values runs under the guard that turns server
//! ERRORs into unwinding. The loop that runs once per row (`run`) owns nothing, so an ERROR raised by an
//! expression may jump straight over it. The loop therefore needs no guard, which would cost more than the
//! row. Invariant: no frame of that loop holds a value with a destructor.

mod parallel;
mod recheck;
mod refill;
mod run;
mod scroll;
mod state;

use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys;

use super::explain;
use crate::host::custom_node::{CustomNode, Methods};
use crate::host::full_errors;
use crate::planner::plan::NAME;
use state::RowScan;

/// The node's state as the server sees it.
type Node = CustomNode<RowScan>;

/// The callbacks of a node that runs.
pub(super) fn exec_methods() -> *const pg_sys::CustomExecMethods {
    static METHODS: OnceLock<Methods<pg_sys::CustomExecMethods>> = OnceLock::new();
    &raw const METHODS
        .get_or_init(|| {
            Methods(pg_sys::CustomExecMethods {
                CustomName: NAME.as_ptr(),
                BeginCustomScan: Some(begin_scan),
                ExecCustomScan: Some(run::exec_custom_scan),
                EndCustomScan: Some(end_scan),
                ReScanCustomScan: Some(rescan),
                EstimateDSMCustomScan: Some(parallel::estimate),
                InitializeDSMCustomScan: Some(parallel::initialize),
                ReInitializeDSMCustomScan: Some(parallel::reinitialize),
                InitializeWorkerCustomScan: Some(parallel::attach),
                ShutdownCustomScan: Some(parallel::shutdown),
                ExplainCustomScan: Some(explain_scan),
                ..Default::default()
            })
        })
        .0
}

/// A node that has not begun.
///
/// # Safety
/// As `CustomNode::create`.
pub(super) unsafe fn create() -> *mut pg_sys::Node {
    // SAFETY: the caller's promise; the methods are static.
    unsafe { Node::create(exec_methods()) }
}

unsafe extern "C-unwind" fn begin_scan(
    custom: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    eflags: i32,
) {
    // SAFETY: the server passes the node that `create` made.
    unsafe {
        full_errors::guarded(|| {
            Node::begin(custom, estate, || RowScan::begin(custom, estate, eflags));
            // One call less per row; interrupts are checked per batch.
            (*custom).ss.ps.ExecProcNode = Some(run::exec_node);
        })
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end_scan(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the server ends the node that `create` made.
    unsafe { Node::end(custom, |scan| scan.close()) };
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the node has begun.
    unsafe {
        // Forgets which EvalPlanQual row was returned.
        pg_sys::ExecScanReScan(custom.cast());
        (*(*custom.cast::<Node>()).state).restart();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain_scan(
    custom: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: the node has begun.
    unsafe { explain::explain(&(*(*custom.cast::<Node>()).state).table, None, ancestors, es) };
}
