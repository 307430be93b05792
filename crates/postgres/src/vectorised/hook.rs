//! The planner hook: plans a statement with the server's planner and lets `rewrite` put vectorised nodes into the finished plan.
//!
//! A statement that reads no columnar table leaves at once: `planner::hooks` notes when it offers a columnar scan, so nothing has to be looked up here. Invariant: a cursor
//! that could move backwards over the server's plan can move backwards over ours, through a Materialize node on top.

use std::cell::Cell;
use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, ParamListInfo, PlannedStmt, Query};

use super::rewrite;
use crate::host::guc::ENABLE_VECTORISED;

static PREVIOUS: OnceLock<pg_sys::planner_hook_type> = OnceLock::new();

thread_local! {
    /// A columnar scan was offered while the current statement is being planned. Planning nests: a function may be run to fold a constant.
    static OFFERED: Cell<bool> = const { Cell::new(false) };
}

/// Puts our hook in front of whoever was there.
///
/// # Safety
/// Runs once, on the main thread, while the library is loaded.
pub unsafe fn install() {
    // SAFETY: hooks are plain globals; nothing else runs yet.
    unsafe {
        if PREVIOUS.set(pg_sys::planner_hook).is_ok() {
            pg_sys::planner_hook = Some(plan);
        }
    }
}

/// Called by the path hook for every columnar scan it offers.
pub fn note_columnar_scan() {
    OFFERED.set(true);
}

/// Keeps the note of the planning outside while another one runs; restores it also when that ends with an ERROR.
struct Nested(bool);

impl Nested {
    fn begin() -> Self {
        Self(OFFERED.replace(false))
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        OFFERED.set(self.0);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn plan(
    parse: *mut Query,
    query_string: *const std::ffi::c_char,
    cursor_options: i32,
    bound_params: ParamListInfo,
) -> *mut PlannedStmt {
    // SAFETY: the server's own structs, passed on as they came.
    unsafe {
        let nested = Nested::begin();
        let stmt = serverside(parse, query_string, cursor_options, bound_params);
        if OFFERED.get() && ENABLE_VECTORISED.get() {
            let moved_back = pg_sys::ExecSupportsBackwardScan((*stmt).planTree);
            rewrite::statement(stmt);
            if moved_back && may_scroll(cursor_options) && !pg_sys::ExecSupportsBackwardScan((*stmt).planTree)
            {
                (*stmt).planTree = pg_sys::materialize_finished_plan((*stmt).planTree);
            }
        }
        drop(nested);
        stmt
    }
}

/// The statement of a cursor, whose reader may want to move back: only those carry options of their own.
const fn may_scroll(cursor_options: i32) -> bool {
    let everyone = pg_sys::CURSOR_OPT_PARALLEL_OK
        | pg_sys::CURSOR_OPT_GENERIC_PLAN
        | pg_sys::CURSOR_OPT_CUSTOM_PLAN
        | pg_sys::CURSOR_OPT_NO_SCROLL;
    cursor_options & !(everyone as i32) != 0 && cursor_options & pg_sys::CURSOR_OPT_NO_SCROLL as i32 == 0
}

/// The plan without us.
unsafe fn serverside(
    parse: *mut Query,
    query_string: *const std::ffi::c_char,
    cursor_options: i32,
    bound_params: ParamListInfo,
) -> *mut PlannedStmt {
    // SAFETY: as above; the previous hook is C code that may raise an ERROR.
    unsafe {
        match PREVIOUS.get() {
            Some(Some(previous)) => pg_sys::ffi::pg_guard_ffi_boundary(|| {
                previous(parse, query_string, cursor_options, bound_params)
            }),
            _ => pg_sys::standard_planner(parse, query_string, cursor_options, bound_params),
        }
    }
}
