//! `engine.delete_bitmap`: the rows of stripes that commands have deleted or updated in bulk (protocol point
//! 3).
//!
//! A row of the catalog says that the transaction in its xmin, as command cmin, has killed the rows whose
//! bits are set, and what has taken their places. Such a row is only ever inserted. So savepoints, two-phase
//! commit, command ids and visibility are the server's. A cold row is dead for a snapshot if the snapshot
//! sees a row of this catalog with its bit.
//! - `claim`: collects what a command deletes, while it excludes others from the stripe, and writes it
//! - `bury`: writes deaths for movers
//! - `lookup`: answers readers (through `row_proxy::visibility`) and other writers
//!
//! Invariants:
//! - Rows are written only while their writer excludes all others from the stripe.
//! - No row spans more than `SPAN` numbers.
//! - A row fits its page, so that reading one never leaves the page.
//! - A row that was rolled back counts for nothing.

mod bury;
mod claim;
mod lookup;

pub use bury::bury;
pub use claim::{Probe, any, claim, due, mark, marked_by, probe, register, write_all, yield_to_waiters};
pub use lookup::{
    Change, Mask, buried, dead_to_all, dying, is_dead, last_change, latest, masks, spans, touches,
};

use stripe::row_bits::{self, bit, rows_in, set_bit};

use pgrx::pg_sys::{self, Datum, HeapTuple, ItemPointerData};

use crate::convert::varlena;
use crate::host::relation::Open;
use crate::storage::catalog::side_table::{Cursor, DELETE_BITMAP_COLUMNS};
use crate::storage::file::tid;

/// The most row numbers that one row of the catalog covers.
pub const SPAN: u64 = 16_384;
/// Bytes of bits and successors in one row at most: it has to fit a page.
const MOST_BYTES: usize = 7_800;
/// Bytes of one successor.
const TID_BYTES: usize = size_of::<ItemPointerData>();

/// What a row of the catalog says, borrowed from its page.
#[derive(Clone, Copy)]
struct Entry<'a> {
    first_row: u64,
    bits: &'a [u8],
    /// One TID for each bit that is set. Empty if all these rows were deleted.
    successors: &'a [u8],
}

impl Entry<'_> {
    /// What the cursor's present row says. Valid until the cursor's next step.
    unsafe fn at<'a>(cursor: &'a Cursor) -> Entry<'a> {
        // SAFETY: the cursor pins the tuple, whose byte columns are never compressed or stored elsewhere.
        unsafe { Entry { first_row: cursor.number(2), bits: cursor.bytes(3), successors: cursor.bytes(4) } }
    }

    /// One past the last number that the row covers.
    fn end_row(&self) -> u64 {
        row_bits::end_row(self.first_row, self.bits)
    }

    fn has(&self, row: u64) -> bool {
        row.checked_sub(self.first_row).is_some_and(|at| bit(self.bits, at))
    }

    /// The TID that has taken the place of a row whose bit is set. It is the row's own TID if there is no
    /// successor.
    fn successor(&self, row: u64) -> ItemPointerData {
        let own = tid::cold_tid(row);
        let at = row.saturating_sub(self.first_row);
        let from = row_bits::set_before(self.bits, at) * TID_BYTES;
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

/// A row of the catalog, palloc'd.
fn form(table: Open, storage_id: u64, entry: &Entry) -> HeapTuple {
    // SAFETY: heap_form_tuple copies the values.
    unsafe {
        let bits = varlena::allocate(entry.bits);
        let successors = varlena::allocate(entry.successors);
        let mut values =
            [Datum::from(storage_id as i64), Datum::from(entry.first_row as i64), bits, successors];
        let mut nulls = [false; DELETE_BITMAP_COLUMNS];
        let tuple = pg_sys::heap_form_tuple(table.descriptor(), values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::pfree(bits.cast_mut_ptr());
        pg_sys::pfree(successors.cast_mut_ptr());
        tuple
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, tid_bytes};
    use crate::storage::file::tid;

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
