//! The NOTICE of a statement that sets `orderby` on a table with rows: how many rows are not in that order,
//! and what sorts them.
//!
//! Called by `options::alter` when the statement is done. It looks into the directory. For stripes that do
//! not say what they are sorted by, it looks into their statistics.

use crate::host::relation::with_table;
use crate::options::catalog::{quoted_table_name, table_name};
use crate::options::report::Refusal;
use crate::storage::directory::entries;
use crate::storage::file::metapage;
use crate::table_am::packing;
use pgrx::PgLogLevel;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Oid};

/// Tells of the stripes of `table` that are not sorted by its option `orderby`. The caller holds a lock on
/// the table.
pub unsafe fn tell(table: Oid) {
    let ((can_pack, is_packed), rows, count, of) = with_table(table, pg_sys::NoLock, |rel| {
        let storage_id = if rel.has_no_file_here() { None } else { metapage::storage_id(rel) };
        let stripes = storage_id.map_or_else(Vec::new, entries::present);
        let keys = crate::options::table_options(rel).orderby;
        let unsorted = packing::unsorted(rel, stripes.iter().map(|(entry, _)| entry), &keys);
        let rows: u64 = unsorted.iter().map(|entry| u64::from(entry.row_count)).sum();
        (packing::sees_to(rel), rows, unsorted.len(), stripes.len())
    });
    if count == 0 {
        return;
    }
    // This is a hint. So it may come before the statement commits, and it does no harm if the statement is
    // rolled back.
    packing::look_soon(table);
    let name = quoted_table_name(table).replace('\'', "''");
    let at_once = format!("CALL engine.colcompress_repack('{name}')");
    let hint = match (can_pack, is_packed) {
        (true, true) => format!(
            "Packing in the background sorts them stripe by stripe. {at_once} does so at once, beside readers and writers."
        ),
        (true, false) => format!("{at_once} sorts them stripe by stripe, beside readers and writers."),
        (false, _) => {
            format!(
                "SELECT engine.colcompress_merge('{name}') sorts the table, under a lock that keeps others out."
            )
        }
    };
    Refusal::new(
        Code::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("{rows} rows of table \"{}\" are not known to be in the order of orderby", table_name(table)),
    )
    .detail(format!("They are in {count} of its {of} stripes, which were written before."))
    .hint(hint)
    .send(PgLogLevel::NOTICE);
}
