//! Which hot rows a batch moves.
//!
//! Called by `relocate`. A row is chosen if it is live, if every snapshot sees it, and if nobody has locked
//! it or is changing it. Every snapshot sees a row whose inserter is older than the oldest one. Pages are
//! looked at one at a time under a shared lock. Whatever happens to a row afterwards shows when it is
//! deleted.
//!
//! Invariant: nobody can see an older version of a row that is chosen.

use pgrx::pg_sys::{self, BlockNumber, Buffer, HTSV_Result, HeapTupleData, ItemPointerData, TransactionId};

use crate::host::buffer;
use crate::host::relation::Open;
use crate::storage::directory::entries;
use crate::storage::file::{hot_runs, tid};
use crate::storage::pending_rows;
use crate::storage::space::emptied_pages;

/// LP_NORMAL.
const NORMAL: u32 = 1;

/// What a batch has found.
#[derive(Default)]
pub(super) struct Choice {
    /// Rows to be moved.
    pub rows: Vec<ItemPointerData>,
    /// Bytes of their tuples.
    pub bytes: usize,
    /// Further rows that some snapshot does not see, or of which it may see another version.
    pub young: u64,
    /// Further rows that somebody has locked or is changing.
    pub locked: u64,
}

/// What becomes of a row.
enum Fate {
    Movable,
    Young,
    Locked,
    Gone,
}

/// Chooses up to `limit` rows in the order of their TIDs, from block `from` on, but not many more bytes than
/// fit a stripe. Moves `from` to where the next batch begins.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock.
pub(super) unsafe fn choose(
    rel: Open,
    storage_id: u64,
    from: &mut BlockNumber,
    limit: usize,
    oldest_xmin: TransactionId,
) -> Choice {
    // SAFETY: the lock is promised.
    unsafe {
        let runs = entries::all_versions(storage_id).into_iter().map(|entry| entry.run);
        let spans = hot_runs::hot_spans(runs, rel.block_count());
        let strategy = pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_VACUUM);
        let mut vmbuffer: Buffer = 0;
        let mut chosen = Choice::default();
        'spans: for span in spans {
            for block in span.start.max(*from)..span.end {
                pgrx::check_for_interrupts!();
                if chosen.rows.len() >= limit || chosen.bytes >= pending_rows::STRIPE_BYTES {
                    break 'spans;
                }
                // Packing has emptied this page, and no row was put into it since VACUUM marked it.
                if emptied_pages::seems_empty(rel, block)
                    && u32::from(pg_sys::visibilitymap_get_status(rel.as_ptr(), block, &raw mut vmbuffer))
                        != 0
                {
                    *from = block + 1;
                    continue;
                }
                let buf = buffer::read(rel, block, strategy);
                buffer::lock_shared(buf);
                of_page(rel, buf, block, oldest_xmin, limit, &mut chosen);
                buffer::unlock_release(buf);
                // If the limit was reached within the page, the next batch takes the rest of it.
                *from = if chosen.rows.len() >= limit { block } else { block + 1 };
            }
        }
        if vmbuffer != 0 {
            pg_sys::ReleaseBuffer(vmbuffer);
        }
        pg_sys::FreeAccessStrategy(strategy);
        chosen
    }
}

/// Adds the rows of a page.
unsafe fn of_page(
    rel: Open,
    buf: Buffer,
    block: BlockNumber,
    oldest_xmin: TransactionId,
    limit: usize,
    chosen: &mut Choice,
) {
    // SAFETY: the page is pinned and locked; line pointers up to the page's last one are its own.
    unsafe {
        let page = buffer::page(buf);
        if pg_sys::PageIsNew(page) {
            return;
        }
        for offset in 1..=pg_sys::PageGetMaxOffsetNumber(page) {
            if chosen.rows.len() >= limit {
                break;
            }
            let pointer = pg_sys::PageGetItemId(page, offset);
            if (*pointer).lp_flags() != NORMAL {
                continue;
            }
            let at = tid::tid(block, offset);
            let mut tuple = HeapTupleData {
                t_len: (*pointer).lp_len(),
                t_self: at,
                t_tableOid: rel.oid(),
                t_data: pg_sys::PageGetItem(page, pointer).cast(),
            };
            match fate(&mut tuple, buf, oldest_xmin) {
                Fate::Movable => {
                    chosen.bytes += tuple.t_len as usize;
                    chosen.rows.push(at);
                }
                Fate::Young => chosen.young += 1,
                Fate::Locked => chosen.locked += 1,
                Fate::Gone => {}
            }
        }
    }
}

unsafe fn fate(tuple: &mut HeapTupleData, buf: Buffer, oldest_xmin: TransactionId) -> Fate {
    // SAFETY: the page is locked. The state is asked first, as that sets hints.
    unsafe {
        let state = pg_sys::HeapTupleSatisfiesVacuum(tuple, oldest_xmin, buf);
        match state {
            HTSV_Result::HEAPTUPLE_LIVE => {}
            HTSV_Result::HEAPTUPLE_INSERT_IN_PROGRESS => return Fate::Young,
            HTSV_Result::HEAPTUPLE_DELETE_IN_PROGRESS => return Fate::Locked,
            _ => return Fate::Gone,
        }
        let header = tuple.t_data;
        let bits = u32::from((*header).t_infomask);
        let (xmin, xmax) = ((*header).t_choice.t_heap.t_xmin, (*header).t_choice.t_heap.t_xmax);
        let frozen = bits & pg_sys::HEAP_XMIN_FROZEN == pg_sys::HEAP_XMIN_FROZEN;
        if !frozen && !pg_sys::TransactionIdPrecedes(xmin, oldest_xmin) {
            return Fate::Young;
        }
        if bits & pg_sys::HEAP_XMAX_INVALID != 0 {
            return Fate::Movable;
        }
        let lock_only = bits & pg_sys::HEAP_XMAX_LOCK_ONLY != 0;
        let is_free = lock_only
            && if bits & pg_sys::HEAP_XMAX_IS_MULTI != 0 {
                !pg_sys::MultiXactIdIsRunning(xmax.into_inner().into(), true)
            } else {
                !pg_sys::TransactionIdIsInProgress(xmax)
            };
        if is_free { Fate::Movable } else { Fate::Locked }
    }
}
