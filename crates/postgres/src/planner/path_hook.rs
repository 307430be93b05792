//! The path hook: offers the scan node for each base relation, partition or inheritance child that is a table
//! of ours or a foreign table over a column file.
//!
//! Such a foreign table has no other path, so its node is offered with `enable_scan` off as well.
//!
//! The server's planner calls it after it has built a relation's paths. The node replaces the sequential
//! scan, serial or parallel, which is taken off the list. Index and TID paths stay and compete by cost.
//!
//! The node is not offered in these cases:
//! - TABLESAMPLE, and relations of other access methods
//! - WHERE CURRENT OF, which a TID scan alone understands
//! - queries that look at xmin, cmin, xmax or cmax, which cold rows do not have
//! - a unique index finds one row, or any index finds few rows
//! - small tables whose rows are all hot
//!
//! A heap table with a columnstore index that has all wanted columns is offered a node that reads the index
//! (`columnstore_path`). There the sequential scan stays on the list.

use crate::compat;
use crate::host::tree::{List, Typed};
use pgrx::pg_sys::{self, NodeTag};

use super::{columnstore_path, cost, index_paths, offered, plan, whole_keys};
use crate::fdw;
use crate::host::full_errors;
use crate::host::hooks::Chain;
use crate::host::relation::{Open, has_attribute, with_table};
use crate::options;
use crate::options::foreign::{self, Wrapper};
use crate::options::settings::{ENABLE_SCAN, vectorised_min_rows};
use crate::storage::directory::outline;

/// The least cost of a columnar scan, in units of seq_page_cost (about a microsecond): estimating it,
/// translating the plan above it, opening a stripe and decoding a chunk.
const LEAST_SCAN: f64 = 24.0;
static PREVIOUS: Chain<pg_sys::set_rel_pathlist_hook_type> = Chain::new();

/// Puts our hook in front of those already there.
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
        full_errors::guarded(|| {
            if let Some(previous) = PREVIOUS.next() {
                // The previous hook is C code that may raise an ERROR.
                pg_sys::ffi::pg_guard_ffi_boundary(|| previous(root, rel, rti, rte));
            }
            if let Some(wrapper) = wrapper_of(rel, rte) {
                offer_file(root, rel, (*rte).relid, wrapper);
            } else if ENABLE_SCAN.get() && is_candidate(rel, rte) {
                offer(root, rel, rte);
            }
        })
    }
}

/// The wrapper of ours that a relation is a foreign table of: then only our node can read it.
///
/// # Safety
/// The planner's own structs.
unsafe fn wrapper_of(rel: *mut pg_sys::RelOptInfo, rte: *mut pg_sys::RangeTblEntry) -> Option<Wrapper> {
    // SAFETY: the planner's own structs; a foreign table has its wrapper's routine.
    unsafe {
        let is_read = (*rte).rtekind == pg_sys::RTEKind::RTE_RELATION
            && !(*rte).inh
            && (*rte).relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE
            && !pg_sys::is_dummy_rel(rel);
        if is_read { foreign::wrapper_by((*rel).fdwroutine) } else { None }
    }
}

/// Offers the scan of a file.
///
/// # Safety
/// The planner's own structs, of a base relation.
unsafe fn offer_file(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    table: pg_sys::Oid,
    wrapper: Wrapper,
) {
    // SAFETY: the planner holds a lock already; the relation stays open while it is looked at.
    unsafe {
        let outline = (wrapper == Wrapper::ColumnFile).then(|| fdw::outline(table)).flatten();
        whole_keys::note(root, rel);
        let estimate = with_table(table, pg_sys::NoLock, |table| {
            let stored = match outline.as_deref() {
                None => cost::Stored::of_groups(rel),
                outline => cost::Stored::of_table(rel, table, outline),
            };
            cost::estimate(root, rel, table.as_ptr(), &stored, attributes(rel))
        });
        let path = new_path(root, rel);
        cost::price(path, &estimate, 0);
        offered::note((*rel).tuples, (*path).path.total_cost);
        pg_sys::add_path(rel, path.cast());
    }
}

/// Whether a relation is a plain table, and none that has children or is sampled.
///
/// # Safety
/// The planner's own structs.
unsafe fn is_candidate(rel: *mut pg_sys::RelOptInfo, rte: *mut pg_sys::RangeTblEntry) -> bool {
    use pg_sys::RelOptKind as K;
    // SAFETY: the planner's own structs.
    unsafe {
        let plain = matches!((*rel).reloptkind, K::RELOPT_BASEREL | K::RELOPT_OTHER_MEMBER_REL)
            && (*rte).rtekind == pg_sys::RTEKind::RTE_RELATION
            && !(*rte).inh
            && (*rte).tablesample.is_null();
        let relkind = (*rte).relkind as u8;
        plain
            && (relkind == pg_sys::RELKIND_RELATION || relkind == pg_sys::RELKIND_MATVIEW)
            && !pg_sys::is_dummy_rel(rel)
            && !is_of_cursor(rel)
    }
}

/// Whether the one row is wanted on which a cursor stands.
///
/// # Safety
/// The planner's own struct, of a base relation.
unsafe fn is_of_cursor(rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: the planner's own list.
    let conditions = unsafe { List::<Typed<'_, pg_sys::RestrictInfo>>::new((*rel).baserestrictinfo) };
    conditions.iter().any(|condition| {
        // SAFETY: a condition has its expression.
        unsafe { (*condition.clause).type_ == NodeTag::T_CurrentOfExpr }
    })
}

/// Attributes of the relation that the query looks at, as the server's shifted set.
///
/// # Safety
/// The planner's own struct, of a base relation.
pub(super) unsafe fn attributes(rel: *mut pg_sys::RelOptInfo) -> *mut pg_sys::Bitmapset {
    let mut set: *mut pg_sys::Bitmapset = std::ptr::null_mut();
    // SAFETY: both lists belong to the relation; pull_varattnos copies the set as it grows.
    unsafe {
        pg_sys::pull_varattnos((*(*rel).reltarget).exprs.cast(), (*rel).relid, &raw mut set);
        let clauses = pg_sys::extract_actual_clauses((*rel).baserestrictinfo, false);
        pg_sys::pull_varattnos(clauses.cast(), (*rel).relid, &raw mut set);
    }
    set
}

/// Offers a scan of a table, if it is one of ours.
///
/// # Safety
/// The planner's own structs, of a base relation.
unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rte: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner holds a lock already; the relation stays open while it is looked at.
    unsafe {
        with_table((*rte).relid, pg_sys::NoLock, |table| {
            if options::is_our_relation(table) {
                offer_columnar(root, rel, table.as_ptr());
            } else {
                columnstore_path::offer(root, rel, table);
            }
        });
    }
}

/// Offers a scan of a columnar table, unless something of the server's is better by far.
///
/// # Safety
/// The planner's own structs, of a base relation that is open.
unsafe fn offer_columnar(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    relation: pg_sys::Relation,
) {
    // SAFETY: the planner's own structs and an open relation.
    unsafe {
        let outline = outline::of(Open::of(relation));
        let cold = outline.as_ref().map_or(0.0, |outline| outline.rows);
        if cold == 0.0 && rows_of_all(root) < vectorised_min_rows() {
            // There are few rows, and all are hot. Heap's own scan begins sooner.
            return;
        }
        if cold > 0.0 {
            ask_for_wanted_columns(rel);
        }
        if finds_one_row(root, rel) {
            return;
        }
        let attributes = attributes(rel);
        // Declines xmin, cmin, xmax and cmax. Cold rows have ctid and tableoid.
        if (pg_sys::MaxCommandIdAttributeNumber..=pg_sys::MinTransactionIdAttributeNumber)
            .any(|attno| has_attribute(attributes, attno))
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
        whole_keys::note(root, rel);
        let stored = cost::Stored::of_table(rel, Open::of(relation), outline.as_deref());
        let estimate = cost::estimate(root, rel, relation, &stored, attributes);
        add_paths(root, rel, &estimate, cold > 0.0, price_index_paths);
    }
}

/// Puts our paths in place of the server's sequential scans. `has_cold`: some rows are in stripes.
///
/// # Safety
/// The planner's own structs, of a base relation.
unsafe fn add_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    estimate: &cost::Estimate,
    has_cold: bool,
    price_index_paths: impl Fn(*mut pg_sys::RelOptInfo),
) {
    // SAFETY: the planner's own structs; paths are new ones of ours.
    unsafe {
        let workers = drop_sequential_scan(&mut (*rel).partial_pathlist).map(|scan| scan.workers);
        let dropped = drop_sequential_scan(&mut (*rel).pathlist);
        let path = new_path(root, rel);
        price(path, estimate, 0);
        // The server has dropped index paths that cost more than its sequential scan, which does not count
        // dead rows in stripes. Our scan may cost more than these paths, so they are made again.
        if has_cold
            && !(*rel).indexlist.is_null()
            && dropped.is_some_and(|scan| scan.cost < (*path).path.total_cost)
        {
            index_paths::make_anew(root, rel);
            price_index_paths(rel);
        }
        let paths = List::<Typed<'_, pg_sys::Path>>::new((*rel).pathlist);
        let free = paths.iter().filter(|path| path.param_info.is_null());
        let cheapest = free.map(|path| path.total_cost).fold((*path).path.total_cost, f64::min);
        offered::note((*rel).tuples, cheapest);
        pg_sys::add_path(rel, path.cast());
        if let Some(workers) = workers.filter(|&workers| workers > 0) {
            let path = new_path(root, rel);
            (*path).path.parallel_aware = true;
            (*path).path.parallel_workers = workers;
            price(path, estimate, workers);
            pg_sys::add_partial_path(rel, path.cast());
        }
    }
}

/// Prices a path that stands for the server's sequential scan.
///
/// # Safety
/// A new path of ours.
unsafe fn price(path: *mut pg_sys::CustomPath, estimate: &cost::Estimate, workers: i32) {
    // SAFETY: the caller's path; a plain global.
    unsafe {
        cost::price(path, estimate, workers);
        if !pg_sys::enable_seqscan {
            compat::switch_off(&mut (*path).path);
        }
    }
}

/// Keeps the planner from letting index and bitmap scans return all columns of the table. That saves heap a
/// projection, but for a cold row columns would be decoded that nobody reads. The planner does not do it if a
/// system column is wanted, so this asks for one.
///
/// # Safety
/// The planner's own struct, of a base relation.
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
///
/// # Safety
/// The planner's own struct.
pub(super) unsafe fn rows_of_all(root: *mut pg_sys::PlannerInfo) -> f64 {
    // SAFETY: sizes are estimated before paths are made; the array has places for as many relations as it
    // says, some of them empty.
    unsafe {
        let count = usize::try_from((*root).simple_rel_array_size).unwrap_or(0);
        let rels = (0..count).map(|at| *(*root).simple_rel_array.add(at));
        rels.filter(|rel| !rel.is_null()).map(|rel| (*rel).tuples.max(0.0)).sum()
    }
}

/// Whether the server's best path looks up one row by a unique index. Then the cost of our scan need not be
/// known.
///
/// # Safety
/// The planner's own structs, of a base relation.
pub(super) unsafe fn finds_one_row(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: the planner's own structs; the cast follows the tag.
    unsafe {
        let Some(path) = cheapest_free(rel).filter(|path| path.type_ == NodeTag::T_IndexPath) else {
            return false;
        };
        (*(*path.as_ptr().cast::<pg_sys::IndexPath>()).indexinfo).unique
            && !compat::is_switched_off(&path)
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
///
/// # Safety
/// The planner's own struct, of a base relation.
pub(super) unsafe fn finds_few_rows(rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: the planner's own struct.
    unsafe { cheapest_free(rel) }.is_some_and(|path| {
        matches!(path.type_, NodeTag::T_IndexPath | NodeTag::T_BitmapHeapPath) && path.total_cost < LEAST_SCAN
    })
}

/// The best path that there is, unless it takes parameters. Paths are in order of their costs.
///
/// # Safety
/// The planner's own struct, of a base relation, whose paths nobody changes for `'a`.
pub(super) unsafe fn cheapest_free<'a>(rel: *mut pg_sys::RelOptInfo) -> Option<Typed<'a, pg_sys::Path>> {
    // SAFETY: the planner's own list of paths.
    let paths = unsafe { List::<Typed<'a, pg_sys::Path>>::new((*rel).pathlist) };
    paths.get(0).filter(|path| path.param_info.is_null())
}

/// A path of ours, which costs nothing yet.
///
/// # Safety
/// The planner's own structs, of a base relation.
pub(super) unsafe fn new_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) -> *mut pg_sys::CustomPath {
    // SAFETY: a zeroed node is a valid start; every field the planner reads is set below.
    unsafe {
        let path = pg_sys::palloc0(size_of::<pg_sys::CustomPath>()).cast::<pg_sys::CustomPath>();
        (*path).path.type_ = NodeTag::T_CustomPath;
        (*path).path.pathtype = NodeTag::T_CustomScan;
        (*path).path.parent = rel;
        (*path).path.pathtarget = (*rel).reltarget;
        // The path has only the parameters that LATERAL requires, as a sequential scan.
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

/// The server's sequential scan, which our scan replaces.
struct Dropped {
    workers: i32,
    cost: f64,
}

/// Takes the sequential scan off a list of paths, because our node reads the same rows. Returns its workers
/// and cost.
///
/// # Safety
/// A list of paths that is ours to change.
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
