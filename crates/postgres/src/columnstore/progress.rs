//! How far a copy is, in `pg_stat_progress_create_index`.
//!
//! CREATE INDEX and REINDEX have their row there already. Any other refresh makes one, without a command.

use std::cell::Cell;

use pgrx::pg_sys::{self, ProgressCommandType};

use super::layout::REGION_BLOCKS;
use crate::host::relation::Open;

thread_local! {
    /// Whether the row is ours.
    static OURS: Cell<bool> = const { Cell::new(false) };
}

/// So many regions were seen to, of how many. Blocks are shown.
pub fn regions(index: Open, heap: Open, done: u32, all: u32) {
    let blocks = |regions: u32| i64::from(regions) * i64::from(REGION_BLOCKS);
    // SAFETY: numbers of this process's own row.
    unsafe {
        if !pg_sys::MyBEEntry.is_null()
            && (*pg_sys::MyBEEntry).st_progress_command == ProgressCommandType::PROGRESS_COMMAND_INVALID
        {
            pg_sys::pgstat_progress_start_command(
                ProgressCommandType::PROGRESS_COMMAND_CREATE_INDEX,
                heap.oid(),
            );
            pg_sys::pgstat_progress_update_param(
                pg_sys::PROGRESS_CREATEIDX_INDEX_OID.to_u32() as i32,
                i64::from(index.oid().to_u32()),
            );
            OURS.set(true);
        }
        pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_SCAN_BLOCKS_TOTAL as i32, blocks(all));
        pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_SCAN_BLOCKS_DONE as i32, blocks(done));
    }
}

/// The refresh has ended. After an ERROR the server takes the row away itself.
pub fn end() {
    if OURS.take() {
        // SAFETY: this process's own row.
        unsafe { pg_sys::pgstat_progress_end_command() };
    }
}
