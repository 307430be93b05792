//! Published tables keep their rows hot.
//!
//! Logical decoding reads heap tuples, so a stripe would be missing from it. Loads into published tables stay hot
//! (`open_stripes` asks); the other way round, publishing a table that has cold rows is refused here, after the server
//! has carried out a statement that may publish tables. Tables that the statement published are locked against loads
//! that began before it, and then counted.

use std::cell::Cell;
use std::ffi::c_char;

use pgrx::pg_sys::{self, Datum, NodeTag, Oid, PlannedStmt};

use super::vacuum;
use crate::compat;
use crate::host::raw::{self, guarded};
use crate::host::{error, relation};
use crate::storage::open_stripes;

thread_local! {
    static NEXT: Cell<pg_sys::ProcessUtility_hook_type> = const { Cell::new(None) };
}

/// Puts the hook in place, keeping those of others.
pub unsafe fn install() {
    // SAFETY: called once, from _PG_init.
    unsafe {
        NEXT.set(pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(utility);
    }
}

unsafe extern "C-unwind" fn utility(
    statement: *mut PlannedStmt,
    query: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    dest: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: the chain is called as the server would call it, from a frame that owns nothing; the node is read
    // before, since it may be gone after.
    unsafe {
        let publishes = guarded(|| may_publish((*statement).utilityStmt));
        let next = NEXT.get().unwrap_or(raw::standard_ProcessUtility);
        next(statement, query, read_only_tree, context, params, environment, dest, completion);
        if publishes {
            guarded(|| {
                pg_sys::CommandCounterIncrement();
                check_tables();
            });
        }
    }
}

/// Whether a statement can make a table published.
unsafe fn may_publish(node: *mut pg_sys::Node) -> bool {
    // SAFETY: a statement's node, or null.
    unsafe {
        if node.is_null() {
            return false;
        }
        match (*node).type_ {
            NodeTag::T_CreatePublicationStmt | NodeTag::T_AlterPublicationStmt => true,
            // Into a published schema.
            NodeTag::T_AlterObjectSchemaStmt => {
                (*node.cast::<pg_sys::AlterObjectSchemaStmt>()).objectType == pg_sys::ObjectType::OBJECT_TABLE
            }
            // Below a published parent.
            NodeTag::T_AlterTableStmt => {
                let commands = (*node.cast::<pg_sys::AlterTableStmt>()).cmds;
                let count = if commands.is_null() { 0 } else { (*commands).length };
                (0..count).any(|at| {
                    let command = pg_sys::list_nth(commands, at).cast::<pg_sys::AlterTableCmd>();
                    (*command).subtype == pg_sys::AlterTableType::AT_AttachPartition
                })
            }
            _ => false,
        }
    }
}

/// Raises an ERROR if a published table of this database has cold rows.
unsafe fn check_tables() {
    // SAFETY: catalog look-ups; relations are opened with a lock each.
    unsafe {
        let method = pg_sys::get_am_oid(c"colcompress".as_ptr(), true);
        if method == Oid::INVALID {
            return;
        }
        let all_tables = any(pg_sys::GetAllTablesPublications());
        for table in tables_of(method) {
            // A lock on each table of the database would deadlock with whoever changes two of them.
            if !all_tables && !is_listed(table) {
                continue;
            }
            let rel = pg_sys::try_relation_open(table, pg_sys::AccessShareLock as i32);
            if rel.is_null() {
                continue;
            }
            if relation::is_colcompress(rel)
                && !relation::is_temporary(rel)
                && open_stripes::is_published(rel)
            {
                // Waits for loads that do not know yet.
                pg_sys::LockRelationOid(table, pg_sys::ShareLock as i32);
                open_stripes::flush_relation(rel);
                if vacuum::cold_row_count(rel) > 0.0 {
                    error::raise(
                        error::PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                        format!("cannot publish table {}", relation::quoted_name(rel)),
                        "Some of its rows are in stripes, which logical decoding does not read.",
                        "Turn it into a heap table with ALTER TABLE ... SET ACCESS METHOD heap, and back after publishing it.",
                    );
                }
            }
            pg_sys::relation_close(rel, pg_sys::NoLock as i32);
        }
    }
}

unsafe fn any(list: *mut pg_sys::List) -> bool {
    // SAFETY: an OID list of our own, or null.
    unsafe {
        let some = !list.is_null();
        pg_sys::list_free(list);
        some
    }
}

/// Whether a publication names the table, its schema, or a partitioned table above it. Needs no lock.
unsafe fn is_listed(table: Oid) -> bool {
    // SAFETY: catalog look-ups; a table that is gone has no entries.
    unsafe {
        if listed_itself(table) {
            return true;
        }
        if !pg_sys::get_rel_relispartition(table) {
            return false;
        }
        let ancestors = compat::partition_ancestors(table);
        let count = if ancestors.is_null() { 0 } else { (*ancestors).length };
        let found = (0..count).any(|at| listed_itself(pg_sys::list_nth_oid(ancestors, at)));
        pg_sys::list_free(ancestors);
        found
    }
}

unsafe fn listed_itself(table: Oid) -> bool {
    // SAFETY: as above.
    unsafe {
        any(pg_sys::GetRelationPublications(table))
            || any(pg_sys::GetSchemaPublications(pg_sys::get_rel_namespace(table)))
    }
}

/// OIDs of the ordinary tables that use an access method.
unsafe fn tables_of(method: Oid) -> Vec<Oid> {
    let mut found = Vec::new();
    // SAFETY: a plain catalog scan.
    unsafe {
        let catalog = pg_sys::table_open(pg_sys::RelationRelationId, pg_sys::AccessShareLock as i32);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &raw mut key,
            pg_sys::Anum_pg_class_relam as i16,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::F_OIDEQ.into(),
            Datum::from(method),
        );
        let none = std::ptr::null_mut();
        let scan = pg_sys::systable_beginscan(catalog, pg_sys::InvalidOid, false, none, 1, &raw mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let form = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>();
            if (*form).relkind as u8 == pg_sys::RELKIND_RELATION {
                found.push((*form).oid);
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, pg_sys::NoLock as i32);
    }
    found
}
