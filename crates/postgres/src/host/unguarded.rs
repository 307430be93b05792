//! The server's functions behind the statement hooks, without pgrx's guard.
//!
//! pgrx turns an ERROR into a panic and back. This keeps SQLSTATE, message, detail and hint, but loses the
//! position in the statement, the CONTEXT lines and the names of table and constraint. If the whole executor
//! were called that way, every statement on every table would lose them.
//!
//! So a hook calls these functions, and the hooks of others, from a frame that owns nothing, which the
//! server's longjmp may pass. Its own work, before and after the call, runs in [`guarded`].

pub use pgrx::pg_sys::panic::pgrx_extern_c_guard as guarded;

use std::ffi::{c_char, c_int};

use pgrx::pg_sys::{
    DestReceiver, ParamListInfo, PlannedStmt, ProcessUtilityContext, QueryCompletion, QueryDesc,
    QueryEnvironment,
};

unsafe extern "C-unwind" {
    /// Starts a query's executor.
    pub fn standard_ExecutorStart(query: *mut QueryDesc, flags: c_int);
    /// Fires its AFTER triggers.
    pub fn standard_ExecutorFinish(query: *mut QueryDesc);
    /// Runs a utility statement.
    pub fn standard_ProcessUtility(
        plan: *mut PlannedStmt,
        source: *const c_char,
        read_only_tree: bool,
        context: ProcessUtilityContext::Type,
        parameters: ParamListInfo,
        environment: *mut QueryEnvironment,
        destination: *mut DestReceiver,
        completion: *mut QueryCompletion,
    );
}
