//! How far a copy is, in `pg_stat_progress_create_index`.
//!
//! CREATE INDEX and REINDEX have their row there already. A step of any other refresh makes one, without a
//! command. After an ERROR the server takes the row away.

use pgrx::pg_sys::{self, ProgressCommandType};

use super::layout::REGION_BLOCKS;
use crate::host::relation::Open;

/// Begins a row if this process has none. Returns whether it is ours.
pub fn begin(index: Open, heap: Open) -> bool {
    // SAFETY: this process's own row.
    unsafe {
        let has_one = pg_sys::MyBEEntry.is_null()
            || (*pg_sys::MyBEEntry).st_progress_command != ProgressCommandType::PROGRESS_COMMAND_INVALID;
        if has_one {
            return false;
        }
        let command = ProgressCommandType::PROGRESS_COMMAND_CREATE_INDEX;
        pg_sys::pgstat_progress_start_command(command, heap.oid());
        let index_oid = i64::from(index.oid().to_u32());
        pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_CREATEIDX_INDEX_OID.to_u32() as i32, index_oid);
        true
    }
}

/// So many regions were seen to, of how many. Blocks are shown.
pub fn regions(done: u32, all: u32) {
    let blocks = |regions: u32| i64::from(regions) * i64::from(REGION_BLOCKS);
    // SAFETY: numbers of this process's own row.
    unsafe {
        pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_SCAN_BLOCKS_TOTAL as i32, blocks(all));
        pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_SCAN_BLOCKS_DONE as i32, blocks(done));
    }
}

/// Takes away a row that `begin` has made.
pub fn end() {
    // SAFETY: this process's own row.
    unsafe { pg_sys::pgstat_progress_end_command() }
}
