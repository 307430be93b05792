//! ERRORs of functions of the server's inside a vectorised node.
//!
//! Called by `server_expression`, `server_aggregate` and `host_function`. Such a function is asked for a batch at a time: for rows before one at which the server's executor stops with another
//! ERROR, and for more rows than a reader may want. So as long as no row was handed out, an ERROR about a value is a decline: the server runs the query itself, and gives its rows or raises
//! its ERROR, with the context that unwinding loses.

use std::cell::Cell;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use query::{Error, Result};

use crate::host::value_error;

thread_local! {
    /// Whether the node that runs, innermost, can still hand over to the server's executor.
    static MAY_HAND_OVER: Cell<bool> = const { Cell::new(false) };
}

/// Runs a node that can, or cannot, hand over to the server's executor.
pub fn running<T>(may_hand_over: bool, work: impl FnOnce() -> T) -> T {
    /// Puts back what was.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            MAY_HAND_OVER.set(self.0);
        }
    }
    let _before = Before(MAY_HAND_OVER.replace(may_hand_over));
    work()
}

/// Calls functions of the server's under guard; an ERROR unwinds, or becomes a decline where they are tame (`value_error::Calls`).
///
/// # Safety
/// On the main thread, inside a running node; the work owns nothing, because an ERROR jumps out of it.
pub unsafe fn attempt<T>(is_tame: bool, work: impl FnOnce() -> T) -> Result<T> {
    if !is_tame || !MAY_HAND_OVER.get() {
        // SAFETY: the caller's promise.
        return Ok(unsafe { pg_guard_ffi_boundary(work) });
    }
    // SAFETY: the caller's promise.
    let done = unsafe { value_error::attempt(work) };
    done.map_err(|_| Error::Decline("a function of the server's raised an error"))
}

/// Makes a batch of attempts, after which what a failed one holds of the server's is let go.
///
/// # Safety
/// As `attempt`. What keeps something from one batch to the next is made before.
pub unsafe fn batch<T>(is_tame: bool, work: impl FnOnce() -> Result<T>) -> Result<T> {
    match is_tame && MAY_HAND_OVER.get() {
        // SAFETY: the caller's promise.
        true => unsafe { value_error::released(work) },
        false => work(),
    }
}
