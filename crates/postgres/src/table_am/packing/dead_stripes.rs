//! VACUUM takes stripes out of which every row is dead.
//!
//! Other transactions' snapshots leave out what VACUUM's own transactions do to rows. So these cannot take a
//! stripe out of the directory. But the statement begins in an ordinary transaction, which the server commits
//! before it vacuums the first table. In that transaction `utility_hook` has such stripes taken out,
//! as packing does. VACUUM then frees their pages if no older snapshot is left.
//!
//! Autovacuum has no statement. For its tables the packing worker does the same.
//!
//! Invariants: nobody is waited for, and a table that cannot be locked at once is left alone. A user takes
//! stripes out only of tables that the user may vacuum.

use std::ffi::c_int;

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag, Oid, VacuumStmt};

use super::{as_owner, join, obstacle};
use crate::compat;
use crate::host::catalogs;
use crate::host::relation::Open;
use crate::options;
use crate::table_am::statements::publication;

/// Takes such stripes out, if the statement is a VACUUM.
///
/// # Safety
/// The node of a statement at the top level, before it is carried out; called under guard.
pub(in crate::table_am) unsafe fn before_vacuum(node: *mut pg_sys::Node) {
    // SAFETY: the caller's promise; the cast follows the tag.
    unsafe {
        if let Some(mut tables) = vacuumed(node, || publication::all_tables()) {
            tables.retain(|&table| options::is_columnar(table));
            take_out(tables);
        }
    }
}

/// The tables of a VACUUM, as far as the user may vacuum them: those that it names, or `all`. None if the
/// statement is no VACUUM, or one that gives tables new files.
///
/// # Safety
/// The node of a statement at the top level.
pub unsafe fn vacuumed(node: *mut pg_sys::Node, all: impl FnOnce() -> Vec<Oid>) -> Option<Vec<Oid>> {
    // SAFETY: the caller's promise; the cast follows the tag.
    unsafe {
        ((*node).type_ == NodeTag::T_VacuumStmt && will_vacuum(node.cast())).then(|| tables(node.cast(), all))
    }
}

/// Whether the statement is a VACUUM that keeps the tables' files and that the server will not refuse.
unsafe fn will_vacuum(statement: *mut VacuumStmt) -> bool {
    // SAFETY: a statement's node; the name of an option is a string.
    unsafe {
        let options = PgList::<pg_sys::DefElem>::from_pg((*statement).options);
        let is_full = options.iter_ptr().any(|option| {
            std::ffi::CStr::from_ptr((*option).defname) == c"full" && pg_sys::defGetBoolean(option)
        });
        (*statement).is_vacuumcmd
            && !is_full
            && !pg_sys::RecoveryInProgress()
            && !pg_sys::IsInTransactionBlock(true)
    }
}

/// The tables that the statement names, or `all`, as far as the user may vacuum them.
unsafe fn tables(statement: *mut VacuumStmt, all: impl FnOnce() -> Vec<Oid>) -> Vec<Oid> {
    // SAFETY: catalog look-ups. Names are looked up without a lock: what they stand for is asked again once
    // it is locked.
    unsafe {
        let named = PgList::<pg_sys::VacuumRelation>::from_pg((*statement).rels);
        let mut found = Vec::new();
        for named in named.iter_ptr() {
            let missing_ok = pg_sys::RVROption::RVR_MISSING_OK;
            let none = pg_sys::NoLock as c_int;
            let table = match (*named).relation {
                name if name.is_null() => (*named).oid,
                name => pg_sys::RangeVarGetRelidExtended(name, none, missing_ok, None, std::ptr::null_mut()),
            };
            let is_partitioned = pg_sys::get_rel_relkind(table) as u8 == pg_sys::RELKIND_PARTITIONED_TABLE;
            if table != Oid::INVALID && compat::vacuums_children((*named).relation, is_partitioned) {
                found.extend(PgList::<Oid>::from_pg(catalogs::inheritors(table)).iter_oid());
            } else {
                found.push(table);
            }
        }
        if named.is_empty() {
            found = all();
        }
        let user = pg_sys::GetUserId();
        let is_database_owner = compat::owns_database(pg_sys::MyDatabaseId, user);
        found.retain(|&table| {
            table != Oid::INVALID && (is_database_owner || compat::may_maintain(table, user))
        });
        found
    }
}

/// Takes stripes out of these tables if every row of them is dead and nobody is at work on them.
unsafe fn take_out(tables: Vec<Oid>) {
    // SAFETY: the transaction is the statement's first; the locks of tables that are changed are kept to its
    // end, which comes before the first table is vacuumed.
    unsafe {
        if tables.is_empty() {
            return;
        }
        read_committed();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        for table in tables {
            pgrx::check_for_interrupts!();
            if !pg_sys::ConditionalLockRelationOid(table, pg_sys::ShareUpdateExclusiveLock as c_int) {
                continue;
            }
            let rel = pg_sys::try_table_open(table, pg_sys::NoLock as c_int);
            if rel.is_null() {
                continue;
            }
            let is_ours = options::is_our_relation(Open::of(rel)) && !Open::of(rel).is_foreign_temporary();
            let mut taken_out = 0;
            if is_ours && obstacle::of_taking_out(Open::of(rel)).is_none() {
                taken_out = as_owner(Open::of(rel), || join::take_out_dead(Open::of(rel)));
            }
            // The lock of an unchanged table is given back: the database may have more tables than the server
            // has room for locks.
            let kept = if taken_out > 0 { pg_sys::NoLock } else { pg_sys::ShareUpdateExclusiveLock };
            pg_sys::table_close(rel, kept as c_int);
        }
        pg_sys::PopActiveSnapshot();
    }
}

/// Sees to it that the transaction is at READ COMMITTED, whatever level the session prefers: a mover must not
/// conflict with anybody. The server has given the statement a snapshot already, and the level cannot change
/// after that. So a transaction at another level is ended and a new one begun, as VACUUM itself does later.
unsafe fn read_committed() {
    // SAFETY: no transaction block, and the statement has changed nothing yet.
    unsafe {
        let wanted = pg_sys::XACT_READ_COMMITTED as c_int;
        if pg_sys::XactIsoLevel > wanted {
            if pg_sys::ActiveSnapshotSet() {
                pg_sys::PopActiveSnapshot();
            }
            // Both leave a context that ends with the transaction. The statement's own outlives it.
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CommitTransactionCommand();
            pg_sys::StartTransactionCommand();
            pg_sys::MemoryContextSwitchTo(context);
        }
        pg_sys::XactIsoLevel = wanted;
    }
}
