//! What the planner may use indexes of our tables for.
//!
//! Called by the planner once it has read what there is to know of a table.
//!
//! BRIN indexes are left out: they summarise the physical pages of hot rows, and know nothing of rows in
//! stripes, which have chunk statistics of their own (see `options::brin`).
//!
//! Only btrees may answer a query without its rows. A btree's scan keeps its page pinned while it hands out
//! that page's entries, so VACUUM cannot take away the heap rows that they lead to and call their page
//! all-visible meanwhile. Scans by GiST and SP-GiST keep none: a hot row that was packed after such a scan
//! has read its entry, and vacuumed, could be returned by its old place and by its new one. So these indexes
//! do not count as able to return values.
//!
//! A btree of many pages and few rows is full of entries of dead rows, or empty. The server takes the rows to
//! lie evenly over its pages, and a look-up of one key to read as many pages as there are to a row; it reads
//! one. A heap that has lost its rows is as long, so that costs little there. Beside stripes it has the
//! planner choose scans for look-ups, those of foreign keys among them. So a btree counts a row a page at the
//! least.

use pgrx::PgList;
use pgrx::pg_sys::{self, IndexOptInfo, Oid, PlannerInfo, RelOptInfo};

use crate::host::hooks::Chain;
use crate::host::raw::guarded;
use crate::host::relation::with_table;
use crate::options;

/// Pages of a btree about which nothing need be said.
const FEW_PAGES: u32 = 4;

static NEXT: Chain<pg_sys::get_relation_info_hook_type> = Chain::new();

/// Puts the hook in front of those already there.
pub unsafe fn install() {
    // SAFETY: called once, from _PG_init.
    unsafe {
        NEXT.put_in_front(&raw mut pg_sys::get_relation_info_hook, Some(relation_info));
    }
}

unsafe extern "C-unwind" fn relation_info(
    root: *mut PlannerInfo,
    table: Oid,
    inhparent: bool,
    rel: *mut RelOptInfo,
) {
    // SAFETY: called by the planner with live nodes; this frame owns nothing.
    unsafe {
        if let Some(next) = NEXT.next() {
            next(root, table, inhparent, rel);
        }
        if !(*rel).indexlist.is_null() {
            guarded(|| restrict(table, rel));
        }
    }
}

unsafe fn restrict(table: Oid, rel: *mut RelOptInfo) {
    // SAFETY: a list of indexes, each with as many flags as columns; the planner holds a lock on the table.
    unsafe {
        let mut found = Vec::new();
        let mut others: *mut pg_sys::List = std::ptr::null_mut();
        let mut is_brin_there = false;
        let mut thin = Vec::new();
        for index in PgList::<IndexOptInfo>::from_pg((*rel).indexlist).iter_ptr() {
            if (*index).relam == pg_sys::BRIN_AM_OID {
                is_brin_there = true;
                continue;
            }
            others = pg_sys::lappend(others, index.cast());
            let columns = usize::try_from((*index).ncolumns).unwrap_or(0);
            if (*index).relam == pg_sys::BTREE_AM_OID {
                if (*index).tuples < f64::from((*index).pages) && (*index).pages > FEW_PAGES {
                    thin.push(index);
                }
            } else if !(*index).canreturn.is_null() {
                found.push(std::slice::from_raw_parts_mut((*index).canreturn, columns));
            }
        }
        if !is_brin_there && thin.is_empty() && !found.iter().any(|columns| columns.contains(&true)) {
            return;
        }
        if with_table(table, pg_sys::NoLock, options::is_colcompress) {
            found.into_iter().for_each(|columns| columns.fill(false));
            thin.into_iter().for_each(|index| (*index).tuples = f64::from((*index).pages));
            (*rel).indexlist = others;
        }
    }
}
