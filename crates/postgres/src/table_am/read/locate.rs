//! The stripe of a cold row, as the caller's own snapshot has it.
//!
//! Asked by fetches through an index and by TID. A SnapshotDirty is told which transaction is loading the
//! row, so that the caller can wait for it.

use pgrx::pg_sys::{self, Snapshot, TupleTableSlot};

use super::{cold_rows, own_writes};
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::change::stripe_lock;
use crate::storage::directory::entries;
use crate::storage::directory::{self, StripeEntry};
use crate::storage::file::metapage;

/// Whether the caller may hold a lock on an index page. Then it is a unique check, which only wants to know
/// whether the row is there.
#[inline]
pub unsafe fn holds_page_lock() -> bool {
    // SAFETY: a plain counter of the server; holding any LWLock raises it.
    unsafe { pg_sys::InterruptHoldoffCount > 0 }
}

pub enum Located {
    /// The row is in this stripe, and the snapshot sees the stripe.
    Stored(StripeEntry),
    /// The row counts as visible, and the slot is filled already.
    Answered,
    Nowhere,
}

/// Whether the snapshot is one that unique checks use. They ask about the row as it is now. If this very
/// command is inserting the row, they ask whether it is still there.
#[inline]
pub unsafe fn judges_by_now(snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    let kind = unsafe { (*snapshot).snapshot_type };
    kind == pg_sys::SnapshotType::SNAPSHOT_DIRTY || kind == pg_sys::SnapshotType::SNAPSHOT_SELF
}

/// Finds the stripe of a cold row for a snapshot. The row may be dead.
///
/// # Safety
/// The snapshot is live.
pub unsafe fn locate(rel: Open, row: u64, snapshot: Snapshot, slot: *mut TupleTableSlot) -> Located {
    // SAFETY: the snapshot is live.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return Located::Nowhere };
        if let Some(entry) = stripe_lock::kept(rel, storage_id, row)
            && is_seen(&entry, snapshot)
        {
            entries::clear_dirty(snapshot);
            return Located::Stored(entry);
        }
        let mut found = directory::find(storage_id, row, snapshot);
        if found.as_ref().is_some_and(|entry| entry.reserved_only) && own_writes::flush(rel) {
            found = directory::find(storage_id, row, snapshot);
        }
        match found {
            Some(entry) if !entry.reserved_only => return Located::Stored(entry),
            Some(_) if judges_by_now(snapshot) => {
                // A transaction is loading this row, and the snapshot says which one, unless it is this one.
                // If the loader is done and no stripe has the number, the number was never used.
                let loader = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY
                    && (*snapshot).xmin != pg_sys::InvalidTransactionId;
                if loader || entries::is_ours(storage_id, row) {
                    cold_rows::store(rel, slot, row, pg_sys::InvalidTransactionId, |_, _| ());
                    return Located::Answered;
                }
                entries::clear_dirty(snapshot);
            }
            _ => {}
        }
        if predicate_locks::serializable_reads(rel, snapshot) {
            entries::report_missed(rel, storage_id, row, snapshot);
        }
        Located::Nowhere
    }
}

/// Whether a snapshot certainly sees a stripe that others have committed and that nobody can take away now.
unsafe fn is_seen(entry: &StripeEntry, snapshot: Snapshot) -> bool {
    use pg_sys::SnapshotType as T;
    // SAFETY: the snapshot is live; the invalid id precedes every other.
    unsafe {
        match (*snapshot).snapshot_type {
            T::SNAPSHOT_ANY | T::SNAPSHOT_SELF | T::SNAPSHOT_DIRTY => true,
            T::SNAPSHOT_MVCC => pg_sys::TransactionIdPrecedes(entry.inserter, (*snapshot).xmin),
            _ => false,
        }
    }
}
