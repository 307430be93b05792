//! Critical sections: between changing a page and having its WAL record, an ERROR must become a PANIC.
//!
//! Callers: `storage` when it formats pages. Invariant: no allocation and no call that may raise an ERROR
//! inside.

use pgrx::pg_sys;

/// Enters a critical section.
pub unsafe fn start() {
    // SAFETY: a per-process counter of the server, touched on the main thread only.
    unsafe { pg_sys::CritSectionCount += 1 }
}

/// Leaves it.
pub unsafe fn end() {
    // SAFETY: paired with `start`.
    unsafe { pg_sys::CritSectionCount -= 1 }
}
