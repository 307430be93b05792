//! ERRORs of functions of the server's inside a vectorised node.
//!
//! Called by `server_expression`, `server_aggregate` and `host_function`. Such a function is called for a
//! batch of rows at a time. Some of these rows the server's executor might never reach: it may stop at an
//! earlier row with another ERROR, or the reader may want fewer rows. So as long as no row was handed out, an
//! ERROR about a value is a decline. The server then runs the query itself. It gives the rows, or raises its
//! own ERROR with the context that unwinding loses.

use std::cell::Cell;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, Datum};
use query::{Error, Result};

use crate::convert::ColumnWriter;
use crate::expressions::value_error;

/// Rows between two resets of the memory that results are built in.
pub const ROWS: usize = 256;
/// Results of this many rows: values, and whether they are NULL.
pub type Results = [(Datum, bool); ROWS];

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

/// Calls functions of the server's under guard; an ERROR unwinds, or becomes a decline where they may be
/// held back (`calls`).
///
/// # Safety
/// On the main thread, inside a running node; the work owns nothing, because an ERROR jumps out of it.
pub unsafe fn attempt<T>(may_hold_back: bool, work: impl FnOnce() -> T) -> Result<T> {
    if !may_hold_back || !MAY_HAND_OVER.get() {
        // SAFETY: the main thread; the work owns nothing.
        return Ok(unsafe { pg_guard_ffi_boundary(work) });
    }
    // SAFETY: the main thread; the work owns nothing, and may be held back.
    let done = unsafe { value_error::attempt(work) };
    done.map_err(|_| Error::Decline("a function of the server's raised an error"))
}

/// Makes a batch of attempts, after which what a failed one holds of the server's is let go.
///
/// # Safety
/// As `attempt`. What keeps something from one batch to the next is made before.
pub unsafe fn batch<T>(may_hold_back: bool, work: impl FnOnce() -> Result<T>) -> Result<T> {
    match may_hold_back && MAY_HAND_OVER.get() {
        // SAFETY: inside a running node; the work keeps nothing.
        true => unsafe { value_error::released(work) },
        false => work(),
    }
}

/// Computes the values of `rows` rows, some at a time, in a memory that is reset after them. `run` gets the
/// first row, their number, and where their results go.
///
/// # Safety
/// As `batch`; `run` owns nothing.
pub unsafe fn values(
    may_hold_back: bool,
    rows: usize,
    memory: pg_sys::MemoryContext,
    writer: &mut ColumnWriter,
    mut run: impl FnMut(usize, usize, &mut Results),
) -> Result<()> {
    let mut out = [(Datum::null(), true); ROWS];
    let all = || {
        for start in (0..rows).step_by(ROWS) {
            pgrx::check_for_interrupts!();
            let count = ROWS.min(rows - start);
            // SAFETY: the caller's work owns nothing; what was written to the memory has been copied when it
            // is reset.
            unsafe {
                let previous = pg_sys::MemoryContextSwitchTo(memory);
                let done = attempt(may_hold_back, || run(start, count, &mut out));
                for &(value, is_null) in out.iter().take(if done.is_ok() { count } else { 0 }) {
                    writer.push_value(value, is_null);
                }
                pg_sys::MemoryContextSwitchTo(previous);
                pg_sys::MemoryContextReset(memory);
                done?;
            }
        }
        Ok(())
    };
    // SAFETY: inside a running node; the caller's work keeps nothing.
    unsafe { batch(may_hold_back, all) }
}
