//! What index scans cost where rows are cold.
//!
//! Called by `hooks` for tables whose option `index_scan` is off, before our own path competes. The server prices an index scan by heap pages; fetching a cold row by its number
//! takes a look into each of its column chunks instead, measured at 40 to 50 microseconds a row of the events table, where a unit of our scan's cost is about 13. A bitmap
//! scan visits rows in order and pays that once a chunk, then little a row. So point look-ups keep their index, and queries for thousands of rows go to the stripes.
//! Invariant: hot rows cost what the server says.

use pgrx::pg_sys::{self, NodeTag};

use crate::storage::outline::Outline;

/// Fetching one cold row, and a bitmap scan's first row of a chunk, in units of seq_page_cost.
const FETCH: f64 = 3.0;
/// A further row of the same chunk, for bitmap scans.
const FURTHER: f64 = 0.15;
/// Rows of a chunk, when nothing better is known.
const CHUNK_ROWS: f64 = 10_000.0;

/// Raises the costs of the relation's index and bitmap paths.
///
/// # Safety
/// The planner's structs are valid.
pub unsafe fn price(rel: *mut pg_sys::RelOptInfo, outline: &Outline) {
    // SAFETY: the caller's promise; each path goes back to the list it came from.
    unsafe {
        let tuples = (*rel).tuples.max(1.0);
        let cold = (outline.rows / tuples).min(1.0);
        if cold <= 0.0 {
            return;
        }
        let serial = take(&mut (*rel).pathlist);
        let partial = take(&mut (*rel).partial_pathlist);
        for path in serial {
            (*path).total_cost += fetching(path, tuples, cold);
            pg_sys::add_path(rel, path);
        }
        for path in partial {
            let participants = f64::from((*path).parallel_workers.max(1));
            (*path).total_cost += fetching(path, tuples, cold) / participants;
            pg_sys::add_partial_path(rel, path);
        }
    }
}

/// Takes the index and bitmap paths out of a list, in order.
unsafe fn take(paths: &mut *mut pg_sys::List) -> Vec<*mut pg_sys::Path> {
    let mut taken = Vec::new();
    // SAFETY: the list holds paths; deleting a cell keeps the list valid.
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

/// What one execution of the path pays for its cold rows.
unsafe fn fetching(path: *mut pg_sys::Path, tuples: f64, cold: f64) -> f64 {
    // SAFETY: the casts follow the tag.
    unsafe {
        if (*path).type_ == NodeTag::T_IndexPath {
            return (*path.cast::<pg_sys::IndexPath>()).indexselectivity * tuples * cold * FETCH;
        }
        let bitmap = path.cast::<pg_sys::BitmapHeapPath>();
        let (mut cost, mut selectivity) = (0.0, 0.0);
        pg_sys::cost_bitmap_tree_node((*bitmap).bitmapqual, &raw mut cost, &raw mut selectivity);
        let rows = selectivity * tuples * cold;
        rows.min((tuples * cold / CHUNK_ROWS).ceil()) * FETCH + rows * FURTHER
    }
}
