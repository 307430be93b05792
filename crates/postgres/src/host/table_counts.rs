//! Corrects what the server's statistics count for a table (`pg_stat_user_tables`), where heap's code counts
//! something else.
//!
//! Called by movers, whose rows are neither new nor gone. The figures wait in this backend until a
//! transaction has ended. (VACUUM reports by `server_statistics::set_row_counts`.)
//!
//! Invariant: nothing is counted if the server does not count for the table.

use pgrx::pg_sys;

use super::relation::Open;
use crate::compat;

/// The backend's pending counts of a table. Null if they are not kept.
fn pending(rel: Open) -> *mut pg_sys::PgStat_TableStatus {
    // SAFETY: the pointer is null or to what this backend counts of an open relation.
    unsafe {
        if (*rel.as_ptr()).pgstat_info.is_null() && (*rel.as_ptr()).pgstat_enabled {
            pg_sys::pgstat_assoc_relation(rel.as_ptr());
        }
        (*rel.as_ptr()).pgstat_info
    }
}

/// Takes back the count of this many inserted rows, because they are not new.
pub fn take_back_insertions(rel: Open, rows: u32) {
    // SAFETY: what is counted belongs to an open relation.
    unsafe { pg_sys::pgstat_count_heap_insert(rel.as_ptr(), -i64::from(rows)) }
}

/// Takes back the count of this many rows that this subtransaction has deleted, because they are not gone.
pub fn take_back_deletions(rel: Open, rows: usize) {
    // SAFETY: the subtransaction's counts are there since it has counted something.
    unsafe {
        let info = pending(rel);
        if !info.is_null() && !(*info).trans.is_null() {
            (*(*info).trans).tuples_deleted -= i64::try_from(rows).unwrap_or(0);
        }
    }
}

/// Counts this many dead copies of rows, which are left for VACUUM. They count even if the transaction is
/// rolled back, so this must be its last step.
pub fn add_dead(rel: Open, rows: usize) {
    // SAFETY: null, or what this backend counts of the relation.
    unsafe {
        let info = pending(rel);
        if !info.is_null() {
            compat::count_dead(&mut *info, i64::try_from(rows).unwrap_or(0));
        }
    }
}
