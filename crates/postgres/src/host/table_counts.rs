//! What the server's statistics count of a table (`pg_stat_user_tables`), where it is not what heap's code
//! counts.
//!
//! Callers: movers, whose rows are neither new nor gone. The figures wait in this backend until a transaction
//! has ended. (What VACUUM tells is `compat::set_row_counts`.) Invariant: nothing is counted where the server
//! does not count for the table.

use pgrx::pg_sys;

use super::relation::Open;

/// The backend's pending counts of a table; null where they are not kept.
fn pending(rel: Open) -> *mut pg_sys::PgStat_TableStatus {
    // SAFETY: the pointer is null or to what this backend counts of an open relation.
    unsafe {
        if (*rel.as_ptr()).pgstat_info.is_null() && (*rel.as_ptr()).pgstat_enabled {
            pg_sys::pgstat_assoc_relation(rel.as_ptr());
        }
        (*rel.as_ptr()).pgstat_info
    }
}

/// So many rows that were counted as inserted are not new.
pub fn take_back_insertions(rel: Open, rows: u32) {
    // SAFETY: what is counted belongs to an open relation.
    unsafe { pg_sys::pgstat_count_heap_insert(rel.as_ptr(), -i64::from(rows)) }
}

/// So many rows that this subtransaction was counted to have deleted are not gone.
pub fn take_back_deletions(rel: Open, rows: usize) {
    // SAFETY: the subtransaction's counts are there since it has counted something.
    unsafe {
        let info = pending(rel);
        if !info.is_null() && !(*info).trans.is_null() {
            (*(*info).trans).tuples_deleted -= i64::try_from(rows).unwrap_or(0);
        }
    }
}

/// So many copies of rows are left for VACUUM. Whatever becomes of the transaction: so this comes last in it.
pub fn add_dead(rel: Open, rows: usize) {
    // SAFETY: null, or what this backend counts of the relation.
    unsafe {
        let info = pending(rel);
        if !info.is_null() {
            (*info).t_counts.t_delta_dead_tuples += i64::try_from(rows).unwrap_or(0);
        }
    }
}
