//! Critical sections: between changing a page and having its WAL record, an ERROR must become a PANIC.
//!
//! Called by `storage` where it changes pages. Invariant: inside, nothing allocates and nothing is called
//! that may raise an ERROR.

use pgrx::pg_sys;

/// Enters a critical section.
pub unsafe fn start() {
    // SAFETY: a per-process counter of the server, touched on the main thread only.
    unsafe { pg_sys::CritSectionCount += 1 }
}

/// Whether the process is in one, be it ours or the server's.
pub fn is_inside() -> bool {
    // SAFETY: as `start`.
    unsafe { pg_sys::CritSectionCount > 0 }
}

/// Leaves the critical section.
pub unsafe fn end() {
    // SAFETY: paired with `start`.
    unsafe { pg_sys::CritSectionCount -= 1 }
}
