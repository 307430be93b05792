//! No bitmap scans of our tables where a plan may be rechecked.
//!
//! A bitmap scan prefetches the blocks of its bitmap, which is not possible for virtual ones. `hooks` turns
//! that off in every plan that starts.
//!
//! But an UPDATE, DELETE, MERGE or row lock may meet a row that somebody else has just changed. Then the
//! server initialises the subqueries once more, out of reach of any hook. So these subqueries get other
//! paths. (Tables of the command's own level need none: they are not scanned again then, as their rows are
//! given.)
//!
//! Called by the planner for each table.

use pgrx::pg_sys::{
    self, CmdType, Index, List, NodeTag, Path, PlannerInfo, RTEKind, RangeTblEntry, RelOptInfo,
};

use crate::host::hooks::Chain;
use crate::host::relation::with_table;
use crate::host::unguarded::guarded;
use crate::options;

static NEXT: Chain<pg_sys::set_rel_pathlist_hook_type> = Chain::new();

/// Puts the hook in front of those already there. The paths that they add must not lose against a path that
/// is taken out.
pub unsafe fn install() {
    // SAFETY: called once, from _PG_init.
    unsafe {
        NEXT.put_in_front(&raw mut pg_sys::set_rel_pathlist_hook, Some(pathlist));
    }
}

unsafe extern "C-unwind" fn pathlist(
    root: *mut PlannerInfo,
    rel: *mut RelOptInfo,
    rti: Index,
    rte: *mut RangeTblEntry,
) {
    // SAFETY: called by the planner with live nodes; this frame owns nothing.
    unsafe {
        guarded(|| restrict(root, rel, rte));
        if let Some(next) = NEXT.next() {
            next(root, rel, rti, rte);
        }
    }
}

unsafe fn restrict(root: *mut PlannerInfo, rel: *mut RelOptInfo, rte: *mut RangeTblEntry) {
    // SAFETY: as above; the planner holds a lock on the table.
    unsafe {
        if (*rte).rtekind != RTEKind::RTE_RELATION || !may_be_rechecked(root) {
            return;
        }
        let (serial, partial) = (without_bitmaps((*rel).pathlist), without_bitmaps((*rel).partial_pathlist));
        if serial.is_none() && partial.is_none() {
            return;
        }
        if !with_table((*rte).relid, pg_sys::NoLock, options::is_our_relation) {
            return;
        }
        if let Some(paths) = serial {
            (*rel).pathlist = paths;
            // The sequential path may have lost against a bitmap path before, so it is added again.
            pg_sys::add_path(rel, pg_sys::create_seqscan_path(root, rel, (*rel).lateral_relids, 0));
        }
        if let Some(paths) = partial {
            (*rel).partial_pathlist = paths;
        }
    }
}

/// Whether a query around this one may recheck its rows.
unsafe fn may_be_rechecked(root: *mut PlannerInfo) -> bool {
    // SAFETY: the chain of planner states ends with null.
    unsafe {
        let mut outer = (*root).parent_root;
        while !outer.is_null() {
            let query = (*outer).parse;
            let command = (*query).commandType;
            let changes = matches!(command, CmdType::CMD_UPDATE | CmdType::CMD_DELETE | CmdType::CMD_MERGE);
            if changes || !(*query).rowMarks.is_null() {
                return true;
            }
            outer = (*outer).parent_root;
        }
        false
    }
}

/// The list without its bitmap scans. None if it has none.
unsafe fn without_bitmaps(paths: *mut List) -> Option<*mut List> {
    // SAFETY: a list of paths, or null.
    unsafe {
        let count = if paths.is_null() { 0 } else { (*paths).length };
        let is_bitmap = |at: i32| {
            let path = pg_sys::list_nth(paths, at).cast::<Path>();
            (*path).pathtype == NodeTag::T_BitmapHeapScan
        };
        if !(0..count).any(is_bitmap) {
            return None;
        }
        let mut kept: *mut List = std::ptr::null_mut();
        for at in (0..count).filter(|&at| !is_bitmap(at)) {
            kept = pg_sys::lappend(kept, pg_sys::list_nth(paths, at));
        }
        Some(kept)
    }
}
