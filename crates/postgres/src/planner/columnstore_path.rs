//! Offers the scan node for a heap table that has a columnstore index.
//!
//! The index must have all columns that the query looks at, or several indexes together. The path competes
//! with the server's own: what the index does not cover is read from the heap, which costs what it costs
//! there. Not offered are:
//! - queries that look at system columns but tableoid, or at whole rows: that leaves changes and row locks,
//!   and rows that may be wanted again by their position, to the heap
//! - a cursor's scan that WHERE CURRENT OF may find, as its rows have to have positions

use std::cell::Cell;
use std::cmp::Reverse;
use std::thread::LocalKey;

use pgrx::pg_sys;

use super::{cost, not_covered, offered, path_hook, ranges, whole_keys};
use crate::columnstore;
use crate::columnstore::estimate;
use crate::host::relation::{Open, has_attribute};
use crate::host::tree::{List, Typed};
use crate::options::settings::{ENABLE_COLUMNSTORE, vectorised_min_rows};

thread_local! {
    /// A cursor's statement is being planned.
    static OF_CURSOR: Cell<bool> = const { Cell::new(false) };
    /// No scan of copies is offered.
    static WITHOUT_COPIES: Cell<bool> = const { Cell::new(false) };
}

/// How a statement is planned, for as long as this lives. An ERROR ends it, too.
pub struct Planning {
    flag: &'static LocalKey<Cell<bool>>,
    before: bool,
}

impl Planning {
    /// With these options of the server's planner, which tell a cursor's statement.
    pub fn with_options(cursor_options: i32) -> Self {
        Self::set(&OF_CURSOR, cursor_options & pg_sys::CURSOR_OPT_FAST_PLAN as i32 != 0)
    }

    /// Without scans of copies.
    pub fn without_copies() -> Self {
        Self::set(&WITHOUT_COPIES, true)
    }

    fn set(flag: &'static LocalKey<Cell<bool>>, value: bool) -> Self {
        Self { flag, before: flag.replace(value) }
    }
}

impl Drop for Planning {
    fn drop(&mut self) {
        self.flag.set(self.before);
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
            || WITHOUT_COPIES.get()
            || (OF_CURSOR.get() && may_be_current(root))
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
        let ours = all.iter().filter(|index| columnstore::is_planned(index));
        let indexes = match covering(ours, attributes) {
            Covering::By(indexes) => indexes,
            Covering::Lacks(columns) => return not_covered::note(table.oid(), columns),
            Covering::TakesTooMany => return,
        };
        whole_keys::note(root, rel);
        let shares = estimate::shares(indexes.iter().map(|index| index.indexoid), table);
        let stored = cost::Stored::of_copies(rel, &shares);
        let estimate = cost::estimate(root, rel, table.as_ptr(), &stored, attributes);
        let path = path_hook::new_path(root, rel);
        for index in &indexes {
            (*path).custom_private = pg_sys::lappend_oid((*path).custom_private, index.indexoid);
        }
        cost::price(path, &estimate, 0);
        let cheapest = path_hook::cheapest_free(rel).map_or(f64::INFINITY, |path| path.total_cost);
        offered::note((*rel).tuples, cheapest.min((*path).path.total_cost));
        pg_sys::add_path(rel, path.cast());
        if List::<Typed<'_, pg_sys::RestrictInfo>>::new((*rel).joininfo)
            .iter()
            .any(|condition| ranges::compares_sizes(condition.clause()))
        {
            offered::note_copies_by_range();
        }
    }
}

/// Whether WHERE CURRENT OF may find a scan of this query in the plan. The server looks below appends, limits
/// and subqueries, not below joins and what groups rows (`search_plan_tree` in execCurrent.c).
///
/// # Safety
/// The planner's own struct, whose base relations are known.
unsafe fn may_be_current(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let query = &*(*root).parse;
        let is_grouped = query.hasAggs || !query.groupClause.is_null() || query.hasWindowFuncs;
        !is_grouped && pg_sys::bms_num_members((*root).all_baserels) <= 1
    }
}

/// Which indexes a query's columns are read from.
enum Covering<'a> {
    /// These together have all of them.
    By(Vec<Typed<'a, pg_sys::IndexOptInfo>>),
    /// No index has these columns, by their numbers.
    Lacks(Vec<i32>),
    /// They are in more indexes than a scan reads side by side.
    TakesTooMany,
}

/// The smallest index that has all of these attributes, or else one after the other the one that has most of
/// those that are missing.
unsafe fn covering<'a>(
    all: impl Iterator<Item = Typed<'a, pg_sys::IndexOptInfo>>,
    attributes: *mut pg_sys::Bitmapset,
) -> Covering<'a> {
    let mut missing = columns_of(attributes);
    let mut left: Vec<_> = all.collect();
    let mut chosen = Vec::new();
    loop {
        // SAFETY: the planner's own structs.
        let has = |index: &Typed<'a, pg_sys::IndexOptInfo>| unsafe {
            missing.iter().filter(|number| columns(index).contains(number)).count()
        };
        let best = (0..left.len())
            .rev()
            .max_by_key(|&at| left.get(at).map(|index| (has(index), Reverse(index.pages))));
        let Some(best) = best.map(|best| left.swap_remove(best)) else { return Covering::Lacks(missing) };
        if !missing.is_empty() && has(&best) == 0 {
            return Covering::Lacks(missing);
        }
        // SAFETY: as above.
        missing.retain(|number| !unsafe { columns(&best) }.contains(number));
        chosen.push(best);
        if missing.is_empty() {
            return Covering::By(chosen);
        }
        if chosen.len() == columnstore::cover::MOST_INDEXES {
            return Covering::TakesTooMany;
        }
    }
}

/// The columns among attributes, by their numbers in the table.
fn columns_of(attributes: *mut pg_sys::Bitmapset) -> Vec<i32> {
    let mut found = Vec::new();
    let mut member = -1;
    loop {
        // SAFETY: a set of the planner's.
        member = unsafe { pg_sys::bms_next_member(attributes, member) };
        if member < 0 {
            return found;
        }
        let number = member + pg_sys::FirstLowInvalidHeapAttributeNumber;
        found.extend((number > 0).then_some(number));
    }
}

/// The columns of an index, by their numbers in the table.
///
/// # Safety
/// The planner's own struct.
unsafe fn columns(index: &pg_sys::IndexOptInfo) -> &[i32] {
    // SAFETY: an index has as many columns as it says.
    unsafe { std::slice::from_raw_parts(index.indexkeys, usize::try_from(index.ncolumns).unwrap_or(0)) }
}
