//! Rows that this backend has inserted but not written yet, for code that reads the table.
//!
//! Code that reads a table calls `flush` first (protocol point 5 of `docs/internals/concurrency.md`). Inside
//! a unique check, with an index page locked, nothing can be flushed. There a row number that this
//! transaction has reserved counts as a row.

use pgrx::pg_sys;

use crate::host::relation::Open;
use crate::storage::pending_rows;

/// Writes the rows that this backend holds in memory for the relation, unless the caller holds a content
/// lock. True if there may have been some.
pub fn flush(rel: Open) -> bool {
    // SAFETY: any LWLock held raises the counter.
    unsafe {
        let possible = pending_rows::any() && pg_sys::InterruptHoldoffCount == 0;
        if possible {
            pending_rows::flush_relation(rel);
        }
        possible
    }
}
