//! Checks and look-ups for functions that maintain one table (merge, unpack, verify), before they begin.

use pgrx::PgList;
use pgrx::pg_sys::{self, FunctionCallInfo, Oid, Relation};

use crate::compat;
use crate::host::catalogs;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::fmgr;
use crate::host::relation::Open;
use crate::options;

/// The first argument, a table. Raises an ERROR for NULL.
///
/// # Safety
/// The server's call frame.
pub unsafe fn table_argument(call: FunctionCallInfo) -> Oid {
    // SAFETY: the server's call frame.
    match unsafe { fmgr::argument(call, 0) } {
        Some(table) => Oid::from(table.value() as u32),
        None => error::raise(
            PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "table_name must not be NULL",
            "",
            "",
        ),
    }
}

/// The tables that a function works on if it is called for `table`: the table itself, or the columnar
/// partitions of a partitioned table in the server's order. Raises an ERROR if there is none.
pub fn columnar_tables(table: Oid) -> Vec<Oid> {
    tables_that(table, options::is_columnar)
}

/// As `columnar_tables`, with the partitions that this holds for.
pub fn tables_that(table: Oid, holds: impl Fn(Oid) -> bool) -> Vec<Oid> {
    // SAFETY: catalog look-ups. The right is asked for again of each partition.
    unsafe {
        if pg_sys::get_rel_relkind(table) as u8 != pg_sys::RELKIND_PARTITIONED_TABLE {
            return vec![table];
        }
        check_maintainer(table);
        let all = PgList::<Oid>::from_pg(catalogs::inheritors(table));
        let found: Vec<Oid> = all.iter_oid().filter(|&table| holds(table)).collect();
        if found.is_empty() {
            raise_no_partitions(table, "columnar", "colcompress");
        }
        found
    }
}

/// Raises the ERROR that a partitioned table has no partition of a kind, which `method` makes.
pub fn raise_no_partitions(table: Oid, kind: &str, method: &str) -> ! {
    // SAFETY: the table exists, as it was looked at before; the ERROR gives the lock back.
    let rel = unsafe { Open::of(pg_sys::relation_open(table, pg_sys::AccessShareLock as i32)) };
    error::raise(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        format!("partitioned table {} has no {kind} partitions", rel.quoted_name()),
        "",
        &format!(
            "CREATE TABLE ... PARTITION OF ... USING {method} makes one, ALTER TABLE ... SET ACCESS METHOD {method} turns a partition into one."
        ),
    )
}

/// Opens a colcompress table that the user may maintain, with a lock that is kept to the end of the
/// transaction. `verb` says for what.
pub fn open_maintained(table: Oid, lock: u32, verb: &str) -> Relation {
    // SAFETY: every check may raise an ERROR. The right comes before the lock: a stranger must not be able to
    // stop others.
    unsafe {
        check_maintainer(table);
        let rel = pg_sys::table_open(table, lock as i32);
        expect_ours(Open::of(rel), verb);
        rel
    }
}

/// Raises an ERROR unless `rel` is a colcompress table whose pages can be read here.
pub fn expect_ours(rel: Open, verb: &str) {
    if rel.kind() == pg_sys::RELKIND_PARTITIONED_TABLE {
        let name = rel.quoted_name();
        let literal = name.trim_matches('"');
        error::raise(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("cannot {verb} partitioned table {name} as one"),
            "Its rows are in its partitions.",
            &format!(
                "Ask for each: SELECT * FROM engine.storage_health \
                 WHERE table_name IN (SELECT relid FROM pg_partition_tree('{literal}'))."
            ),
        );
    }
    if !options::is_our_relation(rel) {
        error::not_ours(&rel.quoted_name(), "colcompress");
    }
    if rel.is_foreign_temporary() {
        error::not_supported(format!("cannot {verb} temporary tables of other sessions"), "", "");
    }
}

/// Raises an ERROR unless the user may maintain the table.
pub fn check_maintainer(table: Oid) {
    // SAFETY: catalog look-ups; the name is null for an OID that is no relation.
    unsafe {
        let name = pg_sys::get_rel_name(table);
        if !name.is_null() && !compat::may_maintain(table, pg_sys::GetUserId()) {
            let kind = pg_sys::get_relkind_objtype(pg_sys::get_rel_relkind(table));
            pg_sys::aclcheck_error(pg_sys::AclResult::ACLCHECK_NOT_OWNER, kind, name);
        }
    }
}
