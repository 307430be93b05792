//! Deaths that a mover notes in bulk.
//!
//! Called by `table_am::packing` for rows of a stripe that it has just written. It buries rows that died
//! after they were copied, and rows whose old stripe could not be excluded. Nobody else can see the new
//! stripe, so nobody has to be excluded from it.
//!
//! Invariant: the deaths are written as the same command as the stripe. So a snapshot that sees one sees the
//! other.

use pgrx::pg_sys::{self, CommandId, Datum};

use super::{Entry, SPAN, form, set_bit};
use crate::host::relation::Open;
use crate::storage::catalog::indexes::Indexes;
use crate::storage::catalog::side_table::SideTable;

/// Kills rows of one stripe as command `cid` of this transaction. The rows are given in order and have no
/// successors.
pub unsafe fn bury(storage_id: u64, rows: &[u64], cid: CommandId) {
    if rows.is_empty() {
        return;
    }
    // SAFETY: relations are closed here, or by the server's abort.
    unsafe {
        let table = SideTable::DeleteBitmap.open(pg_sys::RowExclusiveLock);
        let indexes = Indexes::open(SideTable::DeleteBitmap, Open::of(table));
        let mut rest = rows;
        while let Some(&first_row) = rest.first() {
            pgrx::check_for_interrupts!();
            let (part, later) = rest.split_at(rest.partition_point(|&row| row - first_row < SPAN));
            rest = later;
            let span = part.last().map_or(1, |last| last - first_row + 1);
            let mut bits = vec![0; (span as usize).div_ceil(8)];
            part.iter().for_each(|row| set_bit(&mut bits, row - first_row));
            let tuple = form(Open::of(table), storage_id, &Entry { first_row, bits: &bits, successors: &[] });
            let keys = [storage_id, first_row].map(|key| Datum::from(key as i64));
            indexes.insert(tuple, &keys, cid, 0);
            pg_sys::pfree(tuple.cast());
        }
        indexes.close();
        pg_sys::table_close(table, pg_sys::NoLock as i32);
    }
}
