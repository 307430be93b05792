//! The node that gives vectors to the vectorised node above it.
//!
//! - `read`: what it remembers; stripes as pieces of work, then hot rows
//! - `hot_rows`: rows in heap pages as a batch
//! - `unchecked`: rows of a chunk that the stripe could not answer for
//!
//! `vectorised::source` asks it. It never runs as a node of its own: asked for a row, it raises an ERROR.
//! Conditions of the plan's qual are left to the caller; native ones are answered here. Invariant: the node's
//! counters and instrumentation tell what was read, as if it had run itself.

mod hot_rows;
mod read;
mod unchecked;

use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, NodeTag};

use super::{SERVES_VECTORS, explain};
use crate::host::custom_node::{CustomNode, Methods};
use crate::host::{error, full_errors};
use crate::planner::plan::NAME;
pub use read::{Piece, VectorScan};

/// The node's state as the server sees it.
type Node = CustomNode<VectorScan>;

fn exec_methods() -> *const pg_sys::CustomExecMethods {
    static METHODS: OnceLock<Methods<pg_sys::CustomExecMethods>> = OnceLock::new();
    &raw const METHODS
        .get_or_init(|| {
            Methods(pg_sys::CustomExecMethods {
                CustomName: NAME.as_ptr(),
                BeginCustomScan: Some(begin),
                ExecCustomScan: Some(exec),
                EndCustomScan: Some(end),
                ReScanCustomScan: Some(rescan),
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

/// Has the next scan node that is created serve vectors, for as long as this lives.
struct Serving;

impl Drop for Serving {
    fn drop(&mut self) {
        SERVES_VECTORS.set(false);
    }
}

/// Initialises a scan node of ours that serves vectors.
///
/// # Safety
/// `plan` is such a node of the statement that is being initialised; called under guard.
pub unsafe fn init(
    plan: *mut pg_sys::Plan,
    estate: *mut pg_sys::EState,
    eflags: i32,
) -> *mut pg_sys::PlanState {
    SERVES_VECTORS.set(true);
    // An ERROR may come before the node is created.
    let _serving = Serving;
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ExecInitNode(plan, estate, eflags) }
}

/// The state of a node that `init` made; None for another kind of node.
///
/// # Safety
/// `state` is a valid plan state. The node keeps what is returned until it ends.
pub unsafe fn scan_of(state: *mut pg_sys::PlanState) -> Option<*mut VectorScan> {
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

unsafe extern "C-unwind" fn begin(
    custom: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    eflags: i32,
) {
    // SAFETY: the server passes the node that `create` made.
    unsafe {
        full_errors::guarded(|| Node::begin(custom, estate, || VectorScan::begin(custom, estate, eflags)));
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn exec(_custom: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    error::internal("a scan that serves vectors was asked for a row")
}

#[pg_guard]
unsafe extern "C-unwind" fn end(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the server ends the node that `create` made.
    unsafe { Node::end(custom, |scan| scan.close()) };
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(custom: *mut pg_sys::CustomScanState) {
    // SAFETY: the node has begun.
    unsafe { (*(*custom.cast::<Node>()).state).restart() };
}

#[pg_guard]
unsafe extern "C-unwind" fn explain_scan(
    custom: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: the node has begun.
    unsafe {
        let scan = &*(*custom.cast::<Node>()).state;
        explain::explain(scan.table(), Some(&scan.beside()), ancestors, es);
    }
}
