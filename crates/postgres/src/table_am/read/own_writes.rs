//! The seam to rows that this backend has inserted but not written yet.
//!
//! Whoever reads a table in this backend calls `flush` first (protocol point 5). Inside a unique check, with
//! an index page locked, nothing can be flushed: there a row number that this transaction has reserved counts
//! as a row.

use pgrx::pg_sys;

use crate::host::relation::Open;
use crate::storage::pending_rows;

/// Writes out what this backend holds in memory for the relation, unless the caller holds a content lock.
/// True when there may have been something.
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
