//! Statements that change foreign tables of ours, and those that drop what they are in.
//!
//! - ADD COLUMN: rows that are in the file have the default, or NULL. The default is evaluated once, now, and
//!   noted (`column_file::missing`). One that gives each row another value is refused.
//! - ALTER COLUMN TYPE, SET EXPRESSION: the file is not written anew, so a type may only become one that its
//!   values have already, and stored expressions stay.
//! - CREATE FOREIGN TABLE without a column: a Parquet file says which it has (`described`).
//! - DROP DATABASE: its files below the data directory go, too.
//!
//! The server carries out the first two without asking the wrapper. So tables are looked at before and after,
//! both times under the lock that the statement takes.

use std::ffi::{CStr, CString};
use std::fs;

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag, Oid, PlannedStmt};

use super::described;
use crate::host::catalogs;
use crate::host::error::{self, PgSqlErrorCode as Code};
use crate::host::hooks::Chain;
use crate::host::relation::{Open, with_table};
use crate::host::unguarded::guarded;
use crate::host::utility_hook::{self, Call, UtilityHook};
use crate::options::foreign;
use crate::storage::column_file::{self, named};
use crate::storage::directory::entries;

static NEXT: Chain<pg_sys::ProcessUtility_hook_type> = Chain::new();

/// Puts the hook in place, keeping those of others.
///
/// # Safety
/// Called once, from `_PG_init`.
pub unsafe fn install() {
    // SAFETY: the caller's promise.
    unsafe { NEXT.put_in_front(&raw mut pg_sys::ProcessUtility_hook, utility_hook::hook::<Hook>()) }
}

/// A column before a statement.
struct ColumnBefore {
    type_oid: Oid,
    modifier: i32,
    /// The expression of a stored generated column, as the server keeps it.
    stored_expression: Option<CString>,
}

/// The columns of a table before a statement.
struct Before {
    table: Oid,
    columns: Vec<ColumnBefore>,
}

/// What has to be done after a statement.
enum After {
    Look(Vec<Before>),
    RemoveFolder(Oid),
}

struct Hook;

impl UtilityHook for Hook {
    /// What is to be done afterwards, or null. After an ERROR it is lost memory.
    type Kept = *mut After;

    unsafe fn before(call: Call) -> (*mut PlannedStmt, *mut After) {
        // SAFETY: the server's own statement.
        guarded(|| unsafe {
            let node = (*call.statement).utilityStmt;
            if (*node).type_ == NodeTag::T_CreateForeignTableStmt {
                let described = described::with_columns(call.statement);
                let run = if described.is_null() { call.statement } else { described };
                return (run, std::ptr::null_mut());
            }
            let noted = match before(node) {
                Some(after) => Box::into_raw(Box::new(after)),
                None => std::ptr::null_mut(),
            };
            (call.statement, noted)
        })
    }

    fn next() -> pg_sys::ProcessUtility_hook_type {
        NEXT.next()
    }

    unsafe fn after(_call: Call, noted: *mut After) {
        if noted.is_null() {
            return;
        }
        // SAFETY: `before` has made it.
        guarded(|| match *unsafe { Box::from_raw(noted) } {
            After::Look(tables) => tables.iter().for_each(altered),
            After::RemoveFolder(database) => {
                let _ = fs::remove_dir_all(foreign::folder_of(database));
            }
        });
    }
}

/// What a statement may do to foreign tables of ours.
unsafe fn before(node: *mut pg_sys::Node) -> Option<After> {
    // SAFETY: casts follow the tag; catalog look-ups.
    unsafe {
        match (*node).type_ {
            NodeTag::T_AlterTableStmt => {
                let alter = node.cast::<pg_sys::AlterTableStmt>();
                // The lock that the server is about to take.
                let lock = pg_sys::AlterTableGetLockLevel((*alter).cmds);
                let kind = (*alter).objtype;
                if lock != pg_sys::AccessExclusiveLock as i32
                    || !matches!(
                        kind,
                        pg_sys::ObjectType::OBJECT_TABLE | pg_sys::ObjectType::OBJECT_FOREIGN_TABLE
                    )
                {
                    return None;
                }
                let table = pg_sys::AlterTableLookupRelation(alter, lock);
                if table == Oid::INVALID {
                    return None;
                }
                let all = PgList::<Oid>::from_pg(catalogs::inheritors(table));
                let is_foreign =
                    |&table: &Oid| pg_sys::get_rel_relkind(table) as u8 == pg_sys::RELKIND_FOREIGN_TABLE;
                let tables: Vec<_> =
                    all.iter_oid().filter(is_foreign).map(|table| look(table, lock)).collect();
                (!tables.is_empty()).then_some(After::Look(tables))
            }
            NodeTag::T_DropdbStmt => {
                let name = (*node.cast::<pg_sys::DropdbStmt>()).dbname;
                let database = pg_sys::get_database_oid(name, true);
                (database != Oid::INVALID).then_some(After::RemoveFolder(database))
            }
            _ => None,
        }
    }
}

fn look(table: Oid, lock: i32) -> Before {
    let columns = with_table(table, lock.cast_unsigned(), |rel| {
        let column = |column: &pg_sys::FormData_pg_attribute| ColumnBefore {
            type_oid: column.atttypid,
            modifier: column.atttypmod,
            stored_expression: stored_expression(rel, column),
        };
        rel.columns().iter().map(column).collect()
    });
    Before { table, columns }
}

/// The expression of a stored generated column, as the server keeps it.
fn stored_expression(rel: Open, column: &pg_sys::FormData_pg_attribute) -> Option<CString> {
    if column.attisdropped || column.attgenerated as u8 != pg_sys::ATTRIBUTE_GENERATED_STORED {
        return None;
    }
    // SAFETY: a column with an expression has an entry among the defaults of the open relation.
    unsafe {
        let constraints = &*(*rel.descriptor()).constr;
        let all = std::slice::from_raw_parts(constraints.defval, usize::from(constraints.num_defval));
        let own = all.iter().find(|default| default.adnum == column.attnum)?;
        Some(CStr::from_ptr(own.adbin).to_owned())
    }
}

/// Looks at a table after it may have been altered.
fn altered(before: &Before) {
    // SAFETY: catalog look-ups; the table may be gone. The statement has left it locked.
    unsafe {
        if pg_sys::get_rel_name(before.table).is_null() {
            return;
        }
        let Some(storage_id) = named::storage_id(before.table) else { return };
        if entries::visible_without_summaries(storage_id, &raw mut pg_sys::SnapshotSelfData).is_empty() {
            return;
        }
        pg_sys::CommandCounterIncrement();
        with_table(before.table, pg_sys::NoLock, |rel| {
            for (at, column) in rel.columns().iter().enumerate().filter(|(_, column)| !column.attisdropped) {
                match before.columns.get(at) {
                    Some(old) => {
                        if !keeps_values(old, column) {
                            refuse_change("type", rel, column);
                        }
                        if old.stored_expression.is_some()
                            && old.stored_expression != stored_expression(rel, column)
                        {
                            refuse_change("expression", rel, column);
                        }
                    }
                    None => {
                        if let Some(value) = missing(rel, column) {
                            column_file::missing::note(before.table, column, value);
                        }
                    }
                }
            }
        });
    }
}

/// Whether values of a column are values of what it has become, as they are stored, and none is too long.
unsafe fn keeps_values(old: &ColumnBefore, new: &pg_sys::FormData_pg_attribute) -> bool {
    let (type_oid, modifier) = (new.atttypid, new.atttypmod);
    if (old.type_oid, old.modifier) == (type_oid, modifier) {
        return true;
    }
    let is_longer = type_oid == pg_sys::VARCHAROID
        && old.type_oid == type_oid
        && modifier >= old.modifier
        && old.modifier >= 0;
    // SAFETY: a catalog look-up.
    (modifier < 0 || is_longer) && unsafe { pg_sys::IsBinaryCoercible(old.type_oid, type_oid) }
}

fn refuse_change(what: &str, rel: Open, column: &pg_sys::FormData_pg_attribute) -> ! {
    // SAFETY: a name of the catalog.
    let name = unsafe { CStr::from_ptr(column.attname.data.as_ptr()) }.to_string_lossy();
    error::not_supported(
        format!("cannot change the {what} of column \"{name}\" of foreign table {}", rel.quoted_name()),
        "The rows in its column file are not written anew.",
        &format!("Create a foreign table with that {what} and INSERT the rows of this one."),
    )
}

/// What older rows have in a column that was added. None: NULL.
unsafe fn missing(rel: Open, column: &pg_sys::FormData_pg_attribute) -> Option<pg_sys::Datum> {
    // SAFETY: catalog look-ups and an expression of the server's.
    unsafe {
        let name = CStr::from_ptr(column.attname.data.as_ptr()).to_string_lossy();
        let refuse = |code: Code, what: &str| -> ! {
            error::raise(
                code,
                format!("cannot add column \"{name}\" to foreign table {}", rel.quoted_name()),
                &format!("The rows in its column file are not written anew, and {what}."),
                "Create a foreign table with that column and INSERT the rows of this one.",
            )
        };
        let not_supported = Code::ERRCODE_FEATURE_NOT_SUPPORTED;
        if column.attgenerated as u8 == pg_sys::ATTRIBUTE_GENERATED_STORED {
            refuse(not_supported, "each would have a value of its own");
        }
        if column.attgenerated != 0 {
            return None;
        }
        let default = pg_sys::build_column_default(rel.as_ptr(), column.attnum.into());
        let mut value = (pg_sys::Datum::null(), true);
        if !default.is_null() {
            if column.attidentity != 0 || pg_sys::contain_volatile_functions(default) {
                refuse(not_supported, "the default is volatile");
            }
            let planned = pg_sys::expression_planner(default.cast());
            let found =
                pg_sys::evaluate_expr(planned, column.atttypid, column.atttypmod, column.attcollation)
                    .cast::<pg_sys::Const>();
            value = ((*found).constvalue, (*found).constisnull);
        }
        if value.1 {
            if column.attnotnull {
                refuse(Code::ERRCODE_NOT_NULL_VIOLATION, "they would have NULL in a column that is NOT NULL");
            }
            if pg_sys::DomainHasConstraints(column.atttypid) {
                // Raises the ERROR of a domain that takes no NULL.
                pg_sys::domain_check(
                    value.0,
                    true,
                    column.atttypid,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                );
            }
            return None;
        }
        Some(value.0)
    }
}
