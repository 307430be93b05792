//! Partitions that are left out when a statement runs.

use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;

mod server {
    use pgrx::pg_sys::{Bitmapset, PartitionPruneInfo, PartitionPruneState, PlanState};
    use std::ffi::c_int;
    unsafe extern "C-unwind" {
        pub fn ExecInitPartitionPruning(
            node: *mut PlanState,
            inputs: c_int,
            partitions: *mut PartitionPruneInfo,
            remaining: *mut *mut Bitmapset,
        ) -> *mut PartitionPruneState;
        pub fn ExecFindMatchingSubPlans(state: *mut PartitionPruneState, initial: bool) -> *mut Bitmapset;
    }
}

/// Finds out, when a statement starts, which inputs of an Append are left by the values known then. Gives the
/// node an expression context. Returns the state for `matching_inputs`, and the set of inputs.
pub unsafe fn begin_pruning(
    node: *mut pg_sys::PlanState,
    inputs: i32,
    partitions: *mut pg_sys::PartitionPruneInfo,
) -> (*mut pg_sys::PartitionPruneState, *mut pg_sys::Bitmapset) {
    let mut remaining = std::ptr::null_mut();
    // SAFETY: a call into the server, guarded so that its ERROR unwinds.
    let state = unsafe {
        pg_guard_ffi_boundary(|| {
            server::ExecInitPartitionPruning(node, inputs, partitions, &raw mut remaining)
        })
    };
    (state, remaining)
}

/// Which of those inputs are left by the present parameters. Inputs that were left out before are not
/// counted. An ERROR jumps past the caller, which guards.
pub unsafe fn matching_inputs(state: *mut pg_sys::PartitionPruneState) -> *mut pg_sys::Bitmapset {
    // SAFETY: a call into the server.
    unsafe { server::ExecFindMatchingSubPlans(state, false) }
}
