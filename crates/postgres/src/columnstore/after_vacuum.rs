//! After a VACUUM the columnstore indexes of its tables are refreshed.
//!
//! VACUUM's own transactions cannot do it: others' horizons do not wait for them, so values out of line might
//! go while they are copied. The statement ends in an ordinary transaction, which the server begins after the
//! last table; the refresh is done there. Autovacuum has no statement.
//!
//! Invariants: nobody is waited for: a table or index that cannot be locked at once is left alone. A user
//! refreshes only what the user may vacuum.

use std::ffi::c_int;

use pgrx::pg_sys::{self, Oid};

use super::{access_method, refresh};
use crate::host::catalogs;
use crate::host::relation::{with_index, with_table};
use crate::table_am::packing;

/// Refreshes the indexes of the tables of a VACUUM that has ended.
///
/// # Safety
/// The node of a VACUUM or ANALYZE at the top level; called under guard.
pub unsafe fn refresh_all(node: *mut pg_sys::Node) {
    let method = access_method::oid();
    if method == Oid::INVALID {
        return;
    }
    // SAFETY: a statement's node. An ERROR takes the snapshot off with the transaction.
    unsafe {
        let all = || {
            let indexes = catalogs::relations_of(method).into_iter();
            indexes.map(|index| pg_sys::IndexGetRelation(index, true)).collect()
        };
        let Some(mut tables) = packing::vacuumed(node, all) else { return };
        tables.sort_unstable_by_key(|table| table.to_u32());
        tables.dedup();
        for table in tables {
            let indexes = catalogs::indexes_of(table).into_iter();
            let ours: Vec<Oid> = indexes
                .filter(|&(index, valid)| valid && access_method::method_of(index) == method)
                .map(|(index, _)| index)
                .collect();
            if ours.is_empty() {
                continue;
            }
            pgrx::check_for_interrupts!();
            let lock = pg_sys::ShareUpdateExclusiveLock as c_int;
            if !pg_sys::ConditionalLockRelationOid(table, lock) || pg_sys::get_rel_name(table).is_null() {
                continue;
            }
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            with_table(table, pg_sys::NoLock, |heap| {
                for index in ours {
                    if !heap.is_foreign_temporary()
                        && pg_sys::ConditionalLockRelationOid(index, lock)
                        && access_method::method_of(index) == method
                    {
                        with_index(index, pg_sys::NoLock, |index| refresh::refresh(index, heap));
                    }
                }
            });
            pg_sys::PopActiveSnapshot();
        }
    }
}
