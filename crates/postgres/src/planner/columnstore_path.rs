//! Offers the scan node for a heap table that has a columnstore index.
//!
//! The index must have all columns that the query looks at. The path competes with the server's own: what the
//! index does not cover is read from the heap, which costs what it costs there. Not offered are:
//! - queries that look at system columns but tableoid, or at whole rows: that leaves changes and row locks,
//!   and rows that may be wanted again by their position, to the heap
//! - statements of cursors, whose rows have to have positions for WHERE CURRENT OF

use std::cell::Cell;

use pgrx::pg_sys;

use super::{cost, offered, path_hook};
use crate::columnstore;
use crate::host::relation::{Open, has_attribute, with_index};
use crate::host::tree::{List, Typed};
use crate::options::settings::{ENABLE_COLUMNSTORE, vectorised_min_rows};

thread_local! {
    /// A cursor's statement is being planned.
    static OF_CURSOR: Cell<bool> = const { Cell::new(false) };
}

/// Notes whether a cursor's statement is planned, for as long as it lives.
pub struct Planning(bool);

impl Planning {
    /// Begins to plan with these options of the server's planner.
    pub fn begin(cursor_options: i32) -> Self {
        Self(OF_CURSOR.replace(cursor_options & pg_sys::CURSOR_OPT_FAST_PLAN as i32 != 0))
    }
}

impl Drop for Planning {
    fn drop(&mut self) {
        OF_CURSOR.set(self.0);
    }
}

/// Offers a scan of a heap table, if it has such an index.
///
/// # Safety
/// The planner's own structs, of a base relation that is open.
pub unsafe fn offer(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo, table: Open) {
    // SAFETY: the planner's own structs; indexes that it knows are locked.
    unsafe {
        let all = List::<Typed<'_, pg_sys::IndexOptInfo>>::new((*rel).indexlist);
        if !ENABLE_COLUMNSTORE.get()
            || OF_CURSOR.get()
            || !all.iter().any(|index| columnstore::is_planned(&index))
            || path_hook::rows_of_all(root) < vectorised_min_rows()
        {
            return;
        }
        let attributes = path_hook::attributes(rel);
        let reads_whole_or_system = (pg_sys::FirstLowInvalidHeapAttributeNumber + 1..=0)
            .any(|number| number != pg_sys::TableOidAttributeNumber && has_attribute(attributes, number));
        if reads_whole_or_system || path_hook::finds_one_row(root, rel) || path_hook::finds_few_rows(rel) {
            return;
        }
        let covering = all.iter().filter(|index| columnstore::is_planned(index) && covers(index, attributes));
        let Some(index) = covering.min_by_key(|index| index.pages) else { return };
        let (pages, covered) = with_index(index.indexoid, pg_sys::NoLock, columnstore::pages_and_blocks);
        // pg_class knows how many there were at the last VACUUM.
        let mut visible = 0;
        pg_sys::visibilitymap_count(table.as_ptr(), &raw mut visible, std::ptr::null_mut());
        let copied = (covered as f64).min(f64::from(visible));
        let share = (copied / f64::from((*rel).pages).max(1.0)).clamp(0.0, 1.0);
        let stored = cost::Stored::of_copies(rel, share, f64::from(pages));
        let estimate = cost::estimate(root, rel, table.as_ptr(), &stored, attributes);
        let path = path_hook::new_path(root, rel);
        (*path).custom_private = pg_sys::lappend_oid(std::ptr::null_mut(), index.indexoid);
        cost::price(path, &estimate, 0);
        let cheapest = path_hook::cheapest_free(rel).map_or(f64::INFINITY, |path| path.total_cost);
        offered::note((*rel).tuples, cheapest.min((*path).path.total_cost));
        pg_sys::add_path(rel, path.cast());
    }
}

/// Whether an index has all of these attributes.
unsafe fn covers(index: &pg_sys::IndexOptInfo, attributes: *mut pg_sys::Bitmapset) -> bool {
    // SAFETY: an index has as many columns as it says.
    unsafe {
        let count = usize::try_from(index.ncolumns).unwrap_or(0);
        let own = std::slice::from_raw_parts(index.indexkeys, count);
        let mut member = pg_sys::bms_next_member(attributes, -1);
        while member >= 0 {
            let number = member + pg_sys::FirstLowInvalidHeapAttributeNumber;
            if number > 0 && !own.contains(&number) {
                return false;
            }
            member = pg_sys::bms_next_member(attributes, member);
        }
        true
    }
}
