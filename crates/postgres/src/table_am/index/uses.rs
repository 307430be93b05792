//! What the planner may use indexes of our tables for.
//!
//! Called by the planner once it has read what there is to know of a table.
//!
//! BRIN indexes are left out. They summarise the physical pages of hot rows, and have nothing about rows in
//! stripes. These have chunk statistics instead (see `options::brin`).
//!
//! Only btrees may answer a query without its rows. A btree's scan keeps its page pinned while it hands out
//! the page's entries. So VACUUM cannot take away the heap rows that they lead to and call the heap page
//! all-visible meanwhile. Scans by GiST and SP-GiST keep no page pinned. If a hot row is packed and vacuumed
//! after such a scan has read its entry, the scan could return it by its old place and by its new one. So
//! these indexes count as unable to return values.
//!
//! A btree of many pages and few rows is full of entries of dead rows, or empty. The server assumes that rows
//! are spread evenly over its pages. So it expects a look-up of one key to read as many pages as there are
//! for one row, but the look-up reads only one. For a heap table this hardly matters: a heap that has lost
//! its rows is as long. Beside stripes it makes the planner choose scans for look-ups, also for those of
//! foreign keys. So a btree counts as having at least one row a page.

use pgrx::PgList;
use pgrx::pg_sys::{self, IndexOptInfo, Oid, PlannerInfo, RelOptInfo};

use crate::host::hooks::Chain;
use crate::host::relation::with_table;
use crate::host::unguarded::guarded;
use crate::options;

/// A btree with at most this many pages stays as it is.
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
        if with_table(table, pg_sys::NoLock, options::is_our_relation) {
            found.into_iter().for_each(|columns| columns.fill(false));
            thin.into_iter().for_each(|index| (*index).tuples = f64::from((*index).pages));
            (*rel).indexlist = others;
        }
    }
}
