//! What `pg_stat_progress_cluster` and `pg_stat_progress_create_index` show of work on our tables.
//!
//! Blocks count as done when their rows are read: those of hot spans and of stripes alike, so that the sum
//! comes to the total. Invariant: nothing here raises an ERROR, or is told where the server has not begun a
//! command.

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
    /// The command begins: a table of so many blocks.
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

    /// So many blocks more were read.
    pub fn add_blocks(&mut self, blocks: u32) {
        self.blocks += u64::from(blocks);
        tell(pg_sys::PROGRESS_CLUSTER_HEAP_BLKS_SCANNED, self.blocks);
    }

    /// A row more was read.
    pub fn add_read(&mut self) {
        self.read += 1;
        if self.read.is_multiple_of(ROWS) {
            tell(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED, self.read);
        }
    }

    /// A row more was written.
    pub fn add_written(&mut self) {
        self.written += 1;
        if self.written.is_multiple_of(ROWS) {
            tell(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN, self.written);
        }
    }

    /// All rows are in the new file; the server tells of what follows.
    pub fn all_written(&self) {
        tell(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED, self.read);
        tell(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN, self.written);
    }

    /// The command has ended. After an ERROR the server ends it.
    pub unsafe fn end() {
        // SAFETY: an entry of this process's own.
        unsafe { pg_sys::pgstat_progress_end_command() }
    }
}

/// How many blocks a build of an index has to read, and has read.
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
