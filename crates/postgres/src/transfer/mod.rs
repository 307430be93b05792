//! `COPY ... TO` and `FROM` Parquet files, with the option names of pg_parquet.
//!
//! - `statement`: which COPY statements these are, and their options
//! - `to_file`: COPY TO: the rows of a query, gathered by column; `writer`: the thread that writes them
//! - `direct`: COPY FROM into tables that only take rows: values become rows; `insertion`: rows into a table
//! - `from_file`: any other COPY FROM: a thread reads the file, and the server's own COPY what the thread
//!   makes of it; `bounded`: the same for users without rights on the server's files
//! - `shred`: how values of a query's columns go into a file, arrays and composite values among them;
//!   `columns`: single values
//! - `schema`: `engine.parquet_schema`, which tells what is in a file

mod bounded;
mod columns;
mod direct;
mod from_file;
mod insertion;
mod schema;
mod shred;
mod statement;
mod to_file;
mod writer;

use pgrx::pg_sys::{self, PlannedStmt};

use crate::host::full_errors;
use crate::host::hooks::Chain;
use crate::host::utility_hook::{self, Call, UtilityHook};
use statement::ParquetCopy;

static NEXT: Chain<pg_sys::ProcessUtility_hook_type> = Chain::new();

/// Puts the hook in place, keeping those of others.
///
/// # Safety
/// Called once, from `_PG_init`.
pub unsafe fn install() {
    // SAFETY: the caller's promise.
    unsafe {
        NEXT.put_in_front(&raw mut pg_sys::ProcessUtility_hook, utility_hook::hook::<Hook>());
        from_file::register();
    }
}

struct Hook;

impl UtilityHook for Hook {
    /// The server's COPY reads a pipe of ours.
    type Kept = bool;

    unsafe fn before(call: Call) -> (*mut PlannedStmt, bool) {
        let Call { statement, completion, .. } = call;
        // SAFETY: the server's own statement.
        unsafe {
            let node = (*statement).utilityStmt;
            if (*node).type_ != pg_sys::NodeTag::T_CopyStmt {
                return (statement, false);
            }
            full_errors::guarded(|| {
                let Some(parquet) = ParquetCopy::of(node.cast()) else { return (statement, false) };
                let rows = match parquet.is_from {
                    true => direct::run(&parquet, node.cast()).or_else(|| {
                        let is_bounded = parquet.path.is_bounded();
                        is_bounded.then(|| bounded::run(call, &parquet))
                    }),
                    false => Some(to_file::run(call, &parquet)),
                };
                let Some(rows) = rows else { return (from_file::begin(statement, &parquet), true) };
                if !completion.is_null() {
                    pg_sys::SetQueryCompletion(completion, pg_sys::CommandTag::CMDTAG_COPY, rows);
                }
                (std::ptr::null_mut(), false)
            })
        }
    }

    fn next() -> pg_sys::ProcessUtility_hook_type {
        NEXT.next()
    }

    unsafe fn after(_call: Call, reads_pipe: bool) {
        if reads_pipe {
            // SAFETY: as `before`.
            unsafe { full_errors::guarded(from_file::end) }
        }
    }
}
