//! Partitions that are left out when a statement of PostgreSQL 18 or later runs.
//!
//! The server keeps one state for each Append of a statement. It finds out before any node begins which
//! inputs the values known then leave, and an Append that begins numbers the inputs in its state anew. A node
//! of ours that stands for an Append must leave that state alone, as the Append may begin later, too: it gets
//! a copy.

use std::ffi::{c_int, c_void};

use pgrx::pg_sys::{self, Bitmapset, List, MemoryContext, PartitionPruneInfo, PlanState, PlannedStmt};

use crate::compat::Partitioned;

macro_rules! partitioned {
    ($($kind:ident)*) => { $(
        impl Partitioned for pg_sys::$kind {
            unsafe fn partitions(&self, statement: *mut PlannedStmt) -> *mut PartitionPruneInfo {
                if self.part_prune_index < 0 {
                    return std::ptr::null_mut();
                }
                // SAFETY: the caller's promise.
                unsafe { pg_sys::list_nth((*statement).partPruneInfos, self.part_prune_index).cast() }
            }
        }
    )* };
}
partitioned! { Append MergeAppend }

#[repr(C)]
struct Table {
    relation: *mut c_void,
    partitions: c_int,
    inputs: *mut c_int,
    tables: *mut c_int,
    entries: *mut c_int,
    present: *mut Bitmapset,
    initial: *mut List,
    each_start: *mut List,
    initial_context: pg_sys::PartitionPruneContext,
    each_start_context: pg_sys::PartitionPruneContext,
}

#[repr(C)]
struct Hierarchy {
    count: c_int,
    tables: [Table; 0],
}

/// The server's PartitionPruneState.
#[repr(C)]
pub struct PruneState {
    values: *mut c_void,
    parameters: *mut Bitmapset,
    others: *mut Bitmapset,
    memory: MemoryContext,
    does_initial: bool,
    does_each_start: bool,
    count: c_int,
    hierarchies: [*mut Hierarchy; 0],
}

/// A copy of so many bytes in the current memory.
unsafe fn copy<T>(from: *const T, bytes: usize) -> *mut T {
    // SAFETY: the callers' memory has so many bytes.
    unsafe {
        let to = pg_sys::palloc(bytes).cast::<T>();
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), bytes);
        to
    }
}

fn size(count: c_int, head: usize, each: usize) -> usize {
    head + usize::try_from(count).unwrap_or(0) * each
}

/// A copy of a state of which nothing that a node changes when it begins is shared.
unsafe fn copy_of(state: *const PruneState) -> *mut PruneState {
    // SAFETY: a state of the server's.
    unsafe {
        let new = copy(state, size((*state).count, size_of::<PruneState>(), size_of::<*mut Hierarchy>()));
        (*new).others = pg_sys::bms_copy((*new).others);
        for at in 0..usize::try_from((*new).count).unwrap_or(0) {
            let place = (&raw mut (*new).hierarchies).cast::<*mut Hierarchy>().add(at);
            *place = copy(*place, size((**place).count, size_of::<Hierarchy>(), size_of::<Table>()));
            for at in 0..usize::try_from((**place).count).unwrap_or(0) {
                let table = (&raw mut (**place).tables).cast::<Table>().add(at);
                (*table).inputs = copy((*table).inputs, size((*table).partitions, 0, size_of::<c_int>()));
                (*table).present = pg_sys::bms_copy((*table).present);
            }
        }
        new
    }
}

/// Finds out which inputs of an Append are left by the values known when a statement starts. Gives the node
/// an expression context. Returns the state for `matching_inputs`, and the set of inputs.
///
/// # Safety
/// The node runs, and `partitions` is its statement's. An ERROR jumps past the caller, which guards.
pub unsafe fn begin_pruning(
    node: *mut PlanState,
    inputs: c_int,
    partitions: *mut PartitionPruneInfo,
) -> Option<(*mut PruneState, *mut Bitmapset)> {
    unsafe extern "C-unwind" {
        fn ExecInitPartitionExecPruning(
            node: *mut PlanState,
            inputs: c_int,
            place: c_int,
            entries: *mut Bitmapset,
            remaining: *mut *mut Bitmapset,
        ) -> *mut PruneState;
    }
    // SAFETY: the caller's promise. The server's state is back in its place before anything else runs.
    unsafe {
        let estate = (*node).state;
        let (all, states) = ((*estate).es_part_prune_infos, (*estate).es_part_prune_states);
        let elements = (*all).elements;
        let place = (0..(*all).length)
            .find(|&place| (*elements.add(place as usize)).ptr_value == partitions.cast())?;
        let kept = &raw mut (*(*states).elements.add(place as usize)).ptr_value;
        let server = *kept;
        let mut remaining = std::ptr::null_mut();
        *kept = copy_of(server.cast()).cast();
        let state =
            ExecInitPartitionExecPruning(node, inputs, place, (*partitions).relids, &raw mut remaining);
        *kept = server;
        Some((state, remaining))
    }
}

/// Which of those inputs are left by the present parameters. Inputs that were left out before are not
/// counted.
///
/// # Safety
/// A state of `begin_pruning`, whose node runs. An ERROR jumps past the caller, which guards.
pub unsafe fn matching_inputs(state: *mut PruneState) -> *mut Bitmapset {
    unsafe extern "C-unwind" {
        fn ExecFindMatchingSubPlans(
            state: *mut PruneState,
            initial: bool,
            entries: *mut *mut Bitmapset,
        ) -> *mut Bitmapset;
    }
    // SAFETY: the caller's promise.
    unsafe { ExecFindMatchingSubPlans(state, false, std::ptr::null_mut()) }
}
