//! `engine.row_proxy`: heap tuples that stand for cold rows (protocol point 2).
//!
//! The first lock on or change to a cold row makes a *live* proxy for it, inserted frozen, so that its
//! existence means nothing and a rollback need not remove it. Who locks the row locks that tuple, through the
//! server's own `heap_lock_tuple`; who deletes or updates the row locks it for key update and then updates it
//! to a *tombstone*: dead, with the TID of the row that has taken its place (the row's own TID where there is
//! none). An update that leaves the key alone locks it less, and FOR KEY SHARE locks stay on both tuples. So
//! multixacts, waiting, deadlocks, savepoints, two-phase commit and visibility are the server's: a cold row
//! is there for a snapshot exactly when its live proxy is, and where no proxy is, the row is there.
//!
//! `make` finds and makes, `change` writes, `visibility` answers readers, `dead_to_all` VACUUM, for which
//! `unused` takes away what nobody needs. Invariants: at most one live proxy a row, which never moves; it may
//! be pruned once its tombstone is dead to nobody; a tombstone is never deleted before its row is gone from
//! its stripe; nothing is published by logical decoding (published tables have no cold rows).

mod change;
mod dead_to_all;
mod make;
mod unused;
mod visibility;

pub use change::{Outcome, Pinned, Replaced, bury, insert_buried, lock};
pub use dead_to_all::DeadToAll;
pub use make::forget;
pub use unused::remove_unused;
pub use visibility::{Tombstones, buried, count, dying, for_each_dead, is_there, latest, tombstones};

use pgrx::pg_sys::{self, Datum, HeapTuple, ItemPointerData};

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

/// Bytes of a proxy's values: all are of fixed length, none is null, so they lie where they lie.
#[repr(C)]
struct Stored {
    storage_id: i64,
    row: i64,
    successor: ItemPointerData,
    dead: bool,
}

impl Proxy {
    /// A proxy that says nothing but which row it stands for.
    fn live(storage_id: u64, row: u64) -> Self {
        Self { storage_id, row, successor: NOWHERE, dead: false }
    }

    /// What a tuple of the catalog says.
    unsafe fn of(tuple: HeapTuple) -> Self {
        // SAFETY: the tuple is pinned and never changes in place; the catalog's columns are those of
        // `Stored`, in order.
        unsafe {
            let header = (*tuple).t_data;
            let stored = header.cast::<u8>().add(usize::from((*header).t_hoff)).cast::<Stored>();
            Self {
                storage_id: (*stored).storage_id as u64,
                row: (*stored).row as u64,
                successor: (*stored).successor,
                dead: (*stored).dead,
            }
        }
    }

    /// What the row says that a cursor stands on.
    unsafe fn at(cursor: &Cursor) -> Self {
        // SAFETY: the cursor pins the tuple.
        unsafe { Self::of(cursor.tuple()) }
    }

    /// The key, for the index.
    fn key(&self) -> [Datum; 2] {
        [Datum::from(self.storage_id as i64), Datum::from(self.row as i64)]
    }

    /// As a tuple of the catalog, palloc'd.
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

/// No row at all.
const NOWHERE: ItemPointerData =
    ItemPointerData { ip_blkid: pg_sys::BlockIdData { bi_hi: u16::MAX, bi_lo: u16::MAX }, ip_posid: 0 };

/// What stands for the place of a row that an UPDATE has moved to another partition.
pub const OTHER_PARTITION: ItemPointerData = ItemPointerData {
    ip_blkid: pg_sys::BlockIdData { bi_hi: u16::MAX, bi_lo: u16::MAX },
    ip_posid: pg_sys::MovedPartitionsOffsetNumber as u16,
};
