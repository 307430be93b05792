//! Row identity: hot TIDs are heap's, cold TIDs are made from row numbers.
//!
//! A cold row's TID is (2^31 + row / 256, row % 256 + 1). A block has 256 rows, because bitmap scans allow at
//! most 291 offsets a block. Invariant: a heap page is never numbered 2^31 or above (`storage::file::pages`
//! refuses).

use pgrx::pg_sys::{BlockIdData, ItemPointerData};

/// First block number that stands for cold rows.
pub const COLD_BASE: u32 = 1 << 31;
/// Rows with one virtual block number.
pub const ROWS_PER_BLOCK: u64 = 256;

/// Block number of a TID.
pub fn block_of(tid: ItemPointerData) -> u32 {
    (u32::from(tid.ip_blkid.bi_hi) << 16) | u32::from(tid.ip_blkid.bi_lo)
}

/// Whether two TIDs are the same place.
pub fn same(one: ItemPointerData, other: ItemPointerData) -> bool {
    (block_of(one), one.ip_posid) == (block_of(other), other.ip_posid)
}

/// A TID from block and offset.
pub fn tid(block: u32, offset: u16) -> ItemPointerData {
    ItemPointerData {
        ip_blkid: BlockIdData { bi_hi: (block >> 16) as u16, bi_lo: (block & 0xffff) as u16 },
        ip_posid: offset,
    }
}

/// The TID of a cold row. `row` is below the limit that `file::metapage` enforces.
pub fn cold_tid(row: u64) -> ItemPointerData {
    let block = COLD_BASE + (row / ROWS_PER_BLOCK) as u32;
    tid(block, (row % ROWS_PER_BLOCK) as u16 + 1)
}

/// Whether a TID stands for a cold row.
pub fn is_cold(tid: ItemPointerData) -> bool {
    tid.ip_blkid.bi_hi & 0x8000 != 0 && block_of(tid) != u32::MAX
}

/// Row number of a cold TID; None for hot TIDs and for offsets that no row number has.
pub fn row_of(tid: ItemPointerData) -> Option<u64> {
    if !is_cold(tid) || tid.ip_posid == 0 || u64::from(tid.ip_posid) > ROWS_PER_BLOCK {
        return None;
    }
    Some(u64::from(block_of(tid) - COLD_BASE) * ROWS_PER_BLOCK + u64::from(tid.ip_posid) - 1)
}
