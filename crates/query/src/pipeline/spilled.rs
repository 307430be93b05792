//! Counts what each thread writes to temporary files, for EXPLAIN ANALYZE.
//!
//! `row_container` calls `count_spilled` wherever it makes or writes a file. `execution`'s profile calls
//! `measure_spilled` around each call of an operator. Invariant: a call inside a measured call keeps its
//! counts to itself, so what is measured belongs to the innermost operator.

use std::cell::Cell;

/// Temporary files, and bytes that were written to them.
pub type Spilled = (u64, u64);

thread_local! {
    /// What the innermost measured call of this thread has written so far.
    static SPILLED: Cell<Spilled> = const { Cell::new((0, 0)) };
}

/// Counts temporary files that were made, and bytes that were written to one.
pub fn count_spilled(files: u64, bytes: u64) {
    let (all, written) = SPILLED.get();
    SPILLED.set((all + files, written + bytes));
}

/// Runs `work` and also gives what it has written. What measured calls inside it have written is not
/// included.
pub fn measure_spilled<T>(work: impl FnOnce() -> T) -> (T, Spilled) {
    let outside = SPILLED.replace((0, 0));
    let done = work();
    (done, SPILLED.replace(outside))
}
