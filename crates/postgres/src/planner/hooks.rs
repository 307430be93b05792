//! The path hook: offers the scan node for each base relation, partition or inheritance child whose rows we store.
//!
//! Called by the server's planner at the end of building a relation's paths. The node stands in for the sequential scan, serial
//! or parallel, which is taken off the list; index and TID paths stay and compete by cost. Declined: TABLESAMPLE, relations of other access methods, and
//! queries that look at xmin, cmin, xmax or cmax, which cold rows do not have.

use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, NodeTag};

use super::{cost, index_paths, plan};
use crate::host::guc::ENABLE_SCAN;
use crate::host::relation;
use crate::options;

/// The server's FirstLowInvalidHeapAttributeNumber: attribute sets are shifted by it.
const ATTRIBUTE_SHIFT: i32 = 7;

static PREVIOUS: OnceLock<pg_sys::set_rel_pathlist_hook_type> = OnceLock::new();

/// Puts our hook in front of whoever was there.
///
/// # Safety
/// Runs once, on the main thread, while the library is loaded.
pub unsafe fn install() {
    // SAFETY: hooks are plain globals; nothing else runs yet.
    unsafe {
        if PREVIOUS.set(pg_sys::set_rel_pathlist_hook).is_ok() {
            pg_sys::set_rel_pathlist_hook = Some(set_rel_pathlist);
        }
        crate::executor::register();
        crate::vectorised::node::register();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn set_rel_pathlist(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rti: pg_sys::Index,
    rte: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner's own structs, passed on as they came.
    unsafe {
        if let Some(Some(previous)) = PREVIOUS.get() {
            // The previous hook is C code that may raise an ERROR.
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous(root, rel, rti, rte));
        }
        if ENABLE_SCAN.get() && is_candidate(rel, rte) {
            offer(root, rel, rte);
        }
    }
}

unsafe fn is_candidate(rel: *mut pg_sys::RelOptInfo, rte: *mut pg_sys::RangeTblEntry) -> bool {
    use pg_sys::RelOptKind as K;
    // SAFETY: the planner passes valid structs.
    unsafe {
        let plain = matches!((*rel).reloptkind, K::RELOPT_BASEREL | K::RELOPT_OTHER_MEMBER_REL)
            && (*rte).rtekind == pg_sys::RTEKind::RTE_RELATION
            && !(*rte).inh
            && (*rte).tablesample.is_null();
        let relkind = (*rte).relkind as u8;
        plain
            && (relkind == pg_sys::RELKIND_RELATION || relkind == pg_sys::RELKIND_MATVIEW)
            && !pg_sys::is_dummy_rel(rel)
    }
}

/// Attributes of the relation that the query looks at, as the server's shifted set.
unsafe fn attributes(rel: *mut pg_sys::RelOptInfo) -> *mut pg_sys::Bitmapset {
    let mut set: *mut pg_sys::Bitmapset = std::ptr::null_mut();
    // SAFETY: both lists belong to the relation; pull_varattnos copies the set as it grows.
    unsafe {
        pg_sys::pull_varattnos((*(*rel).reltarget).exprs.cast(), (*rel).relid, &raw mut set);
        let clauses = pg_sys::extract_actual_clauses((*rel).baserestrictinfo, false);
        pg_sys::pull_varattnos(clauses.cast(), (*rel).relid, &raw mut set);
    }
    set
}

unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rte: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: as above; the relation stays open while it is looked at.
    unsafe {
        let attributes = attributes(rel);
        // xmin, cmin, xmax, cmax; ctid and tableoid we have.
        if (pg_sys::MaxCommandIdAttributeNumber..=pg_sys::MinTransactionIdAttributeNumber)
            .any(|attno| pg_sys::bms_is_member(attno + ATTRIBUTE_SHIFT, attributes))
        {
            return;
        }
        // The planner holds a lock already.
        let relation = pg_sys::table_open((*rte).relid, pg_sys::NoLock as i32);
        if relation::is_colcompress(relation) {
            if !options::allows_index_scans(relation) {
                index_paths::price(rel, relation);
            }
            let estimate = cost::estimate(root, rel, relation, attributes);
            let workers = drop_sequential_scan(&mut (*rel).partial_pathlist);
            drop_sequential_scan(&mut (*rel).pathlist);
            crate::vectorised::hook::note_columnar_scan((*rel).tuples);
            let path = new_path(root, rel);
            cost::price(path, &estimate, 0);
            pg_sys::add_path(rel, path.cast());
            if let Some(workers) = workers.filter(|&workers| workers > 0) {
                let path = new_path(root, rel);
                (*path).path.parallel_aware = true;
                (*path).path.parallel_workers = workers;
                cost::price(path, &estimate, workers);
                pg_sys::add_partial_path(rel, path.cast());
            }
        }
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
    }
}

unsafe fn new_path(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> *mut pg_sys::CustomPath {
    // SAFETY: a zeroed node is a valid start; every field the planner reads is set below.
    unsafe {
        let path = pg_sys::palloc0(size_of::<pg_sys::CustomPath>()).cast::<pg_sys::CustomPath>();
        (*path).path.type_ = NodeTag::T_CustomPath;
        (*path).path.pathtype = NodeTag::T_CustomScan;
        (*path).path.parent = rel;
        (*path).path.pathtarget = (*rel).reltarget;
        // Only what LATERAL forces on us, as for a sequential scan.
        (*path).path.param_info = pg_sys::get_baserel_parampathinfo(root, rel, (*rel).lateral_relids);
        (*path).path.parallel_safe = (*rel).consider_parallel;
        (*path).path.rows = match (*path).path.param_info.is_null() {
            true => (*rel).rows,
            false => (*(*path).path.param_info).ppi_rows,
        };
        (*path).flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION | pg_sys::CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
        (*path).methods = plan::path_methods();
        path
    }
}

/// Takes the sequential scan off a list of paths, because our node reads the same rows. Returns the workers it wanted.
unsafe fn drop_sequential_scan(paths: &mut *mut pg_sys::List) -> Option<i32> {
    let mut workers = None;
    // SAFETY: the list holds paths; deleting the cell keeps the list valid.
    unsafe {
        let mut at = 0;
        while !paths.is_null() && at < (**paths).length {
            let path = pg_sys::list_nth(*paths, at).cast::<pg_sys::Path>();
            if (*path).pathtype == NodeTag::T_SeqScan {
                workers = Some((*path).parallel_workers);
                *paths = pg_sys::list_delete_nth_cell(*paths, at);
            } else {
                at += 1;
            }
        }
    }
    workers
}
