//! Scans of columnar tables under the server's executor.
//!
//! The engine's scan (`stripe::scan`) does the work. A plan node of ours reads it in one of two ways: `rows`
//! hands out row after row, `vectors` gives batches to the vectorised node above. The way is chosen when the
//! node is created.
//!
//! - `table`: what both have, read off the plan; `clauses`: its conditions, as predicates that are known now
//! - `stripes`: what the engine's scan reads: `store`, the table's own stripes, `groups`, the row groups of
//!   Parquet files, or `others`, the stripes of a column file that the table did not write; `last`: the one
//!   opened last; `hot`: rows in heap pages
//! - `datums`, `fill_batch`: vectors of a chunk as Datums
//! - `explain`: what EXPLAIN says of either; `session_counts`: what a session has read of rowcompress tables

mod clauses;
mod datums;
mod explain;
mod fill_batch;
mod groups;
mod hot;
mod last;
mod others;
mod rows;
mod session_counts;
mod store;
mod stripes;
mod table;
pub mod vectors;

use std::cell::Cell;
use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys;

use crate::host::custom_node::Methods;
use crate::planner::plan::NAME;

thread_local! {
    /// The node that is created next serves vectors.
    static SERVES_VECTORS: Cell<bool> = const { Cell::new(false) };
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
    // SAFETY: called by the server for the executor's own memory.
    unsafe { if SERVES_VECTORS.take() { vectors::create() } else { rows::create() } }
}
