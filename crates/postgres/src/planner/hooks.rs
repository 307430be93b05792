//! The path hook: offers the scan node for each base relation, partition or inheritance child whose rows we
//! store.
//!
//! Called by the server's planner at the end of building a relation's paths. The node stands in for the
//! sequential scan, serial or parallel, which is taken off the list; index and TID paths stay and compete by
//! cost. Declined: TABLESAMPLE, relations of other access methods, queries that look at xmin, cmin, xmax or
//! cmax, which cold rows do not have, one row by a unique index, few by any, and small tables whose rows are
//! all hot.

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag};

use super::{cost, index_paths, offered, plan};
use crate::host::carried;
use crate::host::hooks::Chain;
use crate::host::relation::Open;
use crate::options;
use crate::options::settings::{ENABLE_SCAN, vectorised_min_rows};
use crate::storage::directory::outline;

/// The server's FirstLowInvalidHeapAttributeNumber: attribute sets are shifted by it.
const ATTRIBUTE_SHIFT: i32 = 7;

/// What a columnar scan takes at the least, in units of seq_page_cost (about a microsecond): finding out what
/// it costs, translating the plan above it, opening a stripe and decoding a chunk.
const LEAST_SCAN: f64 = 24.0;
static PREVIOUS: Chain<pg_sys::set_rel_pathlist_hook_type> = Chain::new();

/// Puts our hook in front of whoever was there.
///
/// # Safety
/// Runs once, on the main thread, while the library is loaded.
pub unsafe fn install() {
    // SAFETY: hooks are plain globals; nothing else runs yet.
    unsafe {
        PREVIOUS.put_in_front(&raw mut pg_sys::set_rel_pathlist_hook, Some(set_rel_pathlist));
    }
}

unsafe extern "C-unwind" fn set_rel_pathlist(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rti: pg_sys::Index,
    rte: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner's own structs, passed on as they came.
    unsafe {
        carried::guarded(|| {
            if let Some(previous) = PREVIOUS.next() {
                // The previous hook is C code that may raise an ERROR.
                pg_sys::ffi::pg_guard_ffi_boundary(|| previous(root, rel, rti, rte));
            }
            if ENABLE_SCAN.get() && is_candidate(rel, rte) {
                offer(root, rel, rte);
            }
        })
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
        // The planner holds a lock already.
        let relation = pg_sys::table_open((*rte).relid, pg_sys::NoLock as i32);
        if options::is_colcompress(Open::of(relation)) {
            offer_columnar(root, rel, relation);
        }
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
    }
}

unsafe fn offer_columnar(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    relation: pg_sys::Relation,
) {
    // SAFETY: as above.
    unsafe {
        let outline = outline::of(Open::of(relation));
        let cold = outline.as_ref().map_or(0.0, |outline| outline.rows);
        if cold == 0.0 && rows_of_all(root) < vectorised_min_rows() {
            // Few rows, all of them heap's: heap's own scan begins sooner.
            return;
        }
        if cold > 0.0 {
            ask_for_wanted_columns(rel);
        }
        if finds_one_row(root, rel) {
            return;
        }
        let attributes = attributes(rel);
        // xmin, cmin, xmax, cmax; ctid and tableoid we have.
        if (pg_sys::MaxCommandIdAttributeNumber..=pg_sys::MinTransactionIdAttributeNumber)
            .any(|attno| pg_sys::bms_is_member(attno + ATTRIBUTE_SHIFT, attributes))
        {
            return;
        }
        let outlined = outline.as_ref().filter(|_| !options::allows_index_scans(Open::of(relation)));
        let price_index_paths = |rel| {
            if let Some(outline) = outlined {
                index_paths::price(rel, outline, f64::from(pg_sys::bms_num_members(attributes)));
            }
        };
        price_index_paths(rel);
        if finds_few_rows(rel) {
            return;
        }
        let estimate = cost::estimate(root, rel, relation, outline.as_deref(), attributes);
        let workers = drop_sequential_scan(&mut (*rel).partial_pathlist).map(|scan| scan.workers);
        let dropped = drop_sequential_scan(&mut (*rel).pathlist);
        let path = new_path(root, rel);
        cost::price(path, &estimate, 0);
        // Index paths that the server's scan was cheaper than are gone, and we may be dearer: it knows
        // nothing of the dead rows in stripes.
        if cold > 0.0
            && !(*rel).indexlist.is_null()
            && dropped.is_some_and(|scan| scan.cost < (*path).path.total_cost)
        {
            index_paths::make_anew(root, rel);
            price_index_paths(rel);
        }
        let paths = PgList::<pg_sys::Path>::from_pg((*rel).pathlist);
        let free = paths.iter_ptr().filter(|&path| (*path).param_info.is_null());
        let cheapest = free.map(|path| (*path).total_cost).fold((*path).path.total_cost, f64::min);
        offered::note((*rel).tuples, cheapest);
        pg_sys::add_path(rel, path.cast());
        if let Some(workers) = workers.filter(|&workers| workers > 0) {
            let path = new_path(root, rel);
            (*path).path.parallel_aware = true;
            (*path).path.parallel_workers = workers;
            cost::price(path, &estimate, workers);
            pg_sys::add_partial_path(rel, path.cast());
        }
    }
}

/// Keeps the planner from letting index and bitmap scans hand on all columns of the table, which saves heap a
/// projection and would cost a cold row the decoding of columns that nobody reads. It does so unless a system
/// column is wanted: so one is.
unsafe fn ask_for_wanted_columns(rel: *mut pg_sys::RelOptInfo) {
    // SAFETY: a base relation has a set for each attribute from min_attr on; paths and target lists are not
    // made by it.
    unsafe {
        let at = pg_sys::TableOidAttributeNumber - i32::from((*rel).min_attr);
        if let Ok(at) = usize::try_from(at)
            && !(*rel).attr_needed.is_null()
        {
            let needed = (*rel).attr_needed.add(at);
            if (*needed).is_null() {
                *needed = pg_sys::bms_make_singleton(0);
            }
        }
    }
}

/// Rows of all tables of the query, as far as their sizes are known.
unsafe fn rows_of_all(root: *mut pg_sys::PlannerInfo) -> f64 {
    // SAFETY: sizes are estimated before paths are made; the array has places for as many relations as it
    // says, some of them empty.
    unsafe {
        let count = usize::try_from((*root).simple_rel_array_size).unwrap_or(0);
        let rels = (0..count).map(|at| *(*root).simple_rel_array.add(at));
        rels.filter(|rel| !rel.is_null()).map(|rel| (*rel).tuples.max(0.0)).sum()
    }
}

/// Whether the best path the server has looks up one row by a unique index: what a scan of ours would cost
/// need not be known.
unsafe fn finds_one_row(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: as above. Paths are in order of their costs.
    unsafe {
        let Some(cheapest) = PgList::<pg_sys::Path>::from_pg((*rel).pathlist).get_ptr(0) else {
            return false;
        };
        (*cheapest).type_ == NodeTag::T_IndexPath
            && (*cheapest).param_info.is_null()
            && (*(*cheapest.cast::<pg_sys::IndexPath>()).indexinfo).unique
            && (*cheapest).total_cost < pg_sys::disable_cost
            && pg_sys::relation_has_unique_index_for(
                root,
                rel,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
    }
}

/// Whether the best path is an index or bitmap scan of so few rows that no scan of a column chunk is cheaper.
unsafe fn finds_few_rows(rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        let cheapest = PgList::<pg_sys::Path>::from_pg((*rel).pathlist).get_ptr(0);
        cheapest.is_some_and(|path| {
            matches!((*path).type_, NodeTag::T_IndexPath | NodeTag::T_BitmapHeapPath)
                && (*path).param_info.is_null()
                && (*path).total_cost < LEAST_SCAN
        })
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

/// The server's sequential scan, which ours takes the place of.
struct Dropped {
    workers: i32,
    cost: f64,
}

/// Takes the sequential scan off a list of paths, because our node reads the same rows. Returns the workers
/// it wanted.
unsafe fn drop_sequential_scan(paths: &mut *mut pg_sys::List) -> Option<Dropped> {
    let mut dropped = None;
    // SAFETY: the list holds paths; deleting the cell keeps the list valid.
    unsafe {
        let mut at = 0;
        while !paths.is_null() && at < (**paths).length {
            let path = pg_sys::list_nth(*paths, at).cast::<pg_sys::Path>();
            if (*path).pathtype == NodeTag::T_SeqScan {
                dropped = Some(Dropped { workers: (*path).parallel_workers, cost: (*path).total_cost });
                *paths = pg_sys::list_delete_nth_cell(*paths, at);
            } else {
                at += 1;
            }
        }
    }
    dropped
}
