//! Running `Custom Scan (Colonnade)`: rows of columnar tables for the server's executor.
//!
//! `begin` reads the finished plan, `clauses` turns its conditions into predicates at each start, `cold` walks the stripes, `chunk` takes one chunk
//! through prune, filter and project, `batch` holds Datums of up to a thousand rows, `rows` hands them out one by one, `hot` adds the rows in heap pages, `scroll` moves both ways for cursors,
//! `vectors` (with `known`) gives the same rows as vectors to the vectorised
//! executor, `recheck` serves EvalPlanQual, `parallel` shares a scan among workers, `explain` tells. This file owns the node's callbacks and its memory.
//!
//! Two kinds of code meet here. Everything that owns Rust values runs under the guard that turns server ERRORs into unwinding. The loop that
//! runs once per row (`rows`) owns nothing, so an ERROR raised by an expression may jump straight over it; so it needs no guard, which would cost
//! more than the row. Invariant: no frame of that loop holds a value with a destructor.

mod batch;
mod begin;
mod chunk;
mod clauses;
mod cold;
mod explain;
mod hot;
mod known;
mod parallel;
mod recheck;
mod rows;
mod scroll;
mod vectors;

use std::ffi::c_void;
use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, NodeTag};

use crate::planner::plan::NAME;
pub use begin::Scan;
pub use chunk::Derive;
pub use cold::may_match;
pub use vectors::{ChunkUnit, Piece, Wanted};

struct Methods<T>(T);
// SAFETY: tables of function pointers, written once, read only afterwards.
unsafe impl<T> Send for Methods<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Methods<T> {}

/// The node's state as the server sees it: its own struct first.
#[repr(C)]
pub struct Node {
    custom: pg_sys::CustomScanState,
    /// Ours, on Rust's heap; null until the node begins. Freed by `end_scan`, or with the query's memory.
    scan: *mut Scan,
    cleanup: pg_sys::MemoryContextCallback,
}

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
        ours.then(|| (*custom.cast::<Node>()).scan).filter(|scan| !scan.is_null())
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
    // SAFETY: a zeroed node is what the server asks for.
    unsafe {
        let node = pg_sys::palloc0(size_of::<Node>()).cast::<Node>();
        (*node).custom.ss.ps.type_ = NodeTag::T_CustomScanState;
        (*node).custom.methods = exec_methods();
        node.cast()
    }
}

/// Drops our state, once.
unsafe extern "C-unwind" fn drop_scan(node: *mut c_void) {
    // SAFETY: the node outlives this: it is called for the context that the node is in, or by end_scan.
    unsafe {
        let node = node.cast::<Node>();
        let scan = std::mem::replace(&mut (*node).scan, std::ptr::null_mut());
        if !scan.is_null() {
            drop(Box::from_raw(scan));
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin_scan(
    custom: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    eflags: i32,
) {
    // SAFETY: the server passes the node that `create_state` made; the callback's struct lives in it.
    unsafe {
        let node = custom.cast::<Node>();
        (*node).cleanup.func = Some(drop_scan);
        (*node).cleanup.arg = node.cast();
        pg_sys::MemoryContextRegisterResetCallback((*estate).es_query_cxt, &raw mut (*node).cleanup);
        (*node).scan = Box::into_raw(Box::new(begin::begin(custom, estate, eflags)));
        // One call less per row; interrupts are checked per batch.
        (*custom).ss.ps.ExecProcNode = Some(rows::exec_node);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end_scan(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the node has begun, or its state is null.
    unsafe {
        let scan = (*custom.cast::<Node>()).scan;
        if !scan.is_null() {
            (*scan).close();
        }
        drop_scan(custom.cast());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the node has begun.
    unsafe {
        // Forgets which EvalPlanQual row was returned.
        pg_sys::ExecScanReScan(custom.cast());
        (*(*custom.cast::<Node>()).scan).restart();
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
