//! What `pg_stat_progress_cluster` and `pg_stat_progress_create_index` show of work on our tables.
//!
//! A block counts as done when its rows are read, in hot spans and in stripes alike, so that the sum reaches
//! the total.
//!
//! Invariant: nothing here raises an ERROR, and nothing is reported if the server has not begun a command.

use pgrx::pg_sys::{self, Oid};

/// Rows between two reports.
const ROWS: u64 = 256;

/// A rewrite, shown as CLUSTER.
#[derive(Default)]
pub struct Rewriting {
    blocks: u64,
    read: u64,
    written: u64,
}

impl Rewriting {
    /// Begins to report a rewrite of a table with this many blocks.
    pub unsafe fn begin(table: Oid, blocks: u32) -> Self {
        // SAFETY: an entry of this process's own.
        unsafe {
            let command = pg_sys::ProgressCommandType::PROGRESS_COMMAND_CLUSTER;
            pg_sys::pgstat_progress_start_command(command, table);
        }
        tell(pg_sys::PROGRESS_CLUSTER_COMMAND, pg_sys::PROGRESS_CLUSTER_COMMAND_CLUSTER.into());
        tell(pg_sys::PROGRESS_CLUSTER_PHASE, pg_sys::PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP.into());
        tell(pg_sys::PROGRESS_CLUSTER_TOTAL_HEAP_BLKS, blocks.into());
        Self::default()
    }

    /// Reports that this many more blocks were read.
    pub fn add_blocks(&mut self, blocks: u32) {
        self.blocks += u64::from(blocks);
        tell(pg_sys::PROGRESS_CLUSTER_HEAP_BLKS_SCANNED, self.blocks);
    }

    /// Counts a row that was read.
    pub fn add_read(&mut self) {
        self.read += 1;
        if self.read.is_multiple_of(ROWS) {
            tell(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED, self.read);
        }
    }

    /// Counts a row that was written.
    pub fn add_written(&mut self) {
        self.written += 1;
        if self.written.is_multiple_of(ROWS) {
            tell(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN, self.written);
        }
    }

    /// Reports that all rows are in the new file. The server reports what follows.
    pub fn all_written(&self) {
        tell(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED, self.read);
        tell(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN, self.written);
    }

    /// Ends the report. After an ERROR the server ends it.
    pub unsafe fn end() {
        // SAFETY: an entry of this process's own.
        unsafe { pg_sys::pgstat_progress_end_command() }
    }
}

/// Reports how many blocks a build of an index has to read, and how many it has read.
pub fn index_build(total: Option<u64>, done: u64) {
    if let Some(total) = total {
        tell(pg_sys::PROGRESS_SCAN_BLOCKS_TOTAL, total);
    }
    tell(pg_sys::PROGRESS_SCAN_BLOCKS_DONE, done);
}

fn tell(what: u32, value: u64) {
    // SAFETY: a number of the server's, in an entry of this process's own.
    unsafe { pg_sys::pgstat_progress_update_param(what as i32, i64::try_from(value).unwrap_or(i64::MAX)) }
}
