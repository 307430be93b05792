//! `engine.row_move`: where the rows are that a packing transaction has moved (protocol point 4).
//!
//! A mover deletes the hot tuple, or ends the stripe's row in the directory, and writes the same row to
//! another stripe. A transaction whose snapshot does not see the mover is told at the old place "deleted, by
//! this transaction". With just that transaction's id it asks here for the new place.
//!
//! An entry holds the moves of some hundred rows, sorted by old place. So a look-up is one probe of the
//! index, and an id that is no mover's also costs one probe. Written by `table_am::packing`, asked by
//! `table_am::read::moved`.
//!
//! Invariants: an entry is there before the first tuple that it concerns is deleted, in the same transaction.
//! It is removed only when every snapshot sees its mover, because then nobody can come to the old places any
//! more.

use std::ops::Range;

use pgrx::pg_sys::{self, CommandId, Datum, ItemPointerData, TransactionId};

use crate::convert::varlena;
use crate::host::relation::Open;
use crate::storage::catalog::indexes::Indexes;
use crate::storage::catalog::side_table::{Compare, ROW_MOVE_COLUMNS, SideTable};
use crate::storage::file::tid;

/// The most moves of an entry. They fit a page of the catalog.
const MOVES: usize = 600;
/// Bytes of half a move: an old place, or a row number.
const HALF: usize = 6;

/// A row's old TID and its new row number.
pub type Move = (ItemPointerData, u64);

/// A TID as a number. Numbers are in the order of their TIDs.
fn number_of(at: ItemPointerData) -> u64 {
    (u64::from(tid::block_of(at)) << 16) | u64::from(at.ip_posid)
}

/// The TID of a number.
fn place_of(number: u64) -> ItemPointerData {
    tid::tid((number >> 16) as u32, number as u16)
}

/// The 64-bit id of a transaction that is running or has ended not long ago.
fn full_id(xid: TransactionId) -> u64 {
    // SAFETY: reads the server's counter.
    let next = unsafe { pg_sys::ReadNextFullTransactionId().value };
    let low = u64::from(xid.into_inner());
    let id = (next & !u64::from(u32::MAX)) | low;
    if id > next { id.wrapping_sub(1 << 32) } else { id }
}

/// Notes as command `cid` of this transaction where rows of `storage_id` are going to be.
pub unsafe fn record(storage_id: u64, mut moves: Vec<Move>, cid: CommandId) {
    // SAFETY: heap_form_tuple copies the values; relations are closed here, or by the server's abort.
    unsafe {
        let mover = full_id(pg_sys::GetCurrentTransactionId());
        moves.sort_unstable_by_key(|(old, _)| number_of(*old));
        let table = SideTable::RowMove.open(pg_sys::RowExclusiveLock);
        let indexes = Indexes::open(SideTable::RowMove, Open::of(table));
        for part in moves.chunks(MOVES) {
            let Some((first, _)) = part.first() else { continue };
            let halves = part.iter().flat_map(|&(old, new)| [number_of(old), new]);
            let mut bytes = Vec::with_capacity(part.len() * 2 * HALF);
            halves
                .for_each(|half| bytes.extend_from_slice(half.to_le_bytes().get(..HALF).unwrap_or_default()));
            let bytes = varlena::allocate(&bytes);
            let mut values = [storage_id, mover, number_of(*first)]
                .map(|number| Datum::from(number as i64))
                .into_iter()
                .chain([bytes])
                .collect::<Vec<_>>();
            let mut nulls = [false; ROW_MOVE_COLUMNS];
            let tuple = pg_sys::heap_form_tuple((*table).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
            indexes.insert(tuple, &values[..3], cid, 0);
            pg_sys::pfree(tuple.cast());
            pg_sys::pfree(bytes.cast_mut_ptr());
        }
        indexes.close();
        pg_sys::table_close(table, pg_sys::NoLock as i32);
    }
}

/// Where `mover` has put the row that was at `old`. None if it is no mover, or has not moved that row.
pub fn find(storage_id: u64, mover: TransactionId, old: ItemPointerData) -> Option<ItemPointerData> {
    // SAFETY: see `SideTable::walk`. The moves lie in the tuple, which the cursor pins.
    unsafe {
        if mover == pg_sys::InvalidTransactionId || SideTable::RowMove.oids_if_present().is_none() {
            return None;
        }
        let wanted = number_of(old);
        let mut found = None;
        let limits = [(Compare::Equal, full_id(mover)), (Compare::AtMost, wanted)];
        SideTable::RowMove.walk_keys(storage_id, &limits, true, |cursor| {
            found = new_place(cursor.bytes(ROW_MOVE_COLUMNS), wanted);
            false
        });
        found.map(tid::cold_tid)
    }
}

/// Calls `with` for each of these row numbers that `mover` has moved, with its old and its new number.
pub fn each_cold(storage_id: u64, mover: TransactionId, rows: Range<u64>, mut with: impl FnMut(u64, u64)) {
    // SAFETY: as `find`. Entries of one mover do not overlap: what begins before the last of the rows may
    // reach them.
    unsafe {
        if mover == pg_sys::InvalidTransactionId
            || rows.is_empty()
            || SideTable::RowMove.oids_if_present().is_none()
        {
            return;
        }
        let (first, last) = (number_of(tid::cold_tid(rows.start)), number_of(tid::cold_tid(rows.end - 1)));
        let limits = [(Compare::Equal, full_id(mover)), (Compare::AtMost, last)];
        SideTable::RowMove.walk_keys(storage_id, &limits, true, |cursor| {
            for (old, new) in moves_in(cursor.bytes(ROW_MOVE_COLUMNS)) {
                if (first..=last).contains(&old)
                    && let Some(row) = tid::row_of(place_of(old))
                {
                    with(row, new);
                }
            }
            cursor.number(3) > first
        });
    }
}

/// Whether the transaction is a mover: it has moved rows, which every snapshot of that time saw, to stripes
/// of `storage_id`.
pub fn is_mover(storage_id: u64, xid: TransactionId) -> bool {
    let mut found = false;
    if xid != pg_sys::InvalidTransactionId && SideTable::RowMove.oids_if_present().is_some() {
        let limits = [(Compare::Equal, full_id(xid))];
        SideTable::RowMove.walk_keys(storage_id, &limits, false, |_| {
            found = true;
            false
        });
    }
    found
}

/// The moves of an entry: old place and new row number.
fn moves_in(bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let (halves, _) = bytes.as_chunks::<HALF>();
    let (moves, _) = halves.as_chunks::<2>();
    moves.iter().map(|[old, new]| (number_in(old), number_in(new)))
}

fn number_in(half: &[u8; HALF]) -> u64 {
    half.iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

/// The new row number of the row that was at `wanted`, found in the sorted moves of an entry.
fn new_place(bytes: &[u8], wanted: u64) -> Option<u64> {
    let (halves, _) = bytes.as_chunks::<HALF>();
    let (moves, _) = halves.as_chunks::<2>();
    let at = moves.binary_search_by_key(&wanted, |[old, _]| number_in(old)).ok()?;
    moves.get(at).map(|[_, new]| number_in(new))
}

/// Removes the entries of movers that every snapshot sees. `oldest_xmin` is the oldest transaction that some
/// snapshot may not see. The caller is the table's only mover.
pub unsafe fn forget(storage_id: u64, oldest_xmin: TransactionId) {
    let mut found = Vec::new();
    // SAFETY: see `SideTable::walk`. Entries of the future, by a counter that has wrapped, there are none:
    // ids are 64 bits wide.
    unsafe {
        let limit = full_id(oldest_xmin);
        if SideTable::RowMove.oids_if_present().is_none() {
            return;
        }
        SideTable::RowMove.walk(storage_id, None, false, |cursor| {
            let older = cursor.number(2) < limit;
            if older && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                found.push(cursor.place());
            }
            older
        });
        SideTable::RowMove.delete(storage_id, found);
    }
}

#[cfg(test)]
mod tests {
    use super::{HALF, new_place};

    #[test]
    fn moves_are_found_by_their_old_place() {
        let moves = [(65_537u64, 7u64), (65_538, 1 << 39), (1 << 47, 0)];
        let bytes: Vec<u8> = moves
            .iter()
            .flat_map(|&(old, new)| [old, new])
            .flat_map(|n| n.to_le_bytes()[..HALF].to_vec())
            .collect();
        for (old, new) in moves {
            assert_eq!(new_place(&bytes, old), Some(new));
        }
        for missing in [0, 65_536, 65_539, (1 << 47) + 1] {
            assert_eq!(new_place(&bytes, missing), None);
        }
    }
}
