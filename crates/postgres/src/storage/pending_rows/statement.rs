//! Which statements are running in this backend, innermost last, and the end of each.
//!
//! Hooks around the executor and around utility commands keep a stack of frames. `destination` asks what the
//! innermost frame says about the rows that are being inserted.
//!
//! When an inserting statement is over, its rows are written before AFTER triggers fire. This happens at the
//! start of ExecutorFinish, again after it (data-modifying WITH queries may run only then), and after each
//! utility command. Bulk deletions are written at the same places, and before any statement inside another
//! begins.
//!
//! What depends on frames: where rows go, and when they are written (any access writes them anyway). By the
//! running query's list of columns, also how an UPDATE locks cold rows (`table_am::change::bulk_change`).
//!
//! Invariants: what the server does in between runs without a guard, so that its errors keep their context
//! (`host::unguarded`). Frames of failed statements go with their transaction.

use pgrx::pg_sys::{self, CmdType, CommandDest, CommandId, List, NodeTag, PlannedStmt, QueryDesc};

use super::{any, finish_command, flush_all, settings};
use crate::compat;
use crate::host::hooks::Chain;
use crate::host::nesting::Nesting;
use crate::host::unguarded::{self, guarded};
use crate::host::utility_hook::{self, Call, UtilityHook};
use crate::storage::change::delete_bitmap;

/// What may be done with the rows of an inserting statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insertion {
    /// Nothing looks at a row's TID before the statement ends.
    MayWait,
    /// The TID is used by RETURNING or otherwise.
    NeedsTid,
}

#[derive(Clone, Copy)]
enum Frame {
    /// A query that inserts under this command id.
    Insert(CommandId, Insertion),
    /// A command that fills tables by itself: CREATE TABLE AS, REFRESH, a rewriting ALTER TABLE.
    Bulk,
    /// COPY.
    Copy,
    /// Any other statement, also one that inserts few rows.
    Other,
}

thread_local! {
    /// Each frame has the query that runs, which is null for utility commands.
    static FRAMES: Nesting<(Frame, *mut QueryDesc)> = const { Nesting::new() };
}

fn innermost() -> Option<Frame> {
    FRAMES.with(|frames| frames.innermost(|frame| frame.map(|(frame, _)| *frame)))
}

/// The query that runs innermost in this backend; None in a utility command.
pub fn running_query() -> Option<*mut QueryDesc> {
    let query = FRAMES.with(|frames| frames.innermost(|frame| frame.map(|(_, query)| *query)));
    query.filter(|query| !query.is_null())
}

/// Snapshots of this session, its oldest one among them. None if that one is not known.
///
/// The outermost statement has the oldest one. That of a query is its own. A utility statement, as CALL and
/// DO are, has that of the portal that runs it. So has a procedure after a ROLLBACK, which forgets all
/// statements.
pub fn known_snapshots() -> Option<Vec<pg_sys::Snapshot>> {
    let queries = FRAMES.with(|frames| frames.all(|(_, query)| *query));
    // SAFETY: the portal and the queries run.
    unsafe {
        let portal = pg_sys::ActivePortal.as_ref().map(|portal| portal.portalSnapshot);
        let portal = portal.filter(|snapshot| !snapshot.is_null());
        if portal.is_none() && queries.first().is_none_or(|query| query.is_null()) {
            return None;
        }
        let of_queries = queries.into_iter().filter(|query| !query.is_null()).map(|query| (*query).snapshot);
        Some(of_queries.chain(portal).filter(|snapshot| !snapshot.is_null()).collect())
    }
}

/// Forgets the statements of an aborted subtransaction.
pub(super) fn forget(aborted: pg_sys::SubTransactionId) {
    FRAMES.with(|frames| frames.forget(aborted));
}

/// Forgets all statements, because the transaction has aborted.
pub(super) fn clear() {
    FRAMES.with(Nesting::clear);
}

/// What the running statement says about rows that are inserted as `command`. None: nothing is known, or the
/// rows are few.
pub(super) fn insertion(command: CommandId) -> Option<Insertion> {
    match innermost()? {
        Frame::Insert(own, insertion) if own == command => Some(insertion),
        Frame::Bulk | Frame::Copy => Some(Insertion::MayWait),
        Frame::Insert(..) | Frame::Other => None,
    }
}

/// True when COPY itself is what runs.
pub(super) fn in_copy() -> bool {
    matches!(innermost(), Some(Frame::Copy))
}

static NEXT_RUN: Chain<pg_sys::ExecutorRun_hook_type> = Chain::new();
static NEXT_FINISH: Chain<pg_sys::ExecutorFinish_hook_type> = Chain::new();
static NEXT_UTILITY: Chain<pg_sys::ProcessUtility_hook_type> = Chain::new();

/// Installs the hooks in front of those that are there.
pub(super) unsafe fn register() {
    // SAFETY: called from _PG_init.
    unsafe {
        NEXT_RUN.put_in_front(&raw mut pg_sys::ExecutorRun_hook, compat::run_hook::<Run>());
        NEXT_FINISH.put_in_front(&raw mut pg_sys::ExecutorFinish_hook, Some(finish));
        NEXT_UTILITY.put_in_front(&raw mut pg_sys::ProcessUtility_hook, utility_hook::hook::<Utility>());
    }
}

unsafe fn enter(frame: Frame, query: *mut QueryDesc) -> usize {
    // SAFETY: statements run inside transactions.
    FRAMES.with(|frames| unsafe { frames.push((frame, query)) })
}

fn leave(depth: usize) {
    FRAMES.with(|frames| frames.pop(depth));
}

/// What every run of a query begins and ends with. The hook itself owns nothing, as an ERROR jumps past it.
struct Run;

impl compat::RunHook for Run {
    unsafe fn begin(query: *mut QueryDesc) -> usize {
        // SAFETY: the hook's own argument.
        guarded(|| unsafe {
            delete_bitmap::write_all();
            // Writes the rows now: parallel workers do not have this backend's memory, and once they are
            // started nothing may be written.
            if any() && (*(*query).plannedstmt).parallelModeNeeded {
                flush_all();
            }
            enter(frame_of(query), query)
        })
    }

    fn next() -> pg_sys::ExecutorRun_hook_type {
        NEXT_RUN.next()
    }

    fn end(depth: usize) {
        // SAFETY: what is called owns nothing of the server's.
        unsafe { guarded(|| leave(depth)) }
    }
}

unsafe extern "C-unwind" fn finish(query: *mut QueryDesc) {
    // SAFETY: as above; the executor state is there until ExecutorEnd.
    unsafe {
        let (depth, command) = guarded(|| {
            let command = modifies(query).then(|| (*(*query).estate).es_output_cid);
            counted(query, || {
                delete_bitmap::write_all();
                if let Some(command) = command {
                    finish_command(command);
                }
            });
            (enter(frame_of(query), query), command)
        });
        let next = NEXT_FINISH.next().unwrap_or(unguarded::standard_ExecutorFinish);
        next(query);
        guarded(|| {
            leave(depth);
            delete_bitmap::write_all();
            if let Some(command) = command {
                finish_command(command);
            }
        });
    }
}

/// Counts what `work` takes (time, buffers, WAL) for the node that changes a table, because it is the rest of
/// that node's work. Only if EXPLAIN ANALYZE asks and there is exactly one such node.
unsafe fn counted(query: *mut QueryDesc, work: impl FnOnce()) {
    // SAFETY: the executor has been started; nodes that are counted have their figures until it ends.
    unsafe {
        let mut node = (*query).planstate;
        let others = (*(*query).estate).es_auxmodifytables;
        if !others.is_null() && (*others).length == 1 {
            node = pg_sys::list_nth(others, 0).cast();
        }
        let is_one = !node.is_null()
            && (*node).type_ == NodeTag::T_ModifyTableState
            && (others.is_null() || (*others).length == 1 && (*query).operation == CmdType::CMD_SELECT);
        let figures = if is_one { (*node).instrument } else { std::ptr::null_mut() };
        if figures.is_null() {
            return work();
        }
        pg_sys::InstrStartNode(figures);
        work();
        pg_sys::InstrStopNode(figures, 0.0);
    }
}

struct Utility;

impl UtilityHook for Utility {
    /// As `before_utility` says.
    type Kept = Option<(usize, Option<CommandId>)>;

    unsafe fn before(call: Call) -> (*mut PlannedStmt, Self::Kept) {
        // SAFETY: the server's own statement.
        (call.statement, guarded(|| unsafe { before_utility(call.statement) }))
    }

    fn next() -> pg_sys::ProcessUtility_hook_type {
        NEXT_UTILITY.next()
    }

    unsafe fn after(_call: Call, kept: Self::Kept) {
        let Some((depth, first)) = kept else { return };
        // SAFETY: inside the statement's transaction.
        guarded(|| unsafe {
            leave(depth);
            if let Some(first) = first {
                finish_command(first);
            }
        });
    }
}

/// The depth of the statement's frame and, if it fills tables, the first command id that its rows can have.
/// None for transaction commands: there may be no transaction before them, and after them it is another one.
unsafe fn before_utility(statement: *mut PlannedStmt) -> Option<(usize, Option<CommandId>)> {
    // SAFETY: a utility statement has a node.
    unsafe {
        delete_bitmap::write_all();
        let frame = match (*(*statement).utilityStmt).type_ {
            NodeTag::T_TransactionStmt => return None,
            NodeTag::T_CopyStmt => Frame::Copy,
            NodeTag::T_CreateTableAsStmt | NodeTag::T_RefreshMatViewStmt | NodeTag::T_AlterTableStmt => {
                Frame::Bulk
            }
            _ => Frame::Other,
        };
        let first = match frame {
            Frame::Other => None,
            _ => Some(pg_sys::GetCurrentCommandId(false)),
        };
        Some((enter(frame, std::ptr::null_mut()), first))
    }
}

unsafe fn modifies(query: *mut QueryDesc) -> bool {
    // SAFETY: the executor has been started.
    unsafe { (*query).operation != CmdType::CMD_SELECT || (*(*query).plannedstmt).hasModifyingCTE }
}

unsafe fn frame_of(query: *mut QueryDesc) -> Frame {
    // SAFETY: a started query has a plan and an executor state.
    unsafe {
        let plan = (*query).plannedstmt;
        if !modifies(query) {
            let dest = (*query).dest;
            let filling = !dest.is_null()
                && matches!((*dest).mydest, CommandDest::DestIntoRel | CommandDest::DestTransientRel);
            return if filling { Frame::Bulk } else { Frame::Other };
        }
        if !(*plan).hasModifyingCTE && has_few_rows((*plan).planTree) {
            return Frame::Other;
        }
        let only_inserts = (*query).operation == CmdType::CMD_INSERT && !(*plan).hasModifyingCTE;
        let insertion = match only_inserts && !(*plan).hasReturning {
            true => Insertion::MayWait,
            false => Insertion::NeedsTid,
        };
        Frame::Insert((*(*query).estate).es_output_cid, insertion)
    }
}

/// Whether a plan inserts VALUES with fewer rows than the threshold.
unsafe fn has_few_rows(plan: *mut pg_sys::Plan) -> bool {
    // SAFETY: node tags say what a pointer is.
    unsafe {
        if plan.is_null() || (*plan).type_ != NodeTag::T_ModifyTable || (*plan).lefttree.is_null() {
            return false;
        }
        let source = (*plan).lefttree;
        match (*source).type_ {
            NodeTag::T_Result => (*source).lefttree.is_null(),
            NodeTag::T_ValuesScan => {
                let values: *mut List = (*source.cast::<pg_sys::ValuesScan>()).values_lists;
                !values.is_null()
                    && usize::try_from((*values).length).unwrap_or(0) < settings::threshold_rows()
            }
            _ => false,
        }
    }
}
