//! `engine.delete_bitmap`: the rows of stripes that commands have deleted or updated in bulk (protocol point
//! 3).
//!
//! A row of the catalog says that the transaction in its xmin, as command cmin, has killed the rows whose
//! bits are set, and what has taken their places. It is only ever inserted, so savepoints, two-phase commit,
//! command ids and visibility are the server's: a cold row is dead for a snapshot when the snapshot sees a
//! row of this catalog that has its bit. `claim` collects what a command deletes, under the stripe's
//! exclusive lock, and writes it; `bury` writes for movers; `lookup` answers readers (through
//! `row_proxy::visibility`) and other writers.
//!
//! Invariants: rows are written only while their writer has excluded all others from the stripe; no row spans
//! more than `SPAN` numbers; a row fits its page, so that reading one never leaves the page; one that was
//! rolled back is void, and nobody minds it.

mod bury;
mod claim;
mod lookup;

pub use bury::bury;
pub use claim::{Probe, any, claim, due, mark, marked_by, probe, register, write_all, yield_to_waiters};
pub use lookup::{Change, Mask, buried, dead_to_all, dying, is_dead, last_change, latest, masks, touches};

use std::ops::Range;

use pgrx::pg_sys::{self, Datum, HeapTuple, ItemPointerData};

use crate::host::relation::Open;
use crate::storage::catalog::side_table::{Cursor, DELETE_BITMAP_COLUMNS};
use crate::storage::file::tid;

/// Row numbers that one row of the catalog reaches over at most.
const SPAN: u64 = 16_384;
/// Bytes of bits and successors in one row at most: it has to fit a page.
const MOST_BYTES: usize = 7_800;
/// Bytes of one successor.
const TID_BYTES: usize = size_of::<ItemPointerData>();

/// What a row of the catalog says; borrowed from its page.
#[derive(Clone, Copy)]
struct Entry<'a> {
    first_row: u64,
    bits: &'a [u8],
    /// One TID for each bit that is set, or nothing where all were deleted.
    successors: &'a [u8],
}

impl Entry<'_> {
    /// What the row says that a cursor stands on: good until its next step.
    unsafe fn at<'a>(cursor: &'a Cursor) -> Entry<'a> {
        // SAFETY: the cursor pins the tuple, whose byte columns are never compressed or stored elsewhere.
        unsafe { Entry { first_row: cursor.number(2), bits: cursor.bytes(3), successors: cursor.bytes(4) } }
    }

    /// One past the last number it reaches over.
    fn end_row(&self) -> u64 {
        self.first_row.saturating_add(self.bits.len() as u64 * 8)
    }

    fn has(&self, row: u64) -> bool {
        row.checked_sub(self.first_row).is_some_and(|at| bit(self.bits, at))
    }

    /// What has taken the place of a row whose bit is set: its own TID where nothing has.
    fn successor(&self, row: u64) -> ItemPointerData {
        let own = tid::cold_tid(row);
        let at = row.saturating_sub(self.first_row);
        let whole = usize::try_from(at / 8).unwrap_or(usize::MAX);
        let before =
            self.bits.get(..whole).map_or(0, |bytes| bytes.iter().map(|byte| byte.count_ones()).sum());
        let within = self.bits.get(whole).map_or(0, |byte| (byte & ((1 << (at % 8)) - 1)).count_ones());
        let from = (before + within) as usize * TID_BYTES;
        match self.successors.get(from..from + TID_BYTES) {
            Some(&[a, b, c, d, e, f]) => ItemPointerData {
                ip_blkid: pg_sys::BlockIdData {
                    bi_hi: u16::from_le_bytes([a, b]),
                    bi_lo: u16::from_le_bytes([c, d]),
                },
                ip_posid: u16::from_le_bytes([e, f]),
            },
            _ => own,
        }
    }
}

fn tid_bytes(at: ItemPointerData) -> [u8; TID_BYTES] {
    let ([a, b], [c, d]) = (at.ip_blkid.bi_hi.to_le_bytes(), at.ip_blkid.bi_lo.to_le_bytes());
    let [e, f] = at.ip_posid.to_le_bytes();
    [a, b, c, d, e, f]
}

fn bit(bits: &[u8], at: u64) -> bool {
    usize::try_from(at / 8)
        .ok()
        .and_then(|byte| bits.get(byte))
        .is_some_and(|byte| byte & (1 << (at % 8)) != 0)
}

fn set_bit(bits: &mut [u8], at: u64) {
    if let Some(byte) = usize::try_from(at / 8).ok().and_then(|byte| bits.get_mut(byte)) {
        *byte |= 1 << (at % 8);
    }
}

/// The row numbers within `rows` whose bits are set, the first bit standing for `first_row`.
fn rows_in(first_row: u64, bits: &[u8], rows: Range<u64>) -> impl Iterator<Item = u64> + '_ {
    let end = first_row.saturating_add(bits.len() as u64 * 8);
    let rows = rows.start.max(first_row)..rows.end.min(end);
    let from = usize::try_from((rows.start.saturating_sub(first_row)) / 8).unwrap_or(usize::MAX);
    let to = usize::try_from(rows.end.saturating_sub(first_row).div_ceil(8)).unwrap_or(0);
    let bytes = bits.get(from..to.max(from)).unwrap_or_default();
    let base = first_row.saturating_add(from as u64 * 8);
    bytes.iter().zip(0u64..).filter(|(byte, _)| **byte != 0).flat_map(move |(&byte, at)| {
        let rows = rows.clone();
        let of_byte = (0..8u64).filter(move |bit| byte & (1 << bit) != 0).map(move |bit| base + at * 8 + bit);
        of_byte.filter(move |row| rows.contains(row))
    })
}

/// A row of the catalog, palloc'd.
fn form(table: Open, storage_id: u64, entry: &Entry) -> HeapTuple {
    // SAFETY: heap_form_tuple copies the values.
    unsafe {
        let bits = crate::storage::directory::bytea(entry.bits);
        let successors = crate::storage::directory::bytea(entry.successors);
        let mut values = [
            Datum::from(storage_id as i64),
            Datum::from(entry.first_row as i64),
            Datum::from(bits),
            Datum::from(successors),
        ];
        let mut nulls = [false; DELETE_BITMAP_COLUMNS];
        let tuple = pg_sys::heap_form_tuple(table.descriptor(), values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::pfree(bits);
        pg_sys::pfree(successors);
        tuple
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, bit, rows_in, set_bit, tid_bytes};
    use crate::storage::file::tid;

    #[test]
    fn bits_stand_for_rows() {
        let mut bits = vec![0u8; 4];
        for at in [0, 7, 8, 31] {
            set_bit(&mut bits, at);
        }
        assert!(bit(&bits, 7) && !bit(&bits, 9) && !bit(&bits, 32));
        let all: Vec<u64> = rows_in(100, &bits, 0..u64::MAX).collect();
        assert_eq!(all, [100, 107, 108, 131]);
        assert_eq!(rows_in(100, &bits, 101..131).collect::<Vec<_>>(), [107, 108]);
        assert_eq!(rows_in(100, &bits, 108..109).collect::<Vec<_>>(), [108]);
        assert_eq!(rows_in(100, &bits, 132..900).count(), 0);
        assert_eq!(rows_in(100, &bits, 0..100).count(), 0);
    }

    #[test]
    fn successors_follow_the_bits() {
        let bits = [0b1000_0001, 0b10];
        let places = [(1, 2), (70_000, 3), (9, 4)].map(|(block, offset)| tid_bytes(tid::tid(block, offset)));
        let entry = Entry { first_row: 16, bits: &bits, successors: places.as_flattened() };
        let at = |row| {
            let place = entry.successor(row);
            (tid::block_of(place), place.ip_posid)
        };
        assert!(entry.has(16) && entry.has(23) && entry.has(25) && !entry.has(24) && !entry.has(15));
        assert_eq!([at(16), at(23), at(25)], [(1, 2), (70_000, 3), (9, 4)]);
        let deleted = Entry { successors: &[], ..entry };
        assert!(tid::is_cold(deleted.successor(23)));
    }
}
