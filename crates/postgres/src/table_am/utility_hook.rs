//! What is done before and after a utility statement.
//!
//! - Before a VACUUM: `dead_stripes` takes stripes out without a living row.
//! - After a statement that may publish tables: `publication` refuses tables with cold rows.
//! - After a VACUUM, CREATE INDEX or REINDEX: what a floor above has asked for (`After`).
//!
//! Invariant: the next hook is called as plain C (see `host::unguarded`) from a frame that owns nothing.

use std::ffi::c_char;
use std::sync::OnceLock;

use pgrx::pg_sys::{self, NodeTag, PlannedStmt};

use super::packing;
use super::statements::publication;
use crate::host::hooks::Chain;
use crate::host::unguarded::{self, guarded};

static NEXT: Chain<pg_sys::ProcessUtility_hook_type> = Chain::new();
static AFTER: OnceLock<After> = OnceLock::new();

/// Gets the node of a VACUUM, ANALYZE, CREATE INDEX or REINDEX that was carried out, under guard.
pub type After = unsafe fn(*mut pg_sys::Node);

/// Puts the hook in place, keeping those of others.
///
/// # Safety
/// Called once, from `_PG_init`.
pub unsafe fn install(after: After) {
    let _ = AFTER.set(after);
    // SAFETY: the caller's promise.
    unsafe { NEXT.put_in_front(&raw mut pg_sys::ProcessUtility_hook, Some(utility)) }
}

#[allow(clippy::too_many_arguments, reason = "the server's signature")]
unsafe extern "C-unwind" fn utility(
    statement: *mut PlannedStmt,
    query: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    dest: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: the chain is called as the server would call it.
    unsafe {
        let is_top = context == pg_sys::ProcessUtilityContext::PROCESS_UTILITY_TOPLEVEL;
        let kind = (*(*statement).utilityStmt).type_;
        let has_after =
            is_top && matches!(kind, NodeTag::T_VacuumStmt | NodeTag::T_IndexStmt | NodeTag::T_ReindexStmt);
        let publishes = guarded(|| {
            let node = (*statement).utilityStmt;
            if is_top {
                packing::before_vacuum(node);
            }
            publication::before(node)
        });
        let next = NEXT.next().unwrap_or(unguarded::standard_ProcessUtility);
        next(statement, query, read_only_tree, context, params, environment, dest, completion);
        if !publishes.is_null() {
            guarded(|| publication::after(publishes));
        }
        if has_after && let Some(after) = AFTER.get() {
            // Transactions end meanwhile; the statement outlives them.
            guarded(|| after((*statement).utilityStmt));
        }
    }
}
