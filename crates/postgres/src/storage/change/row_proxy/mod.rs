//! `engine.row_proxy`: heap tuples that stand for cold rows (protocol point 2).
//!
//! The first lock on or change to a cold row makes a *live* proxy for it. The proxy is inserted frozen, so
//! that its existence means nothing and a rollback need not remove it. From then on the proxy's tuple carries
//! the row's locks and its death:
//! - A transaction that locks the row locks that tuple, through the server's own `heap_lock_tuple`.
//! - A transaction that deletes or updates the row locks the tuple for key update and then updates it to a
//!   *tombstone*. A tombstone says that the row is dead, and has the TID of its successor (the row's own TID
//!   if there is none).
//! - An update that leaves the key alone takes a weaker lock, and FOR KEY SHARE locks stay on both tuples.
//!
//! So multixacts, waiting, deadlocks, savepoints, two-phase commit and visibility are the server's. A
//! snapshot sees a cold row exactly when it sees the live proxy. A row without any proxy is there.
//!
//! The parts:
//! - `make`: finds and makes live proxies
//! - `change`: locks and buries
//! - `visibility`: answers readers; `suspects` keeps which rows need an answer
//! - `dead_to_all`: answers VACUUM
//! - `unused`: takes proxies away that nobody needs
//!
//! Invariants:
//! - A row has at most one live proxy, which never moves. It may be pruned once every snapshot sees its
//!   tombstone.
//! - A tombstone is never deleted before its row is gone from its stripe.
//! - Logical decoding publishes nothing (published tables have no cold rows).

mod change;
mod dead_to_all;
mod make;
mod suspects;
mod unused;
mod visibility;

pub use change::{Outcome, Pinned, Replaced, bury, insert_buried, lock};
pub use dead_to_all::DeadToAll;
pub use make::forget;
pub use suspects::is_certainly_alive;
pub use unused::remove_unused;
pub use visibility::{Tombstones, buried, count, dying, for_each_dead, is_there, latest, tombstones};

use pgrx::pg_sys::{self, Datum, HeapTuple, HeapTupleHeader, ItemPointerData};

use crate::host::relation::Open;
use crate::storage::catalog::side_table::{Cursor, ROW_PROXY_COLUMNS};

/// What a proxy says.
#[derive(Clone, Copy)]
struct Proxy {
    storage_id: u64,
    row: u64,
    successor: ItemPointerData,
    dead: bool,
}

/// The bytes of a proxy's values. All values are of fixed length and none is null, so each is always at the
/// same place.
#[repr(C)]
struct Stored {
    storage_id: i64,
    row: i64,
    successor: ItemPointerData,
    dead: bool,
}

impl Proxy {
    /// A proxy that says only which row it stands for.
    fn live(storage_id: u64, row: u64) -> Self {
        Self { storage_id, row, successor: NOWHERE, dead: false }
    }

    /// What a tuple of the catalog says.
    unsafe fn of(tuple: HeapTuple) -> Self {
        // SAFETY: the tuple is pinned.
        unsafe { Self::stored((*tuple).t_data) }
    }

    /// What a tuple with this header says.
    unsafe fn stored(header: HeapTupleHeader) -> Self {
        // SAFETY: the tuple is pinned and never changes in place; the catalog's columns are those of
        // `Stored`, in order.
        unsafe {
            let stored = header.cast::<u8>().add(usize::from((*header).t_hoff)).cast::<Stored>();
            Self {
                storage_id: (*stored).storage_id as u64,
                row: (*stored).row as u64,
                successor: (*stored).successor,
                dead: (*stored).dead,
            }
        }
    }

    /// What the cursor's present row says.
    unsafe fn at(cursor: &Cursor) -> Self {
        // SAFETY: the cursor pins the tuple.
        unsafe { Self::of(cursor.tuple()) }
    }

    /// The key, for the index.
    fn key(&self) -> [Datum; 2] {
        [Datum::from(self.storage_id as i64), Datum::from(self.row as i64)]
    }

    /// The proxy as a tuple of the catalog, palloc'd.
    unsafe fn form(mut self, table: Open) -> HeapTuple {
        let [storage_id, row] = self.key();
        // SAFETY: heap_form_tuple copies the values.
        unsafe {
            let successor = Datum::from((&raw mut self.successor).cast::<std::ffi::c_void>() as usize);
            let mut values = [storage_id, row, successor, Datum::from(self.dead)];
            let mut nulls = [false; ROW_PROXY_COLUMNS];
            pg_sys::heap_form_tuple(table.descriptor(), values.as_mut_ptr(), nulls.as_mut_ptr())
        }
    }
}

/// The live proxy of a row, if it is at this offset of a page.
unsafe fn live_on_page(
    page: pg_sys::Page,
    offset: u16,
    storage_id: u64,
    row: u64,
) -> Option<HeapTupleHeader> {
    // SAFETY: the page is locked.
    unsafe {
        if offset > pg_sys::PageGetMaxOffsetNumber(page) {
            return None;
        }
        let item = pg_sys::PageGetItemId(page, offset);
        if (*item).lp_flags() != pg_sys::LP_NORMAL {
            return None;
        }
        let header = pg_sys::PageGetItem(page, item).cast();
        let proxy = Proxy::stored(header);
        (!proxy.dead && (proxy.storage_id, proxy.row) == (storage_id, row)).then_some(header)
    }
}

/// The TID of no row at all.
const NOWHERE: ItemPointerData =
    ItemPointerData { ip_blkid: pg_sys::BlockIdData { bi_hi: u16::MAX, bi_lo: u16::MAX }, ip_posid: 0 };

/// The successor of a row that an UPDATE has moved to another partition.
pub const OTHER_PARTITION: ItemPointerData = ItemPointerData {
    ip_blkid: pg_sys::BlockIdData { bi_hi: u16::MAX, bi_lo: u16::MAX },
    ip_posid: pg_sys::MovedPartitionsOffsetNumber as u16,
};
