//! Heap's own routine, and calling its callbacks.
//!
//! - `heap_guarded!` is for code that owns something: it turns a server ERROR into an unwinding panic.
//! - `heap_direct!` is a bare call, for the thin callbacks. Their frames own nothing, so an ERROR may jump
//!   past them.

use std::sync::OnceLock;

use pgrx::pg_sys::{self, TableAmRoutine};

/// Heap's own routine.
pub fn heap() -> &'static TableAmRoutine {
    static HEAP: OnceLock<&'static TableAmRoutine> = OnceLock::new();
    // SAFETY: the server returns the address of a constant.
    HEAP.get_or_init(|| unsafe { &*pg_sys::GetHeapamTableAmRoutine() })
}

/// Calls heap's callback so that its ERROR unwinds.
macro_rules! heap_guarded {
    ($name:ident ( $($argument:expr),* $(,)? )) => {
        match $crate::host::heap_am::heap().$name {
            Some(call) => pgrx::pg_sys::ffi::pg_guard_ffi_boundary(|| call($($argument),*)),
            None => $crate::host::error::internal(concat!("heap has no callback ", stringify!($name))),
        }
    };
}

/// Calls heap's callback from a frame without destructors.
macro_rules! heap_direct {
    ($name:ident ( $($argument:expr),* $(,)? )) => {
        match $crate::host::heap_am::heap().$name {
            Some(call) => call($($argument),*),
            None => std::hint::unreachable_unchecked(),
        }
    };
}

pub(crate) use {heap_direct, heap_guarded};
