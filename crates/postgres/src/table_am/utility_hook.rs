//! What is done before and after a utility statement.
//!
//! - Before a VACUUM: `dead_stripes` takes stripes out without a living row.
//! - After a statement that may publish tables: `publication` refuses tables with cold rows.
//! - After a VACUUM, CREATE INDEX or REINDEX: what a floor above has asked for (`After`).

use std::sync::OnceLock;

use pgrx::pg_sys::{self, NodeTag, PlannedStmt};

use super::packing;
use super::statements::publication;
use crate::host::hooks::Chain;
use crate::host::unguarded::guarded;
use crate::host::utility_hook::{self, Call, UtilityHook};

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
    unsafe { NEXT.put_in_front(&raw mut pg_sys::ProcessUtility_hook, utility_hook::hook::<Hook>()) }
}

struct Hook;

impl UtilityHook for Hook {
    /// What `publication` has noted; the node that a floor above is told of, or null.
    type Kept = (*mut pg_sys::Node, *mut pg_sys::Node);

    unsafe fn before(call: Call) -> (*mut PlannedStmt, Self::Kept) {
        // SAFETY: the server's own statement.
        unsafe {
            let node = (*call.statement).utilityStmt;
            let is_top = call.context == pg_sys::ProcessUtilityContext::PROCESS_UTILITY_TOPLEVEL;
            let has_after = is_top
                && matches!(
                    (*node).type_,
                    NodeTag::T_VacuumStmt | NodeTag::T_IndexStmt | NodeTag::T_ReindexStmt
                );
            let publishes = guarded(|| {
                if is_top {
                    packing::before_vacuum(node);
                }
                publication::before(node)
            });
            (call.statement, (publishes, if has_after { node } else { std::ptr::null_mut() }))
        }
    }

    fn next() -> pg_sys::ProcessUtility_hook_type {
        NEXT.next()
    }

    unsafe fn after(_call: Call, (publishes, told): Self::Kept) {
        // SAFETY: what was noted before. Transactions end meanwhile; the statement outlives them.
        unsafe {
            if !publishes.is_null() {
                guarded(|| publication::after(publishes));
            }
            if !told.is_null()
                && let Some(after) = AFTER.get()
            {
                guarded(|| after(told));
            }
        }
    }
}
