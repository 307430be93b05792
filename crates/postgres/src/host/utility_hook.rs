//! A hook around utility statements, without what each would repeat.
//!
//! Used by `options`, `storage::pending_rows`, `table_am`, `fdw` and `transfer`. Each says what it does
//! before and after a statement. The next hook is called as plain C (`unguarded`) from a frame that owns
//! nothing, so an ERROR of the statement passes with all its fields. What is done before and after guards
//! itself.

use std::ffi::c_char;

use pgrx::pg_sys::{
    DestReceiver, ParamListInfo, PlannedStmt, ProcessUtility_hook_type, ProcessUtilityContext,
    QueryCompletion, QueryEnvironment,
};

use super::unguarded;

/// A statement as the server hands it to a hook.
#[derive(Clone, Copy)]
pub struct Call {
    /// The statement.
    pub statement: *mut PlannedStmt,
    /// The text that it is in.
    pub text: *const c_char,
    /// Whether it is a whole statement of the user's, or a part of one.
    pub context: ProcessUtilityContext::Type,
    /// Relations that are no tables, as of a trigger.
    pub environment: *mut QueryEnvironment,
    /// Where it is noted what the statement has done. May be null.
    pub completion: *mut QueryCompletion,
}

/// What a hook does around a statement.
pub trait UtilityHook {
    /// What is kept from before to after. Nothing drops it: after an ERROR nobody comes back.
    type Kept: Copy;

    /// Before the statement. Returns what is to run: the statement, another one, or null if it is done.
    ///
    /// # Safety
    /// Called by the server. It guards itself.
    unsafe fn before(call: Call) -> (*mut PlannedStmt, Self::Kept);

    /// The hook behind this one.
    fn next() -> ProcessUtility_hook_type;

    /// After what `before` has returned was run.
    ///
    /// # Safety
    /// As `before`.
    unsafe fn after(call: Call, kept: Self::Kept);
}

/// The function for the server's slot.
pub fn hook<H: UtilityHook>() -> ProcessUtility_hook_type {
    #[allow(clippy::too_many_arguments, reason = "the server's signature")]
    unsafe extern "C-unwind" fn run<H: UtilityHook>(
        statement: *mut PlannedStmt,
        text: *const c_char,
        read_only_tree: bool,
        context: ProcessUtilityContext::Type,
        params: ParamListInfo,
        environment: *mut QueryEnvironment,
        dest: *mut DestReceiver,
        completion: *mut QueryCompletion,
    ) {
        // SAFETY: the chain is called as the server would call it; this frame owns nothing.
        unsafe {
            let call = Call { statement, text, context, environment, completion };
            let (run, kept) = H::before(call);
            if run.is_null() {
                return;
            }
            let next = H::next().unwrap_or(unguarded::standard_ProcessUtility);
            next(run, text, read_only_tree, context, params, environment, dest, completion);
            H::after(call, kept);
        }
    }
    Some(run::<H>)
}
