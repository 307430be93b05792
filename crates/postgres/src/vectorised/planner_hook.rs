//! The planner hook: plans a statement with the server's planner and lets `replace` put vectorised nodes into
//! the finished plan.
//!
//! A statement that reads no columnar table, or only small ones, leaves at once: `planner::path_hook` notes
//! which columnar scans it offers. If a plan leaves work to the server's executor, the statement is planned a
//! second time, without parallel workers, nested loops and merge joins. The hook takes the plan that costs
//! less with its vectorised nodes. A statement that joins by a range is also planned without copies of heap
//! tables, as the server guesses how many rows that takes (`through_indexes`). Invariant: a cursor that could
//! move backwards over the server's plan can move backwards over ours, through a Materialize node on top.

use pgrx::pg_sys::{self, ParamListInfo, PlannedStmt, Query};

use super::{candidate, cost, decorrelate, plan_parts, replace, translate};
use crate::host::full_errors;
use crate::host::hooks::Chain;
use crate::host::tree::{Expression, FinishedStatement, Plan};
use crate::options::settings::{ENABLE_VECTORISED, vectorised_min_rows};
use crate::planner::columnstore_path::Planning;
use crate::planner::offered::{OuterPlanning, offered};
use crate::planner::{not_covered, plan as scan_plan, ranges};

/// Plans that cost less than this are not made a second time.
const WORTH: f64 = 200.0;
/// How many times the cost of a plan over copies the heap's own may have where it looks ranges up whose ends
/// come from rows. The server takes a ninth of the table for such a range (`planner::ranges`). TPC-C's fifth
/// transaction, of 200 lines among 300,000, is estimated at 3 times the copies' plan and runs in a fifth.
const CAUTION: f64 = 9.0;
static PREVIOUS: Chain<pg_sys::planner_hook_type> = Chain::new();

/// Puts our hook in front of whoever was there.
///
/// # Safety
/// Runs once, on the main thread, while the library is loaded.
pub unsafe fn install() {
    // SAFETY: hooks are plain globals; nothing else runs yet.
    unsafe {
        PREVIOUS.put_in_front(&raw mut pg_sys::planner_hook, Some(plan));
    }
}

/// The arguments of the planner beside the query.
#[derive(Clone, Copy)]
struct Request {
    query_string: *const std::ffi::c_char,
    cursor_options: i32,
    bound_params: ParamListInfo,
}

unsafe extern "C-unwind" fn plan(
    parse: *mut Query,
    query_string: *const std::ffi::c_char,
    cursor_options: i32,
    bound_params: ParamListInfo,
) -> *mut PlannedStmt {
    let request = Request { query_string, cursor_options, bound_params };
    // SAFETY: the server's own structs, passed on as they came.
    unsafe {
        full_errors::guarded(|| {
            let _planning = Planning::with_options(cursor_options);
            let notes = not_covered::Planning::begin();
            let stmt = match ENABLE_VECTORISED.get() {
                true => vectorised(parse, request),
                false => serverside(parse, request),
            };
            notes.end();
            stmt
        })
    }
}

/// The plan with vectorised nodes in it.
///
/// # Safety
/// As the server calls its planner.
unsafe fn vectorised(parse: *mut Query, request: Request) -> *mut PlannedStmt {
    // SAFETY: the caller's query, which is copied before planning changes it; the statements made here are
    // ours to change.
    unsafe {
        let outer = OuterPlanning::begin();
        let one_table = candidate::reads_one_table(parse);
        let copy = match candidate::may_be_planned_again(parse, one_table) {
            true => pg_sys::copyObjectImpl(parse.cast()).cast::<Query>(),
            false => std::ptr::null_mut(),
        };
        let mut stmt = serverside(parse, request);
        let offered = offered();
        if offered.rows < vectorised_min_rows() {
            return stmt;
        }
        // Planning a second time uses the copy up.
        let spare: *mut Query = match offered.copies_by_range && !copy.is_null() {
            true => pg_sys::copyObjectImpl(copy.cast()).cast(),
            false => std::ptr::null_mut(),
        };
        let mut moves_back = pg_sys::ExecSupportsBackwardScan((*stmt).planTree);
        let possible = replace::statement(stmt);
        if possible
            && !copy.is_null()
            && (!one_table || (*stmt).parallelModeNeeded)
            && (*(*stmt).planTree).total_cost >= WORTH
            && cost::leaves_work(stmt)
            && cost::may_be_beaten(stmt, offered.least)
        {
            decorrelate::query(copy);
            let settings = VectorFriendlySettings::begin();
            let other = serverside(copy, request);
            drop(settings);
            let other_moves_back = pg_sys::ExecSupportsBackwardScan((*other).planTree);
            replace::statement(other);
            if cost::statement(other) < cost::statement(stmt) {
                moves_back = other_moves_back;
                stmt = other;
            }
        }
        if !spare.is_null()
            && any_node(stmt, &reads_copies)
            && let Some(of_heap) = through_indexes(spare, request)
            && (*(*of_heap).planTree).total_cost < CAUTION * cost::statement(stmt)
        {
            moves_back = pg_sys::ExecSupportsBackwardScan((*of_heap).planTree);
            replace::statement(of_heap);
            stmt = of_heap;
        }
        finish(stmt, moves_back && may_scroll(request.cursor_options));
        drop(outer);
        stmt
    }
}

/// The plan without copies of heap tables, if it looks ranges up in an index whose ends come from rows.
///
/// # Safety
/// As the server calls its planner, with a query that planning may change.
unsafe fn through_indexes(query: *mut Query, request: Request) -> Option<*mut PlannedStmt> {
    let _planning = Planning::without_copies();
    // SAFETY: the caller's query; the planner's statement, which is read only.
    unsafe {
        let stmt = serverside(query, request);
        any_node(stmt, &ranges::is_looked_up).then_some(stmt)
    }
}

/// Whether this holds for a node of a statement's plans.
///
/// # Safety
/// A finished statement, which nobody changes meanwhile.
unsafe fn any_node(stmt: *mut PlannedStmt, holds: &dyn Fn(Plan<'_>) -> bool) -> bool {
    fn any(plan: Plan<'_>, holds: &dyn Fn(Plan<'_>) -> bool) -> bool {
        holds(plan) || plan_parts::inputs(plan).into_iter().any(|input| any(input, holds))
    }
    // SAFETY: the caller's statement.
    let (main, statement) = unsafe { (Plan::new((*stmt).planTree), FinishedStatement::of(stmt)) };
    main.into_iter().chain(statement.subplans().iter()).any(|plan| any(plan, holds))
}

/// Whether a node is a scan of a heap table's copies.
fn reads_copies(plan: Plan<'_>) -> bool {
    // SAFETY: a scan node of ours.
    translate::is_columnar(plan) && unsafe { !scan_plan::indexes_of(plan.as_ptr().cast()).is_empty() }
}

/// What the statement as a whole needs for its vectorised nodes; `moves_back`: its reader may move backwards.
///
/// # Safety
/// A finished statement that is ours to change.
unsafe fn finish(stmt: *mut PlannedStmt, moves_back: bool) {
    // SAFETY: the caller's statement.
    unsafe {
        if Plan::new((*stmt).planTree).and_then(plan_parts::kept).is_some() {
            // Nothing but expressions that are not evaluated would be compiled.
            (*stmt).jitFlags = pg_sys::PGJIT_NONE as i32;
        }
        if moves_back && !pg_sys::ExecSupportsBackwardScan((*stmt).planTree) {
            (*stmt).planTree = materialised((*stmt).planTree);
        }
    }
}

/// Switches off, while a query is planned for vectors, what only the server's executor runs; switches it on
/// again also after an ERROR.
struct VectorFriendlySettings {
    workers: i32,
    nested_loops: bool,
    merge_joins: bool,
    memoize: bool,
}

impl VectorFriendlySettings {
    fn begin() -> Self {
        // SAFETY: plain globals of the server, which nobody else reads before they are restored.
        unsafe {
            let before = Self {
                workers: pg_sys::max_parallel_workers_per_gather,
                nested_loops: pg_sys::enable_nestloop,
                merge_joins: pg_sys::enable_mergejoin,
                memoize: pg_sys::enable_memoize,
            };
            pg_sys::max_parallel_workers_per_gather = 0;
            pg_sys::enable_nestloop = false;
            pg_sys::enable_mergejoin = false;
            pg_sys::enable_memoize = false;
            before
        }
    }
}

impl Drop for VectorFriendlySettings {
    fn drop(&mut self) {
        // SAFETY: plain globals, put back as `begin` found them.
        unsafe {
            pg_sys::max_parallel_workers_per_gather = self.workers;
            pg_sys::enable_nestloop = self.nested_loops;
            pg_sys::enable_mergejoin = self.merge_joins;
            pg_sys::enable_memoize = self.memoize;
        }
    }
}

/// A Materialize node over a plan whose references are set already: its columns are the plan's by their
/// places.
///
/// # Safety
/// A finished plan.
unsafe fn materialised(plan: *mut pg_sys::Plan) -> *mut pg_sys::Plan {
    // SAFETY: the caller's plan; the server's node shares its list of columns, so a new one takes the place
    // of that.
    unsafe {
        let node = pg_sys::materialize_finished_plan(plan);
        let mut columns: *mut pg_sys::List = std::ptr::null_mut();
        for target in Plan::new(plan).iter().flat_map(|plan| plan.targets().iter()) {
            let expression = target.expr();
            let entry = pg_sys::flatCopyTargetEntry(target.as_ptr());
            // The server's planner leaves constants as they are, for code that shows plans.
            if !matches!(expression.expression(), Expression::Const(_)) {
                let (kind, typmod) = (expression.type_oid(), expression.typmod());
                let (place, collation) = (target.resno, expression.collation());
                (*entry).expr = pg_sys::makeVar(pg_sys::OUTER_VAR, place, kind, typmod, collation, 0).cast();
            }
            columns = pg_sys::lappend(columns, entry.cast());
        }
        (*node).targetlist = columns;
        node
    }
}

/// True for the statement of a cursor whose reader may want to move back. Only such statements carry options
/// of their own.
const fn may_scroll(cursor_options: i32) -> bool {
    let everyone = pg_sys::CURSOR_OPT_PARALLEL_OK
        | pg_sys::CURSOR_OPT_GENERIC_PLAN
        | pg_sys::CURSOR_OPT_CUSTOM_PLAN
        | pg_sys::CURSOR_OPT_NO_SCROLL;
    cursor_options & !(everyone as i32) != 0 && cursor_options & pg_sys::CURSOR_OPT_NO_SCROLL as i32 == 0
}

/// The plan without us.
///
/// # Safety
/// As the server calls its planner.
unsafe fn serverside(parse: *mut Query, request: Request) -> *mut PlannedStmt {
    let Request { query_string, cursor_options, bound_params } = request;
    // SAFETY: the server's own structs, passed on as they came; the previous hook is C code that may raise an
    // ERROR.
    unsafe {
        match PREVIOUS.next() {
            Some(previous) => pg_sys::ffi::pg_guard_ffi_boundary(|| {
                previous(parse, query_string, cursor_options, bound_params)
            }),
            None => pg_sys::standard_planner(parse, query_string, cursor_options, bound_params),
        }
    }
}
