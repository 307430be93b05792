//! Published tables keep their rows hot.
//!
//! Logical decoding reads heap tuples, so it would miss the rows of stripes. Loads into published tables make
//! hot rows (`pending_rows` asks). This file refuses to publish a table that has cold rows.
//!
//! It looks after the server has carried out a statement that may publish tables. The statement names tables
//! directly, or as part of a schema or a partitioned table. Those that are published now are locked against
//! loads that began before, and then their cold rows are counted. A statement that did nothing, because its
//! object is missing, names no table.

use std::ptr::null_mut;

use pgrx::pg_sys::{self, NodeTag, Oid};

use crate::host::catalogs;
use crate::host::error;
use crate::host::relation::Open;
use crate::host::server_locks;
use crate::options;
use crate::storage::{pending_rows, published};
use crate::table_am::maintain::vacuum_counts;

/// A copy of a statement that may publish tables, for `after`: the statement itself may be gone then. Null
/// for all others.
///
/// # Safety
/// A statement's node, or null; called under guard.
pub(in crate::table_am) unsafe fn before(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe { if may_publish(node) { pg_sys::copyObjectImpl(node.cast()).cast() } else { null_mut() } }
}

/// Refuses the tables with cold rows that the statement has published.
///
/// # Safety
/// What `before` gave; called under guard after the statement.
pub(in crate::table_am) unsafe fn after(statement: *mut pg_sys::Node) {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::CommandCounterIncrement();
        check_tables(&named_tables(statement), Scope::of(statement));
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
            // The statement may move a table into a published schema.
            NodeTag::T_AlterObjectSchemaStmt => {
                (*node.cast::<pg_sys::AlterObjectSchemaStmt>()).objectType == pg_sys::ObjectType::OBJECT_TABLE
            }
            // The statement may attach a table to a published parent.
            NodeTag::T_AlterTableStmt => !attached(node.cast()).is_empty(),
            _ => false,
        }
    }
}

/// The tables that ALTER TABLE ... ATTACH PARTITION attaches, as it names them.
unsafe fn attached(statement: *mut pg_sys::AlterTableStmt) -> Vec<*mut pg_sys::RangeVar> {
    let mut found = Vec::new();
    // SAFETY: a statement's node; what ATTACH PARTITION defines is a PartitionCmd.
    unsafe {
        each((*statement).cmds, |command: *mut pg_sys::AlterTableCmd| {
            if (*command).subtype == pg_sys::AlterTableType::AT_AttachPartition {
                found.push((*(*command).def.cast::<pg_sys::PartitionCmd>()).name);
            }
        });
    }
    found
}

/// The tables that a statement which was just carried out may have published. Others may be among them.
unsafe fn named_tables(node: *mut pg_sys::Node) -> Vec<Oid> {
    let mut tables = Vec::new();
    // SAFETY: a node that `may_publish` knows; names stand for what the statement has locked.
    unsafe {
        match (*node).type_ {
            NodeTag::T_CreatePublicationStmt => {
                let statement = node.cast::<pg_sys::CreatePublicationStmt>();
                if (*statement).for_all_tables {
                    return all_tables();
                }
                add_objects(&mut tables, (*statement).pubobjects);
            }
            NodeTag::T_AlterPublicationStmt => {
                tables = published_anew(node.cast::<pg_sys::AlterPublicationStmt>());
            }
            NodeTag::T_AlterObjectSchemaStmt => {
                let statement = node.cast::<pg_sys::AlterObjectSchemaStmt>();
                let schema = pg_sys::get_namespace_oid((*statement).newschema, true);
                let moved = pg_sys::get_relname_relid((*(*statement).relation).relname, schema);
                add_changed(&mut tables, moved);
            }
            NodeTag::T_AlterTableStmt => {
                let statement = node.cast::<pg_sys::AlterTableStmt>();
                if find((*statement).relation) != Oid::INVALID {
                    for name in attached(statement) {
                        add_changed(&mut tables, find(name));
                    }
                }
            }
            _ => {}
        }
        tables
    }
}

/// The tables that ALTER PUBLICATION may have published.
unsafe fn published_anew(statement: *mut pg_sys::AlterPublicationStmt) -> Vec<Oid> {
    let mut tables = Vec::new();
    // SAFETY: the statement was carried out, so what it names is locked.
    unsafe {
        if !(*statement).options.is_null() {
            // It may publish INSERT from now on.
            let publication = pg_sys::GetPublicationByName((*statement).pubname, true);
            if publication.is_null() {
                return tables;
            }
            if (*publication).alltables {
                return all_tables();
            }
            let (oid, parts) = ((*publication).oid, pg_sys::PublicationPartOpt::PUBLICATION_PART_ALL);
            add_oids(&mut tables, pg_sys::GetPublicationRelations(oid, parts));
            add_oids(&mut tables, pg_sys::GetAllSchemaPublicationRelations(oid, parts));
        } else if (*statement).action != pg_sys::AlterPublicationAction::AP_DropObjects {
            add_objects(&mut tables, (*statement).pubobjects);
        }
    }
    tables
}

/// Adds the tables that FOR, ADD or SET of a publication lists. The server has locked them.
unsafe fn add_objects(tables: &mut Vec<Oid>, objects: *mut pg_sys::List) {
    // SAFETY: a list of PublicationObjSpec nodes.
    unsafe {
        each(objects, |object: *mut pg_sys::PublicationObjSpec| {
            use pg_sys::PublicationObjSpecType as Kind;
            let schema = match (*object).pubobjtype {
                Kind::PUBLICATIONOBJ_TABLE => {
                    let name = (*(*object).pubtable).relation;
                    let table = find(name);
                    // ONLY leaves out children, but not partitions.
                    if (*name).inh || is_partitioned(table) {
                        add_oids(tables, catalogs::inheritors(table));
                    } else {
                        tables.push(table);
                    }
                    return;
                }
                Kind::PUBLICATIONOBJ_TABLES_IN_SCHEMA => pg_sys::get_namespace_oid((*object).name, true),
                Kind::PUBLICATIONOBJ_TABLES_IN_CUR_SCHEMA => {
                    let path = pg_sys::fetch_search_path(false);
                    if path.is_null() { Oid::INVALID } else { pg_sys::list_nth_oid(path, 0) }
                }
                _ => Oid::INVALID,
            };
            if schema != Oid::INVALID {
                let parts = pg_sys::PublicationPartOpt::PUBLICATION_PART_ALL;
                add_oids(tables, pg_sys::GetSchemaPublicationRelations(schema, parts));
            }
        });
    }
}

/// Adds a table and its partitions if ALTER TABLE has changed it, which shows by the lock that is still held.
unsafe fn add_changed(tables: &mut Vec<Oid>, table: Oid) {
    // SAFETY: catalog look-ups.
    unsafe {
        if table == Oid::INVALID || !server_locks::holds_lock(table, pg_sys::AccessExclusiveLock) {
            return;
        }
        if is_partitioned(table) {
            add_oids(tables, catalogs::inheritors(table));
        } else {
            tables.push(table);
        }
    }
}

unsafe fn find(name: *mut pg_sys::RangeVar) -> Oid {
    // SAFETY: a name in a statement; it takes no lock.
    unsafe {
        let (lock, flags) = (pg_sys::NoLock as i32, pg_sys::RVROption::RVR_MISSING_OK);
        pg_sys::RangeVarGetRelidExtended(name, lock, flags, None, null_mut())
    }
}

unsafe fn is_partitioned(table: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_rel_relkind(table) as u8 == pg_sys::RELKIND_PARTITIONED_TABLE }
}

unsafe fn add_oids(tables: &mut Vec<Oid>, list: *mut pg_sys::List) {
    // SAFETY: an OID list, or null.
    unsafe {
        let count = if list.is_null() { 0 } else { (*list).length };
        tables.extend((0..count).map(|at| pg_sys::list_nth_oid(list, at)));
    }
}

unsafe fn each<T>(list: *mut pg_sys::List, mut what: impl FnMut(*mut T)) {
    // SAFETY: a list of pointers to T, or null.
    unsafe {
        let count = if list.is_null() { 0 } else { (*list).length };
        (0..count).for_each(|at| what(pg_sys::list_nth(list, at).cast()));
    }
}

/// What a statement publishes, for the text of its ERROR.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The statement is about the table, or about one above it.
    Table,
    /// Tables that a publication names.
    Publication,
    Schemas,
    All,
}

impl Scope {
    unsafe fn of(node: *mut pg_sys::Node) -> Self {
        // SAFETY: a node that `may_publish` knows.
        unsafe {
            let (all, objects) = match (*node).type_ {
                NodeTag::T_CreatePublicationStmt => {
                    let statement = node.cast::<pg_sys::CreatePublicationStmt>();
                    ((*statement).for_all_tables, (*statement).pubobjects)
                }
                NodeTag::T_AlterPublicationStmt => {
                    let statement = node.cast::<pg_sys::AlterPublicationStmt>();
                    let publication = pg_sys::GetPublicationByName((*statement).pubname, true);
                    (!publication.is_null() && (*publication).alltables, (*statement).pubobjects)
                }
                _ => return Self::Table,
            };
            let mut has_schema = false;
            each(objects, |object: *mut pg_sys::PublicationObjSpec| {
                has_schema |= (*object).pubobjtype != pg_sys::PublicationObjSpecType::PUBLICATIONOBJ_TABLE;
            });
            match (all, has_schema) {
                (true, _) => Self::All,
                (_, true) => Self::Schemas,
                _ => Self::Publication,
            }
        }
    }

    fn message(self, table: &str) -> String {
        match self {
            Self::Table | Self::Publication => format!("cannot publish table {table}"),
            Self::Schemas => format!("cannot publish the tables of a schema because of table {table}"),
            Self::All => format!("cannot publish all tables because of table {table}"),
        }
    }

    fn hint(self, parent: Option<&str>) -> String {
        let unpack = match parent {
            None => "engine.unpack(table) turns them into heap rows; the table is then not compressed, as long as it is published.".to_string(),
            Some(parent) => format!(
                "SELECT engine.unpack(relid) FROM pg_partition_tree({parent}) WHERE isleaf turns them into heap rows; columnar partitions are then not compressed, as long as they are published."
            ),
        };
        match self {
            Self::Table | Self::Publication => unpack,
            Self::Schemas | Self::All => {
                format!("Publish other tables by name (FOR TABLE) to leave this one as it is. Or {unpack}")
            }
        }
    }
}

/// Raises an ERROR if one of these tables is published and has cold rows.
unsafe fn check_tables(tables: &[Oid], scope: Scope) {
    // SAFETY: catalog look-ups; relations are opened with a lock each.
    unsafe {
        let mut refused = Vec::new();
        for &table in tables {
            if pg_sys::get_rel_relkind(table) as u8 != pg_sys::RELKIND_RELATION {
                continue;
            }
            let rel = pg_sys::try_relation_open(table, pg_sys::AccessShareLock as i32);
            if rel.is_null() {
                continue;
            }
            if options::is_our_relation(Open::of(rel))
                && !Open::of(rel).is_temporary()
                && published::is_published(Open::of(rel))
            {
                // Waits for loads that do not know of the publication yet.
                pg_sys::LockRelationOid(table, pg_sys::ShareLock as i32);
                pending_rows::flush_relation(Open::of(rel));
                if vacuum_counts::cold_row_count(Open::of(rel)) > 0.0 {
                    refused.push((table, Open::of(rel).quoted_name()));
                }
            }
            pg_sys::relation_close(rel, pg_sys::NoLock as i32);
        }
        refuse(&refused, scope);
    }
}

/// Raises the ERROR for the first of these tables, if there is one, and names some others in its detail.
unsafe fn refuse(tables: &[(Oid, String)], scope: Scope) {
    const NAMED: usize = 5;
    let Some(((table, name), others)) = tables.split_first() else { return };
    let mut detail = "Some of its rows are in stripes, which logical decoding does not read.".to_string();
    let named: Vec<&str> = others.iter().take(NAMED).map(|(_, name)| name.as_str()).collect();
    if !named.is_empty() {
        detail += &format!(" So are rows of {}", named.join(", "));
        if others.len() > NAMED {
            detail += &format!(" and of {} more", others.len() - NAMED);
        }
        detail.push('.');
    }
    // SAFETY: catalog look-ups.
    let parent = if scope == Scope::Publication { unsafe { root_of(*table) } } else { None };
    error::raise(
        error::PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        scope.message(name),
        &detail,
        &scope.hint(parent.as_deref()),
    );
}

/// The name, as a literal, of the topmost partitioned table that a partition belongs to.
unsafe fn root_of(table: Oid) -> Option<String> {
    // SAFETY: catalog look-ups; the list is our own.
    unsafe {
        if !pg_sys::get_rel_relispartition(table) {
            return None;
        }
        let ancestors = catalogs::partition_ancestors(table);
        let count = if ancestors.is_null() { 0 } else { (*ancestors).length };
        let root = pg_sys::list_nth_oid(ancestors, count.checked_sub(1)?);
        let (schema, name) = (pg_sys::get_rel_namespace(root), pg_sys::get_rel_name(root));
        let schema = pg_sys::get_namespace_name(schema);
        if name.is_null() || schema.is_null() {
            return None;
        }
        let literal = pg_sys::quote_literal_cstr(pg_sys::quote_qualified_identifier(schema, name));
        Some(std::ffi::CStr::from_ptr(literal).to_string_lossy().into_owned())
    }
}

/// OIDs of this database's tables and materialized views with an access method of ours.
pub unsafe fn all_tables() -> Vec<Oid> {
    // SAFETY: catalog look-ups.
    options::oids().into_iter().flat_map(|method| unsafe { tables_of(method) }).collect()
}

/// OIDs of the tables and materialized views that use an access method.
unsafe fn tables_of(method: Oid) -> Vec<Oid> {
    let mut found = catalogs::relations_of(method);
    found.retain(|&table| {
        // SAFETY: a catalog look-up.
        let kind = unsafe { pg_sys::get_rel_relkind(table) } as u8;
        kind == pg_sys::RELKIND_RELATION || kind == pg_sys::RELKIND_MATVIEW
    });
    found
}
