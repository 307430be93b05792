//! Running `Custom Scan (Colonnade)`: rows of columnar tables for the server's executor.
//!
//! `begin` reads the finished plan, `clauses` turns its conditions into predicates at each start, `cold`
//! walks the stripes, `chunk` takes one chunk through prune, filter and project (`steps` says which, `work`
//! does what remains after pruning), `batch` holds Datums of up to a thousand rows, `rows` hands them out one
//! by one, `hot` adds the rows in heap pages, `scroll` moves both ways for cursors, `vectors` (with `known`
//! and `shape`) gives the same rows as vectors to the vectorised executor, `recheck` serves EvalPlanQual,
//! `parallel` shares a scan among workers, `explain` tells. This file owns the node's callbacks and its
//! memory.
//!
//! Two kinds of code meet here. Everything that owns Rust values runs under the guard that turns server
//! ERRORs into unwinding. The loop that runs once per row (`rows`) owns nothing, so an ERROR raised by an
//! expression may jump straight over it; so it needs no guard, which would cost more than the row. Invariant:
//! no frame of that loop holds a value with a destructor.

mod batch;
mod begin;
mod chunk;
mod clauses;
mod cold;
mod explain;
mod hot;
mod known;
mod parallel;
mod ranked;
mod recheck;
mod rows;
mod scroll;
mod shape;
mod steps;
mod vectors;
mod work;

use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, NodeTag};

use crate::host::carried;
use crate::host::custom_node::{CustomNode, Methods};
use crate::planner::plan::NAME;
pub use begin::Scan;
pub use shape::ChunkUnit;
pub use steps::Derive;
pub use vectors::{Piece, Wanted};

/// The node's state as the server sees it.
pub type Node = CustomNode<Scan>;

/// The state of a node that has begun; None when the plan state is another kind of node.
///
/// # Safety
/// `state` is a valid plan state. The node keeps what is returned until it ends.
pub unsafe fn scan_of(state: *mut pg_sys::PlanState) -> Option<*mut Scan> {
    // SAFETY: the cast follows the tag and the methods.
    unsafe {
        if (*state).type_ != NodeTag::T_CustomScanState {
            return None;
        }
        let custom = state.cast::<pg_sys::CustomScanState>();
        let ours = std::ptr::eq((*custom).methods, exec_methods());
        ours.then(|| (*custom.cast::<Node>()).state).filter(|scan| !scan.is_null())
    }
}

/// The plan node's callbacks.
pub fn scan_methods() -> *const pg_sys::CustomScanMethods {
    static METHODS: OnceLock<Methods<pg_sys::CustomScanMethods>> = OnceLock::new();
    &raw const METHODS
        .get_or_init(|| {
            Methods(pg_sys::CustomScanMethods {
                CustomName: NAME.as_ptr(),
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
                BeginCustomScan: Some(begin_scan),
                ExecCustomScan: Some(rows::exec_custom_scan),
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

/// Makes the plan node known, so that plans can be read back from text (parallel workers do).
///
/// # Safety
/// Runs once per process, while the library is loaded.
pub unsafe fn register() {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::RegisterCustomScanMethods(scan_methods()) };
}

#[pg_guard]
unsafe extern "C-unwind" fn create_state(_plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: called by the server for the executor's own memory; the methods are static.
    unsafe { Node::create(exec_methods()) }
}

unsafe extern "C-unwind" fn begin_scan(
    custom: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    eflags: i32,
) {
    // SAFETY: the server passes the node that `create_state` made.
    unsafe {
        carried::guarded(|| {
            Node::begin(custom, estate, || begin::begin(custom, estate, eflags));
            // One call less per row; interrupts are checked per batch.
            (*custom).ss.ps.ExecProcNode = Some(rows::exec_node);
        })
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end_scan(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the node has begun, or its state is null.
    unsafe {
        let scan = (*custom.cast::<Node>()).state;
        if !scan.is_null() {
            (*scan).close();
        }
        Node::drop_state(custom.cast());
    }
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
    unsafe { explain::explain(custom, ancestors, es) };
}
