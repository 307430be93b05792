//! What index scans cost if rows are cold.
//!
//! Called by `path_hook` for tables whose option `index_scan` is off, before our own path competes. The
//! server prices an index scan by the heap pages that it visits, and assumes that they may have to come from
//! disk. A cold row costs something else: a look into the column chunk of each wanted column, which is mostly
//! computing. For a bitmap scan with many rows in a chunk, the chunk is decoded whole instead.
//!
//! Both costs were measured on the events table. They are relative to the time and the cost of index look-ups
//! there, about a microsecond a unit; `cost` prices scans by the same measure. So few rows keep their index,
//! and many rows are read from the stripes.
//!
//! Invariant: hot rows cost what the server says.

use pgrx::pg_sys::{self, NodeTag};

use crate::compat;
use crate::storage::directory::outline::Outline;

/// Cost of finding one cold row and handing it on, in units of seq_page_cost.
const ROW: f64 = 0.4;
/// The same in an index-only scan.
const SEEN: f64 = 0.12;
/// Cost of its value in one column.
const VALUE: f64 = 0.2;
/// Cost of each value of a chunk that is decoded whole.
const DECODED: f64 = 0.0006;
/// Cost of each row that is taken from such chunks.
const FURTHER: f64 = 0.3;
/// Rows of a chunk, when nothing better is known.
const CHUNK_ROWS: f64 = 10_000.0;

/// Prices the relation's index and bitmap paths anew. `columns` of the table are looked at.
///
/// # Safety
/// The planner's structs are valid.
pub unsafe fn price(rel: *mut pg_sys::RelOptInfo, outline: &Outline, columns: f64) {
    // SAFETY: the planner's own lists of paths; each path goes back to the list it came from.
    unsafe {
        let tuples = (*rel).tuples.max(1.0);
        let cold = (outline.rows / tuples).min(1.0);
        if cold <= 0.0 {
            return;
        }
        let serial = take(&mut (*rel).pathlist);
        let partial = take(&mut (*rel).partial_pathlist);
        for path in serial {
            reprice(path, tuples, cold, columns);
            pg_sys::add_path(rel, path);
        }
        for path in partial {
            reprice(path, tuples, cold, columns);
            pg_sys::add_partial_path(rel, path);
        }
    }
}

/// Has the server make the relation's index and bitmap paths again. Some of them may have lost to a path that
/// is gone now. They have the server's costs.
///
/// # Safety
/// As `price`.
pub unsafe fn make_anew(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) {
    // SAFETY: the planner's own structs. The server adds them to lists that have none.
    unsafe {
        take(&mut (*rel).pathlist);
        take(&mut (*rel).partial_pathlist);
        pg_sys::create_index_paths(root, rel);
    }
}

/// Takes the index and bitmap paths out of a list, in order.
///
/// # Safety
/// A list of paths that is ours to change.
unsafe fn take(paths: &mut *mut pg_sys::List) -> Vec<*mut pg_sys::Path> {
    let mut taken = Vec::new();
    // SAFETY: the caller's list; deleting a cell keeps it valid.
    unsafe {
        let mut at = 0;
        while !paths.is_null() && at < (**paths).length {
            let path = pg_sys::list_nth(*paths, at).cast::<pg_sys::Path>();
            if matches!((*path).type_, NodeTag::T_IndexPath | NodeTag::T_BitmapHeapPath) {
                taken.push(path);
                *paths = pg_sys::list_delete_nth_cell(*paths, at);
            } else {
                at += 1;
            }
        }
    }
    taken
}

/// Charges the cold share of a path's rows with the costs of cold rows, instead of those of heap's rows and
/// pages.
///
/// # Safety
/// An index or bitmap path of the planner's.
unsafe fn reprice(path: *mut pg_sys::Path, tuples: f64, cold: f64, columns: f64) {
    // SAFETY: the casts follow the tag; cost settings are plain globals.
    unsafe {
        // A scan whose kind is switched off stays the last choice.
        if compat::is_switched_off(&*path) {
            return;
        }
        let single = ROW + VALUE * columns;
        // The cost of the index itself, and that of the cold rows.
        let (index, fetching, rows) = if (*path).type_ == NodeTag::T_IndexPath {
            let index = path.cast::<pg_sys::IndexPath>();
            let only = (*path).pathtype == NodeTag::T_IndexOnlyScan;
            let rows = (*index).indexselectivity * tuples * cold;
            ((*index).indextotalcost, rows * if only { SEEN } else { single }, rows)
        } else {
            let bitmap = path.cast::<pg_sys::BitmapHeapPath>();
            let (mut cost, mut selectivity) = (0.0, 0.0);
            pg_sys::cost_bitmap_tree_node((*bitmap).bitmapqual, &raw mut cost, &raw mut selectivity);
            let rows = selectivity * tuples * cold;
            let chunks = rows.min((tuples * cold / CHUNK_ROWS).ceil());
            let whole = chunks * CHUNK_ROWS * columns * DECODED + rows * FURTHER;
            (cost, whole.min(rows * single), rows)
        };
        let participants = f64::from((*path).parallel_workers.max(1));
        let heap = ((*path).total_cost - index).max(0.0) * (1.0 - cold);
        let handing_on = rows * (pg_sys::cpu_tuple_cost + (*(*path).parent).baserestrictcost.per_tuple);
        let total = index + heap + (fetching + handing_on) / participants;
        (*path).total_cost = total.max((*path).startup_cost);
    }
}
