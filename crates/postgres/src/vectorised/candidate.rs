//! Decides which queries may read columnar tables. Such a query is copied before it is planned if it may be
//! planned again, because planning destroys its input.
//!
//! Called by `planner_hook` for every statement, so it only looks at range tables. Invariant: a query that
//! reads a columnar table is found unless it does so inside a function.

use crate::compat;
use crate::host::tree::{List, Typed};
use pgrx::pg_sys::{self, Query};

use crate::columnstore;
use crate::host::relation::with_table;
use crate::options;
use crate::options::settings::ENABLE_COLUMNSTORE;

/// True where the query, or one inside it, names a columnar table or what may have one as its child.
///
/// # Safety
/// An analysed and rewritten query whose tables are locked.
pub unsafe fn mentions_columnar(query: *mut Query) -> bool {
    // SAFETY: the caller's query; the lists hold what their names say.
    unsafe {
        if query.is_null() || (*query).commandType == pg_sys::CmdType::CMD_UTILITY {
            return false;
        }
        // What sub-links read is deep inside expressions.
        (*query).hasSubLinks
            || entries(query).iter().any(|entry| is_columnar(&entry))
            || List::<Typed<'_, pg_sys::CommonTableExpr>>::new((*query).cteList)
                .iter()
                .any(|cte| mentions_columnar(cte.ctequery.cast()))
    }
}

/// The query's range table.
///
/// # Safety
/// A query that nobody changes for `'a`.
unsafe fn entries<'a>(query: *mut Query) -> List<'a, Typed<'a, pg_sys::RangeTblEntry>> {
    // SAFETY: the caller's query.
    unsafe { List::new((*query).rtable) }
}

/// Whether the query reads one table and nothing else: then planning it again leaves out nothing but workers.
///
/// # Safety
/// As `mentions_columnar`.
pub unsafe fn reads_one_table(query: *mut Query) -> bool {
    // SAFETY: as there.
    unsafe {
        let mut entries = entries(query).iter().filter(|entry| !compat::is_grouping(entry));
        entries.next().is_some_and(|entry| entry.rtekind == pg_sys::RTEKind::RTE_RELATION)
            && entries.next().is_none()
            && !(*query).hasSubLinks
            && (*query).cteList.is_null()
    }
}

/// Whether the query may be planned again: one that `replace` may change, of columnar tables, and, where it
/// `reads_one_table`, one that workers may share.
///
/// # Safety
/// As `mentions_columnar`.
pub unsafe fn may_be_planned_again(query: *mut Query, one_table: bool) -> bool {
    // SAFETY: as there.
    unsafe {
        let reads = match (*query).commandType {
            pg_sys::CmdType::CMD_SELECT => true,
            pg_sys::CmdType::CMD_INSERT => !one_table,
            _ => false,
        };
        reads
            && (*query).rowMarks.is_null()
            && !(*query).hasModifyingCTE
            && (!one_table || pg_sys::max_parallel_workers_per_gather > 0)
            && mentions_columnar(query)
            && (!one_table || !is_small(query))
    }
}

/// Whether the file of the only table of a query is too small for workers, by the server's own rules. Of rows
/// in stripes an index may be larger than that: a plan whose workers share it stays.
///
/// # Safety
/// As `mentions_columnar`; the query `reads_one_table`.
unsafe fn is_small(query: *mut Query) -> bool {
    // SAFETY: the table is locked; its relation is open while its file is measured.
    unsafe {
        let Some(entry) = entries(query).iter().find(|entry| !compat::is_grouping(entry)) else {
            return false;
        };
        if !matches!(entry.relkind as u8, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW) {
            return false;
        }
        with_table(entry.relid, pg_sys::NoLock, |table| {
            // The option parallel_workers, and children, are not looked for.
            let simple = (*table.as_ptr()).rd_options.is_null() && !(*table.form()).relhassubclass;
            let shared_from = pg_sys::min_parallel_table_scan_size.min(pg_sys::min_parallel_index_scan_size);
            simple && i64::from(table.block_count().max(FEWEST_BLOCKS)) < i64::from(shared_from)
        })
    }
}

/// What the server takes the blocks of a smaller table for until it was vacuumed.
const FEWEST_BLOCKS: u32 = 10;

/// Whether an entry of a range table is columnar, or may have columnar children, or reads such.
///
/// # Safety
/// The table is locked, if it is one.
unsafe fn is_columnar(entry: &pg_sys::RangeTblEntry) -> bool {
    // SAFETY: the table is locked by whoever analysed the query.
    unsafe {
        match entry.rtekind {
            pg_sys::RTEKind::RTE_SUBQUERY => mentions_columnar(entry.subquery),
            pg_sys::RTEKind::RTE_RELATION => match entry.relkind as u8 {
                pg_sys::RELKIND_PARTITIONED_TABLE => true,
                pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => {
                    with_table(entry.relid, pg_sys::NoLock, |table| {
                        (options::is_our_relation(table) && !table.has_no_file_here())
                            || (entry.inh && (*table.form()).relhassubclass)
                            || (ENABLE_COLUMNSTORE.get() && columnstore::has_index(table))
                    })
                }
                _ => false,
            },
            _ => false,
        }
    }
}
