//! All that differs between the server's major versions. No other file names a version.
//!
//! Everything here has the same name and shape for each version, so the folders above know of none. It speaks
//! in the server's own types, and is the lowest floor: `host` makes safe wrappers of it.
//!
//! A file `pgN` holds what is so in version N alone. What is alike in several versions stands once: `since_N`
//! is for N and later ones, `before_N` for earlier ones. Where a callback of an access method has another
//! shape, the access method says here by a trait what is alike.

use pgrx::pg_sys::{
    self, BlockNumber, PartitionPruneInfo, PlannedStmt, QueryDesc, Relation, TableAmRoutine, TableScanDesc,
    TupleTableSlot,
};

#[cfg(any(feature = "pg15", feature = "pg16"))]
mod before_17;
#[cfg(not(feature = "pg18"))]
mod before_18;
#[cfg(feature = "pg15")]
mod pg15;
#[cfg(feature = "pg16")]
mod pg16;
#[cfg(feature = "pg17")]
mod pg17;
#[cfg(feature = "pg18")]
mod pg18;
#[cfg(not(feature = "pg15"))]
mod since_16;
#[cfg(any(feature = "pg17", feature = "pg18"))]
mod since_17;

#[cfg(any(feature = "pg15", feature = "pg16"))]
pub use before_17::*;
#[cfg(not(feature = "pg18"))]
pub use before_18::*;
#[cfg(feature = "pg15")]
pub use pg15::*;
#[cfg(feature = "pg16")]
pub use pg16::*;
#[cfg(feature = "pg17")]
pub use pg17::*;
#[cfg(feature = "pg18")]
pub use pg18::*;
#[cfg(not(feature = "pg15"))]
pub use since_16::*;
#[cfg(any(feature = "pg17", feature = "pg18"))]
pub use since_17::*;

/// What an access method's ANALYZE says of the blocks of its files.
pub trait AnalyzedBlocks {
    /// Begins with a block. True if the access method gives its rows, not heap.
    ///
    /// # Safety
    /// The scan is the access method's.
    unsafe fn begin(scan: TableScanDesc, block: BlockNumber) -> bool;

    /// The scan of the rows in heap pages.
    ///
    /// # Safety
    /// As `begin`.
    unsafe fn heap(scan: TableScanDesc) -> TableScanDesc;
}

/// What a hook of ExecutorRun does around the run of a query. The hook owns nothing where it runs the query:
/// an ERROR jumps past it.
pub trait RunHook {
    /// Before the query runs. What is returned is for `end`.
    ///
    /// # Safety
    /// A query that was started.
    unsafe fn begin(query: *mut QueryDesc) -> usize;

    /// The hook behind this one.
    fn next() -> pg_sys::ExecutorRun_hook_type;

    /// After the query has run.
    fn end(begun: usize);
}

/// What an access method's bitmap scan gives of the blocks of a bitmap. Blocks of the file are heap's.
pub trait BitmapBlocks {
    /// Whether no block of the file has this number.
    fn is_cold(block: BlockNumber) -> bool;

    /// What the scan keeps for the callbacks here.
    ///
    /// # Safety
    /// The scan is the access method's.
    unsafe fn state<'a>(scan: TableScanDesc) -> &'a mut BitmapState;

    /// Heap's own routine.
    fn heap_routine() -> &'static TableAmRoutine;

    /// The scan of the rows in heap pages.
    ///
    /// # Safety
    /// As `state`.
    unsafe fn heap(scan: TableScanDesc) -> TableScanDesc;

    /// Begins with a cold block. `rows` are the rows that the bitmap names, numbered from 1. None: any row of
    /// the block, since the bitmap is lossy here. True if the scan sees one of them.
    ///
    /// # Safety
    /// As `state`.
    unsafe fn begin(scan: TableScanDesc, block: BlockNumber, rows: Option<&[u16]>) -> bool;

    /// The next row of the cold block. `recheck`: the node above looks at the condition again. Guards itself.
    ///
    /// # Safety
    /// As `state`.
    unsafe fn next(scan: TableScanDesc, recheck: bool, slot: *mut TupleTableSlot) -> bool;

    /// Whether a row in a heap page that heap gives is one of the scan's.
    ///
    /// # Safety
    /// As `state`.
    unsafe fn is_there(rel: Relation, scan: TableScanDesc, slot: *mut TupleTableSlot) -> bool;
}

/// What stands in an Append or MergeAppend for how values tell which of its inputs can have rows.
pub trait Partitioned {
    /// What that is. Null if values tell nothing.
    ///
    /// # Safety
    /// A valid plan and its statement.
    unsafe fn partitions(&self, statement: *mut PlannedStmt) -> *mut PartitionPruneInfo;
}
