//! Removes from the catalogs what they say of rows whose stripe is gone.
//!
//! Called by movers. Proxies, tombstones and delete bitmaps of a replaced stripe are of use as long as a
//! snapshot may see it. Once its row has left the directory, nobody comes by its row numbers any more, except
//! from index entries, and these are not believed. VACUUM cannot do this, because every snapshot leaves out
//! what VACUUM's transaction deletes.
//!
//! Invariants: only row numbers that were handed out, and that no version of any row of the directory has,
//! are removed (protocol point 1). Nobody is waited for.

use pgrx::pg_sys::{self, ItemPointerData};

use super::multixact;
use crate::host::relation::Open;
use crate::storage::catalog::side_table::{Compare, Cursor, SideTable};
use crate::storage::directory;
use crate::storage::file::metapage;

/// The most rows of the catalogs that one transaction removes.
const MOST: usize = 100_000;

/// Removes what the catalogs say of rows of `rel` that are gone. The caller is the table's only mover.
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
                table.delete(storage_id, rows_in(table, storage_id, numbers.gone()));
            }
        }
    }
}

/// The rows of a catalog that concern these row numbers.
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

/// Whether a running transaction has locked the proxy of a row that is gone. It could, because its snapshot
/// is older. Removing the proxy would have to wait for it.
unsafe fn is_locked(cursor: &Cursor) -> bool {
    // SAFETY: look-ups about ids of the tuple, whose page is locked while they are read.
    unsafe {
        let holders = cursor.judge(|tuple, _| multixact::holders((*tuple).t_data));
        holders.iter().any(|holder| pg_sys::TransactionIdIsInProgress(holder.xid))
    }
}

/// How many rows the catalogs have about row numbers from `from` on. `verify` asks: these numbers were not
/// handed out yet, so there should be none.
pub fn beyond(storage_id: u64, from: u64) -> usize {
    let tables = [SideTable::RowProxy, SideTable::DeleteBitmap];
    let all = || std::iter::once((from, u64::MAX));
    tables.into_iter().map(|table| rows_in(table, storage_id, all()).len()).sum()
}
