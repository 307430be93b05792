//! Reading a catalog without its index.
//!
//! An index may lack rows that the catalog has. REINDEX leaves out rows that are dead to everybody on the
//! primary, and entries of such rows are removed or passed over once a reader has noticed. This file is used
//! where such rows still count: by VACUUM, before it frees what they name, and on a standby. Snapshots there
//! may be older than any on the primary.

use pgrx::pg_sys::{self, ItemPointerData, Oid};

use super::side_table::{Compare, Cursor, SideTable};
use crate::host::heap_tuple;
use crate::host::relation::Open;

impl SideTable {
    /// Calls `with` for each row of the catalog, whatever has become of it, in the order of its pages.
    pub fn each_by_heap(self, mut with: impl FnMut(&Cursor)) {
        // SAFETY: a plain scan of a heap table, whose slot has the row pinned until the next step; both are
        // closed here, or by the server's abort.
        unsafe {
            let table = self.open(pg_sys::AccessShareLock);
            let any = &raw mut pg_sys::SnapshotAnyData;
            let scan = pg_sys::systable_beginscan(table, Oid::INVALID, false, any, 0, std::ptr::null_mut());
            loop {
                pgrx::check_for_interrupts!();
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                let held = (*scan).slot.cast::<pg_sys::BufferHeapTupleTableSlot>();
                with(&Cursor::new(Open::of(table), tuple, (*held).buffer));
            }
            pg_sys::systable_endscan(scan);
            pg_sys::table_close(table, pg_sys::NoLock as i32);
        }
    }

    /// Does what `walk_keys` does, for an index that may lack rows.
    pub(super) fn walk_by_heap(
        self,
        storage_id: u64,
        limits: &[(Compare, u64)],
        backward: bool,
        mut step: impl FnMut(&Cursor) -> bool,
    ) {
        // SAFETY: see `each_by_heap`. Catalogs have three numbers at least, or two as their key; what follows
        // these orders nothing that matters.
        unsafe {
            let matches = |cursor: &Cursor| cursor.matches(storage_id, limits);
            let mut found: Vec<([u64; 2], ItemPointerData)> = Vec::new();
            let keys = self.keys();
            self.each_by_heap(|cursor| {
                if matches(cursor) {
                    let key = [2, 3].map(|at| if at <= keys { cursor.number(at) } else { 0 });
                    found.push((key, cursor.place()));
                }
            });
            found.sort_by_key(|(key, _)| *key);
            if backward {
                found.reverse();
            }
            for (_, place) in found {
                // A row that was pruned meanwhile is seen by nobody, and is no reason to stop.
                let stop = self.at(place, |cursor| (matches(cursor) && !step(cursor)).then_some(()));
                if stop.is_some() {
                    break;
                }
            }
        }
    }
}

/// Whether an index of a catalog may lack rows that a snapshot of this transaction sees: the transaction
/// began on a standby, and the index was built since the oldest such snapshot could have been taken.
pub(super) fn may_lack_rows(index: Oid) -> bool {
    // SAFETY: look-ups; the tuple is the cache's own, and its header tells who wrote it.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, index.into());
        if tuple.is_null() {
            return true;
        }
        let built = heap_tuple::inserter((*tuple).t_data);
        pg_sys::ReleaseSysCache(tuple);
        built.is_some_and(|built| !pg_sys::TransactionIdPrecedes(built, pg_sys::TransactionXmin))
    }
}
