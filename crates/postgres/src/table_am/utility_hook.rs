//! What is done before and after a utility statement.
//!
//! - Before a VACUUM: `dead_stripes` takes stripes out without a living row.
//! - After a statement that may publish tables: `publication` refuses tables with cold rows.
//! - After a VACUUM: what a floor above has asked for (`AfterVacuum`).
//!
//! Invariant: the next hook is called as plain C (see `host::unguarded`) from a frame that owns nothing.

use std::ffi::c_char;
use std::sync::OnceLock;

use pgrx::pg_sys::{self, PlannedStmt};

use super::packing;
use super::statements::publication;
use crate::host::hooks::Chain;
use crate::host::unguarded::{self, guarded};

static NEXT: Chain<pg_sys::ProcessUtility_hook_type> = Chain::new();
static AFTER: OnceLock<AfterVacuum> = OnceLock::new();

/// Gets the node of a VACUUM or ANALYZE that was carried out, under guard.
pub type AfterVacuum = unsafe fn(*mut pg_sys::Node);

/// Puts the hook in place, keeping those of others.
///
/// # Safety
/// Called once, from `_PG_init`.
pub unsafe fn install(after_vacuum: AfterVacuum) {
    let _ = AFTER.set(after_vacuum);
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
        let vacuums = is_top && (*(*statement).utilityStmt).type_ == pg_sys::NodeTag::T_VacuumStmt;
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
        if vacuums && let Some(after) = AFTER.get() {
            // VACUUM's transactions end meanwhile; the statement outlives them.
            guarded(|| after((*statement).utilityStmt));
        }
    }
}
