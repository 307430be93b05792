//! Cutting empty pages off the end of the file.
//!
//! Called by VACUUM, after heap's own, and by movers. (Heap's VACUUM must never truncate the file: stripe
//! pages look empty to it.)
//!
//! As heap does, it takes an AccessExclusiveLock only if it gets it at once, and gives it up when somebody
//! waits. It uses the server's own `RelationTruncate`. A standby replays its record after that of the lock.
//!
//! Which pages may go is found under the lock. They are empty heap pages at the end of the file, and no
//! version of any directory row names them, not even a dead one. No line pointer of such a page is in use, so
//! neither a snapshot nor an index knows a row there. Two kinds of stripes seem to be missing in this, and
//! are safe:
//! - A stripe that is only being written belongs to a transaction that holds a lock on the table.
//! - A stripe that some snapshot still sees, here or on a standby, has a version in the directory until that
//!   is pruned (protocol point 7).
//!
//! Invariant: nothing else is cut off, least of all block 0.

use std::time::{Duration, Instant};

use pgrx::pg_sys::{self, BlockNumber};

use super::emptied_pages;
use crate::host::buffer;
use crate::host::heap_rewrite;
use crate::host::relation::Open;
use crate::storage::directory::entries;
use crate::storage::file::metapage;

/// An exclusive lock is worth while for this many pages, or for this part of the file. These are heap's own
/// numbers.
const FEWEST: BlockNumber = 1000;
const PART: BlockNumber = 16;
/// How often it tries to get the lock, and the microseconds between two tries.
const TRIES: u32 = 20;
const BETWEEN: i64 = 10_000;
/// After this time it looks again whether somebody waits.
const LOOK: Duration = Duration::from_millis(20);

/// Whether the table's options allow it.
pub fn is_allowed(rel: Open) -> bool {
    // SAFETY: tables of ours have heap's options.
    unsafe {
        let options = (*rel.as_ptr()).rd_options.cast::<pg_sys::StdRdOptions>();
        options.is_null() || (*options).vacuum_truncate
    }
}

/// Cuts off the empty pages at the end of the file, if that is worth while, and returns how many. The caller
/// holds ShareUpdateExclusiveLock.
pub unsafe fn tail(rel: Open) -> u32 {
    // SAFETY: everything is looked at under the lock.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return 0 };
        let blocks = rel.block_count();
        let named = entries::all_versions(storage_id).into_iter().map(|entry| entry.run);
        let floor = named.map(|run| run.end()).max().unwrap_or(1);
        let empty =
            (floor.max(1)..blocks).rev().take_while(|&block| emptied_pages::seems_empty(rel, block)).count();
        let empty = u32::try_from(empty).unwrap_or(0);
        if empty == 0 || (empty < FEWEST && empty < blocks / PART) || heap_rewrite::may_outlive_rows() {
            return 0;
        }
        let lock = pg_sys::AccessExclusiveLock as i32;
        if !(0..TRIES).any(|_| {
            pgrx::check_for_interrupts!();
            let got = pg_sys::ConditionalLockRelation(rel.as_ptr(), lock);
            if !got {
                pg_sys::pg_usleep(BETWEEN);
            }
            got
        }) {
            return 0;
        }
        let end = end_of_rows(rel, storage_id);
        let cut = rel.block_count().saturating_sub(end);
        if cut > 0 {
            pg_sys::RelationTruncate(rel.as_ptr(), end);
        }
        pg_sys::UnlockRelation(rel.as_ptr(), lock);
        cut
    }
}

/// One past the last block that has to stay. If somebody waits for the table, it stops early, and the answer
/// is larger than needed.
unsafe fn end_of_rows(rel: Open, storage_id: u64) -> BlockNumber {
    // SAFETY: the table is locked exclusively.
    unsafe {
        let named = entries::all_by_heap(storage_id).into_iter().map(|(entry, _)| entry.run);
        let floor = named.map(|run| run.end()).max();
        let floor = floor.unwrap_or(1).max(1);
        let strategy = pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_VACUUM);
        let mut end = rel.block_count();
        let mut looked = Instant::now();
        while end > floor {
            pgrx::check_for_interrupts!();
            if looked.elapsed() > LOOK {
                if pg_sys::LockHasWaitersRelation(rel.as_ptr(), pg_sys::AccessExclusiveLock as i32) {
                    break;
                }
                looked = Instant::now();
            }
            let buf = buffer::read(rel, end - 1, strategy);
            buffer::lock_shared(buf);
            let goes = pg_sys::PageIsNew(buffer::page(buf)) || emptied_pages::is_empty(buf);
            buffer::unlock_release(buf);
            if !goes {
                break;
            }
            end -= 1;
        }
        pg_sys::FreeAccessStrategy(strategy);
        end
    }
}
