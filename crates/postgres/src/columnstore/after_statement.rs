//! After a VACUUM, and after CREATE INDEX and REINDEX CONCURRENTLY, columnstore indexes are refreshed.
//!
//! VACUUM's own transactions cannot do it: others' horizons do not wait for them, so values out of line might
//! go while they are copied. An index that was built CONCURRENTLY is empty. These statements end in an
//! ordinary transaction, which the server begins at their end. It is committed, and each region is copied in
//! a transaction of its own.
//!
//! Invariants: nobody is waited for: a table or index that cannot be locked at once is left alone. A user
//! refreshes only what the user may maintain.

use std::ffi::CStr;

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag, Oid};

use super::refresh::{Refresh, try_refresh};
use super::{access_method, settings};
use crate::compat;
use crate::host::catalogs;
use crate::table_am::packing;

/// Refreshes the indexes of the tables of a statement that has ended.
///
/// # Safety
/// The node of a statement at the top level; called under guard.
pub unsafe fn refresh_all(node: *mut pg_sys::Node) {
    let method = access_method::oid();
    if method == Oid::INVALID || !settings::is_on() {
        return;
    }
    // SAFETY: a statement's node, which outlives the transactions. An ERROR takes the snapshot off with the
    // transaction.
    unsafe {
        let Some(mut tables) = tables(node, method) else { return };
        tables.sort_unstable_by_key(|table| table.to_u32());
        tables.dedup();
        let mut is_open = false;
        for table in tables {
            let mut done = Vec::new();
            for index in access_method::valid_indexes(table, method) {
                if done.contains(&index) {
                    continue;
                }
                let mut refresh = Refresh::begin(1);
                loop {
                    next_transaction();
                    is_open = true;
                    pg_sys::XactIsoLevel = pg_sys::XACT_READ_COMMITTED as i32;
                    pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
                    let has_more = try_refresh(table, index, &mut refresh);
                    pg_sys::PopActiveSnapshot();
                    match has_more {
                        Some(true) => {}
                        Some(false) => break done.extend_from_slice(refresh.together()),
                        None => break,
                    }
                }
            }
        }
        if is_open {
            // What comes next, in a pipeline, is in no transaction of ours, with its level and its locks.
            next_transaction();
        }
    }
}

/// Commits, and begins the next transaction, as VACUUM does.
unsafe fn next_transaction() {
    // SAFETY: no snapshot is active that was not put there by the portal, and no transaction block is open.
    unsafe {
        pgrx::check_for_interrupts!();
        if pg_sys::ActiveSnapshotSet() {
            pg_sys::PopActiveSnapshot();
        }
        // The present context may be that of the statement's last transaction. The portal's outlives it.
        pg_sys::CommitTransactionCommand();
        pg_sys::StartTransactionCommand();
        if !pg_sys::PortalContext.is_null() {
            pg_sys::MemoryContextSwitchTo(pg_sys::PortalContext);
        }
    }
}

/// Tables whose indexes may have blocks to copy now. None: the statement is no such statement.
unsafe fn tables(node: *mut pg_sys::Node, method: Oid) -> Option<Vec<Oid>> {
    // SAFETY: the casts follow the tags.
    unsafe {
        let all = || {
            let indexes = catalogs::relations_of(method).into_iter();
            indexes.map(|index| pg_sys::IndexGetRelation(index, true)).collect()
        };
        match (*node).type_ {
            NodeTag::T_IndexStmt => {
                let statement = node.cast::<pg_sys::IndexStmt>();
                let kind = (*statement).accessMethod;
                let is_ours = !kind.is_null() && CStr::from_ptr(kind) == access_method::NAME;
                ((*statement).concurrent && is_ours).then(|| mine(vec![named((*statement).relation)]))
            }
            NodeTag::T_ReindexStmt => {
                let statement = node.cast::<pg_sys::ReindexStmt>();
                let options = PgList::<pg_sys::DefElem>::from_pg((*statement).params);
                let concurrently = options.iter_ptr().any(|option| {
                    CStr::from_ptr((*option).defname) == c"concurrently" && pg_sys::defGetBoolean(option)
                });
                concurrently.then(|| {
                    let found = named((*statement).relation);
                    match pg_sys::IndexGetRelation(found, true) {
                        _ if found == Oid::INVALID => mine(all()),
                        Oid::INVALID => mine(with_partitions(found)),
                        table => mine(with_partitions(table)),
                    }
                })
            }
            _ => packing::vacuumed(node, all),
        }
    }
}

/// The relation of a name. Invalid if there is none.
unsafe fn named(name: *mut pg_sys::RangeVar) -> Oid {
    if name.is_null() {
        return Oid::INVALID;
    }
    // SAFETY: a name of a statement. It is looked up without a lock: what it stands for is asked again.
    unsafe {
        let (none, missing_ok) = (pg_sys::NoLock as i32, pg_sys::RVROption::RVR_MISSING_OK);
        pg_sys::RangeVarGetRelidExtended(name, none, missing_ok, None, std::ptr::null_mut())
    }
}

/// A table and its partitions.
unsafe fn with_partitions(table: Oid) -> Vec<Oid> {
    // SAFETY: catalog look-ups.
    unsafe { PgList::<Oid>::from_pg(catalogs::inheritors(table)).iter_oid().collect() }
}

/// Those that the user may maintain.
unsafe fn mine(mut tables: Vec<Oid>) -> Vec<Oid> {
    // SAFETY: catalog look-ups.
    unsafe {
        let user = pg_sys::GetUserId();
        tables.retain(|&table| table != Oid::INVALID && compat::may_maintain(table, user));
    }
    tables
}
