//! Keeps Rust's backtraces out of messages to users and the log.
//!
//! Every ERROR is a panic on its way through Rust's frames. pgrx takes a backtrace for each panic, and adds
//! it to the DETAIL of errors that come from the server. It takes none if Rust's standard library finds
//! backtraces switched off. The library decides this when it is first asked, by the environment, for the
//! whole process. So this file asks it while the environment says no. Afterwards the environment is put back,
//! because the server's children and other libraries read it.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::ffi::OsString;

/// The variable that the standard library looks at first, before `RUST_BACKTRACE`.
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
        // If some standard library asks anew each time, it has to find the variable in the environment.
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
