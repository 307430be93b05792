//! The server's timeouts.

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;

/// `statement_timeout`'s number among the server's timeouts.
const STATEMENT_TIMEOUT: std::ffi::c_int = 3;

/// Lets the statement take this many milliseconds from now on.
pub unsafe fn start_timeout(milliseconds: i32) {
    unsafe extern "C-unwind" {
        fn enable_timeout_after(id: std::ffi::c_int, milliseconds: std::ffi::c_int);
    }
    // SAFETY: a call into the server, guarded so that its ERROR unwinds.
    unsafe { pg_guard_ffi_boundary(|| enable_timeout_after(STATEMENT_TIMEOUT, milliseconds)) }
}

/// Undoes `start_timeout`.
pub unsafe fn stop_timeout() {
    unsafe extern "C-unwind" {
        fn disable_timeout(id: std::ffi::c_int, keep_indicator: bool);
    }
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| disable_timeout(STATEMENT_TIMEOUT, false)) }
}
