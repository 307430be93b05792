//! Which snapshots see a row of the directory: the age that it is inserted with.
//!
//! Called by `directory::insert`, and by merge, VACUUM FULL and CLUSTER. These write stripes of other
//! transactions into a new file. Exactly the snapshots that saw such a stripe in the old file have to see it
//! there, as heap's rewrite keeps xmin. So the row's xmin is set to the loader's, in place, and the page is
//! logged as an image. An ordinary insertion cannot do this.
//!
//! Invariants: the inserter has committed. It is not older than the catalog's relfrozenxid, because the row
//! in the old file still carries it, and `hold_horizon` keeps it so until the end of the transaction.

use pgrx::pg_sys::{self, CommandId, HeapTuple, ItemPointerData, TransactionId};

use crate::host::relation::Open;
use crate::host::{buffer, critical, error};
use crate::storage::catalog::side_table::SideTable;
use crate::storage::file::tid;

/// Which snapshots see a directory row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Age {
    /// Snapshots that see what the current transaction does.
    New,
    /// Snapshots that see what the current transaction has done as this command, which is over.
    Own(CommandId),
    /// Snapshots that see what this committed transaction did. As `Everybody`, it is right only for a row of
    /// a new file.
    Since(TransactionId),
    /// All snapshots, at once and even after a rollback. It is right only if nobody can know the storage id
    /// before this transaction commits.
    Everybody,
}

impl Age {
    /// The age of a row that is visible now. `inserter` is invalid if the row is frozen. `oldest_xmin` is the
    /// oldest transaction still running.
    pub fn of(inserter: TransactionId, oldest_xmin: TransactionId) -> Self {
        // SAFETY: comparisons of ids; the invalid one precedes every other.
        unsafe {
            if pg_sys::TransactionIdPrecedes(inserter, oldest_xmin) {
                Self::Everybody
            } else if pg_sys::TransactionIdIsCurrentTransactionId(inserter) {
                Self::New
            } else {
                Self::Since(inserter)
            }
        }
    }

    /// The command id that the row carries. `current` is the command that writes it.
    pub fn command(self, current: CommandId) -> CommandId {
        if let Self::Own(command) = self { command } else { current }
    }

    /// Options of heap's insertion.
    pub fn insert_options(self) -> u32 {
        if self == Self::Everybody { pg_sys::HEAP_INSERT_FROZEN } else { 0 }
    }

    /// Gives the row that was just inserted its age.
    pub(super) unsafe fn stamp(self, table: Open, row: HeapTuple) {
        if let Self::Since(inserter) = self {
            // SAFETY: the caller has just inserted the row.
            unsafe { set_inserters(table, vec![((*row).t_self, inserter)]) }
        }
    }
}

/// Puts other inserters into rows that were just inserted, page by page. An inserter has committed, or the
/// present subtransaction is a part of it.
pub unsafe fn set_inserters(table: Open, mut rows: Vec<(ItemPointerData, TransactionId)>) {
    rows.sort_unstable_by_key(|(at, _)| tid::block_of(*at));
    for rows in rows.chunk_by(|(one, _), (next, _)| tid::block_of(*one) == tid::block_of(*next)) {
        // SAFETY: see the function.
        unsafe { set_inserters_of_page(table, rows) };
    }
}

unsafe fn set_inserters_of_page(table: Open, rows: &[(ItemPointerData, TransactionId)]) {
    let Some(&(first, _)) = rows.first() else { return };
    // SAFETY: a comparison of ids.
    let is_ours = |&(_, inserter): &(_, TransactionId)| unsafe {
        pg_sys::TransactionIdIsCurrentTransactionId(inserter)
    };
    let committed = !rows.iter().any(is_ours);
    // SAFETY: the rows are this transaction's own and nobody else can look for them; their page is changed
    // and logged under its exclusive lock, with nothing in the critical section that could raise an ERROR.
    unsafe {
        let buf = buffer::read(table, tid::block_of(first), std::ptr::null_mut());
        buffer::lock_exclusive(buf);
        let page = buffer::page(buf);
        let header = |at: ItemPointerData| {
            pg_sys::PageGetItem(page, pg_sys::PageGetItemId(page, at.ip_posid))
                .cast::<pg_sys::HeapTupleHeaderData>()
        };
        for &(at, _) in rows {
            let row = header(at);
            if row.is_null() || !pg_sys::TransactionIdIsCurrentTransactionId((*row).t_choice.t_heap.t_xmin) {
                error::internal("a row of a catalog of stripes is not where it was inserted");
            }
        }
        let logged = table.needs_wal();
        critical::start();
        for &(at, inserter) in rows {
            let row = header(at);
            (*row).t_choice.t_heap.t_xmin = inserter;
            if committed {
                (*row).t_infomask |= pg_sys::HEAP_XMIN_COMMITTED as u16;
            }
        }
        pg_sys::MarkBufferDirty(buf);
        if logged {
            pg_sys::log_newpage_buffer(buf, true);
        }
        critical::end();
        buffer::unlock_release(buf);
    }
}

/// Keeps VACUUM, until this transaction ends, from moving the catalogs' relfrozenxid past ids that rows are
/// going to carry.
pub unsafe fn hold_horizon() {
    // SAFETY: plain relation locks.
    unsafe {
        for catalog in [SideTable::Stripe, SideTable::RowProxy, SideTable::DeleteBitmap] {
            pg_sys::LockRelationOid(catalog.oids().table, pg_sys::ShareUpdateExclusiveLock as i32);
        }
    }
}
