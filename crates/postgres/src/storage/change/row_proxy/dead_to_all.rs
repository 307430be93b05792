//! Cold rows that no snapshot sees any more, though they are still in their stripes.
//!
//! Called by VACUUM, which takes their index entries away, as every snapshot that comes by one finds the row
//! dead. On a standby older snapshots may still be in use. So the newest transaction that killed one of the
//! rows has to be made known there first (protocol point 8).
//!
//! Invariant: only deaths that were committed before the oldest snapshot was taken count.

use pgrx::pg_sys::{self, TransactionId};

use super::Proxy;
use crate::storage::catalog::side_table::SideTable;
use crate::storage::change::delete_bitmap::{self, Mask};
use crate::storage::directory::age::Age;

/// Rows of one storage id that are dead to everybody.
#[derive(Default)]
pub struct DeadToAll {
    /// Rows that are dead by tombstones, ascending.
    rows: Vec<u64>,
    /// Rows that are dead by bitmaps, in the order of first row numbers.
    masks: Vec<Mask>,
    /// The newest transaction that killed one of them. Invalid if all are frozen.
    pub newest: TransactionId,
}

impl DeadToAll {
    /// Looks them up.
    pub fn of(storage_id: u64, oldest_xmin: TransactionId) -> Self {
        let mut newest = pg_sys::InvalidTransactionId;
        let mut rows = Vec::new();
        // SAFETY: see `SideTable::walk`; comparisons of ids.
        unsafe {
            let mut note = |by: TransactionId| {
                if by != pg_sys::InvalidTransactionId
                    && (newest == pg_sys::InvalidTransactionId || pg_sys::TransactionIdFollows(by, newest))
                {
                    newest = by;
                }
            };
            let masks = delete_bitmap::dead_to_all(storage_id, oldest_xmin, &mut note);
            if SideTable::RowProxy.oids_if_present().is_some() {
                SideTable::RowProxy.walk(storage_id, None, false, |cursor| {
                    let (proxy, by) = (Proxy::at(cursor), cursor.inserter());
                    if proxy.dead
                        && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData)
                        && Age::of(by, oldest_xmin) == Age::Everybody
                    {
                        note(by);
                        rows.push(proxy.row);
                    }
                    true
                });
            }
            Self { rows, masks, newest }
        }
    }

    /// Whether this row is dead to everybody.
    pub fn contains(&self, row: u64) -> bool {
        let after = self.masks.partition_point(|mask| !mask.is_after(row));
        let near = self.masks.iter().take(after).rev().take_while(|mask| !mask.is_far_before(row));
        self.rows.binary_search(&row).is_ok() || near.into_iter().any(|mask| mask.contains(row))
    }

    /// All these rows. A row may come twice.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter().copied().chain(self.masks.iter().flat_map(|mask| mask.among(0..u64::MAX)))
    }
}
