//! No backtraces of Rust's in what users and the log are told.
//!
//! pgrx takes a backtrace for each panic, which is what every ERROR becomes on its way through Rust's frames,
//! and adds it to the DETAIL of errors that come from the server. It takes none where Rust's standard library
//! finds backtraces switched off, which it decides by the environment when it is first asked, and once for
//! the whole process. So it is asked while the environment says no; the environment of the server, which its
//! children and other libraries read, stays what it was.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::ffi::OsString;

/// The variable that is looked at first, before `RUST_BACKTRACE`.
const VARIABLE: &str = "RUST_LIB_BACKTRACE";

/// Switches backtraces of errors off in this process and those that it forks.
///
/// # Safety
/// The process has one thread, as the postmaster has when it preloads libraries: nobody else reads the
/// environment meanwhile.
pub unsafe fn switch_off() {
    let before = std::env::var_os(VARIABLE);
    // SAFETY: the caller's promise.
    unsafe {
        std::env::set_var(VARIABLE, "0");
        is_off();
        restore(before);
        // A standard library that asks anew each time, should there be one, has to find it in the
        // environment.
        if !is_off() {
            std::env::set_var(VARIABLE, "0");
        }
    }
}

fn is_off() -> bool {
    Backtrace::capture().status() != BacktraceStatus::Captured
}

unsafe fn restore(before: Option<OsString>) {
    // SAFETY: as `switch_off`.
    unsafe {
        match before {
            Some(value) => std::env::set_var(VARIABLE, value),
            None => std::env::remove_var(VARIABLE),
        }
    }
}
