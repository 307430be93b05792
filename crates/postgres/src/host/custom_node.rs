//! A CustomScan node whose state lives on Rust's heap.
//!
//! Called by `scan` and `vectorised/node`, each with a type of state of its own. Invariant: the state is
//! dropped once, by `end` when the node ends, or by the query's memory context after an ERROR.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

/// A table of callbacks that the server keeps a pointer to.
pub struct Methods<T>(pub T);
// SAFETY: tables of function pointers, written once, read only afterwards.
unsafe impl<T> Send for Methods<T> {}
// SAFETY: the tables are only read once they are written.
unsafe impl<T> Sync for Methods<T> {}

/// The node's state. The server's own struct comes first.
#[repr(C)]
pub struct CustomNode<T> {
    /// The server's part.
    pub custom: pg_sys::CustomScanState,
    /// Our part, on Rust's heap. Null until the node begins.
    pub state: *mut T,
    cleanup: pg_sys::MemoryContextCallback,
}

impl<T> CustomNode<T> {
    /// A node that has not begun.
    ///
    /// # Safety
    /// `methods` stay where they are; called under guard in memory that lives as long as the query.
    pub unsafe fn create(methods: *const pg_sys::CustomExecMethods) -> *mut pg_sys::Node {
        // SAFETY: a zeroed node is what the server asks for.
        unsafe {
            let node = pg_sys::palloc0(size_of::<Self>()).cast::<Self>();
            (*node).custom.ss.ps.type_ = NodeTag::T_CustomScanState;
            (*node).custom.methods = methods;
            node.cast()
        }
    }

    /// Gives the node the state that `make` makes.
    ///
    /// # Safety
    /// A node of `create` that begins in this executor state; called once, under guard.
    pub unsafe fn begin(
        custom: *mut pg_sys::CustomScanState,
        estate: *mut pg_sys::EState,
        make: impl FnOnce() -> T,
    ) {
        // SAFETY: the caller's promise; the callback's struct lives in the node.
        unsafe {
            let node = custom.cast::<Self>();
            (*node).cleanup.func = Some(Self::drop_state);
            (*node).cleanup.arg = node.cast();
            pg_sys::MemoryContextRegisterResetCallback((*estate).es_query_cxt, &raw mut (*node).cleanup);
            (*node).state = Box::into_raw(Box::new(make()));
        }
    }

    /// Has `close` give back what the state holds of the server, and drops it. Nothing happens if the node
    /// has not begun.
    ///
    /// # Safety
    /// A node of `create` that ends; called under guard.
    pub unsafe fn end(custom: *mut pg_sys::CustomScanState, close: impl FnOnce(&mut T)) {
        // SAFETY: the caller's promise; the state is null or a live one.
        unsafe {
            (*custom.cast::<Self>()).state.as_mut().map(close);
            Self::drop_state(custom.cast());
        }
    }

    /// Drops the state, once.
    ///
    /// # Safety
    /// A node of `create`, which outlives this: it is called for the context that the node is in, or when the
    /// node ends.
    unsafe extern "C-unwind" fn drop_state(node: *mut c_void) {
        // SAFETY: the caller's promise.
        unsafe {
            let node = node.cast::<Self>();
            let state = std::mem::replace(&mut (*node).state, std::ptr::null_mut());
            if !state.is_null() {
                drop(Box::from_raw(state));
            }
        }
    }
}
