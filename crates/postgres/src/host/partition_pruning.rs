//! Partitions that are left out when a statement runs.

use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;

use crate::compat;
pub use crate::compat::{PruneState, matching_inputs};

/// Finds out, when a statement starts, which inputs of an Append are left by the values known then. Gives the
/// node an expression context. Returns the state for `matching_inputs`, and the set of inputs.
pub unsafe fn begin_pruning(
    node: *mut pg_sys::PlanState,
    inputs: i32,
    partitions: *mut pg_sys::PartitionPruneInfo,
) -> (*mut PruneState, *mut pg_sys::Bitmapset) {
    // SAFETY: a call into the server, guarded so that its ERROR unwinds.
    let begun = unsafe { pg_guard_ffi_boundary(|| compat::begin_pruning(node, inputs, partitions)) };
    begun.unwrap_or_else(|| super::error::internal("partitions are of another statement"))
}
