//! What is known of rows that are gone leaves the catalogs.
//!
//! Called by movers. Proxies, tombstones and delete bitmaps of a stripe that was replaced are of use as long
//! as a snapshot may see it: once its row has left the directory nobody comes by its numbers any more, but
//! for index entries, which are not believed. VACUUM cannot do this, as nobody's snapshot heeds what its
//! transaction deletes. Invariants: only numbers that have been handed out and that no version of any row of
//! the directory has (protocol point 1); nobody is waited for.

use pgrx::pg_sys::{self, ItemPointerData};

use super::multixact;
use crate::host::relation::Open;
use crate::storage::catalog::side_table::{Compare, Cursor, SideTable};
use crate::storage::directory;
use crate::storage::file::metapage;

/// Rows of the catalogs removed in one transaction, at most.
const MOST: usize = 100_000;

/// Removes what is known of rows of `rel` that are gone. The caller is the table's only mover.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock.
pub unsafe fn forget(rel: Open) {
    // SAFETY: the lock is promised.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return };
        let Some(numbers) = directory::numbers_in_use(rel) else { return };
        for table in [SideTable::RowProxy, SideTable::DeleteBitmap] {
            if table.oids_if_present().is_some() {
                table.delete(rows_in(table, storage_id, numbers.gone()));
            }
        }
    }
}

/// The rows of a catalog that speak of such numbers.
fn rows_in(
    table: SideTable,
    storage_id: u64,
    gone: impl Iterator<Item = (u64, u64)>,
) -> Vec<ItemPointerData> {
    let mut found = Vec::new();
    // SAFETY: see `SideTable::walk`. A row of `engine.delete_bitmap` begins with a number of its stripe.
    unsafe {
        for (start, end) in gone {
            pgrx::check_for_interrupts!();
            table.walk(storage_id, Some((Compare::AtLeast, start)), false, |cursor| {
                let is_in = cursor.number(2) < end;
                if is_in && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) && !is_locked(cursor) {
                    found.push(cursor.place());
                }
                is_in && found.len() < MOST
            });
        }
    }
    found
}

/// Whether a transaction that runs has locked the proxy of a row that is gone, as its snapshot is older than
/// that: it would have to be waited for.
unsafe fn is_locked(cursor: &Cursor) -> bool {
    // SAFETY: look-ups about ids of the tuple, whose page is locked while they are read.
    unsafe {
        let holders = cursor.judge(|tuple, _| multixact::holders((*tuple).t_data));
        holders.iter().any(|holder| pg_sys::TransactionIdIsInProgress(holder.xid))
    }
}

/// How many rows the catalogs know of from number `from` on, where none has been handed out.
pub fn beyond(storage_id: u64, from: u64) -> usize {
    let tables = [SideTable::RowProxy, SideTable::DeleteBitmap];
    let all = || std::iter::once((from, u64::MAX));
    tables.into_iter().map(|table| rows_in(table, storage_id, all()).len()).sum()
}
