//! ERRORs of built-in functions about values, held back.
//!
//! Called by `vectorised/attempt` and by `early_value`. `vectorised/attempt` runs functions for rows that the
//! server's executor may never reach, so their ERRORs must not end the statement yet.
//!
//! An ERROR is caught without a subtransaction, because the end of one in the middle of a statement would end
//! more than the function. So nothing cleans up after the function, as an abort would.
//!
//! Invariants:
//! - Only expressions that `calls` finds tame are tried. A function that runs queries or a user's functions
//!   may leave things behind that only an abort puts in order.
//! - A user's function that `calls` has missed is stopped by `user_functions`.
//! - Only ERRORs that a value is the reason of are held back.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::pg_sys::{self, ResourceReleasePhase as Phase};

use super::user_functions;
use crate::host::identity::Identity;

/// An ERROR about a value was raised and held back.
#[derive(Debug, Clone, Copy)]
pub struct HeldBack;

/// The result of the work, unless it raises an ERROR about a value. Other ERRORs unwind.
///
/// # Safety
/// On the main thread, and the work is tame; it owns nothing, because an ERROR jumps out of it, and calls the
/// server bare, because a panic must not cross the guard.
pub unsafe fn attempt<T>(work: impl FnOnce() -> T) -> Result<T, HeldBack> {
    let identity = Identity::current();
    let mut origin = Origin::default();
    // SAFETY: on the main thread; the stack is put back before the mark goes.
    let (settings, (done, refused)) = unsafe {
        let settings = pg_sys::NewGUCNestLevel();
        let previous = pg_sys::error_context_stack;
        origin.mark = pg_sys::ErrorContextCallback {
            previous,
            callback: Some(note_origin),
            arg: (&raw mut origin).cast(),
        };
        pg_sys::error_context_stack = &raw mut origin.mark;
        let done = user_functions::refused(|| catch_unwind(AssertUnwindSafe(|| pg_guard_ffi_boundary(work))));
        pg_sys::error_context_stack = previous;
        (settings, done)
    };
    match done {
        Ok(value) => {
            // SAFETY: the level begun above.
            unsafe { pg_sys::AtEOXact_GUC(true, settings) };
            Ok(value)
        }
        Err(problem) => match problem.downcast_ref() {
            Some(CaughtError::PostgresError(_)) if refused || origin.is_value() => {
                // An abort would put these back, too.
                identity.restore();
                // SAFETY: the level begun above.
                unsafe { pg_sys::AtEOXact_GUC(false, settings) };
                Err(HeldBack)
            }
            _ => resume_unwind(problem),
        },
    }
}

/// Where an ERROR comes from. Code that runs a query adds a context to its ERRORs.
#[derive(Default)]
struct Origin {
    mark: pg_sys::ErrorContextCallback,
    /// Code inside has added a context.
    is_inner: bool,
    /// The SQLSTATE of the last message, as the server packs it. pgrx does not know all of them.
    code: i32,
}

impl Origin {
    fn is_value(&self) -> bool {
        !self.is_inner && is_of_a_value(self.code)
    }
}

/// Called by the server while it makes a message, after the contexts that were added inside.
unsafe extern "C-unwind" fn note_origin(origin: *mut c_void) {
    unsafe extern "C-unwind" {
        fn geterrcode() -> i32;
    }
    // SAFETY: the mark's argument; a message is made.
    unsafe {
        let origin = origin.cast::<Origin>();
        (*origin).is_inner |= pg_sys::error_context_stack != &raw mut (*origin).mark;
        (*origin).code = geterrcode();
    }
}

/// Releases what failed work holds of the server's (mostly entries of caches), before the caller goes on.
///
/// # Safety
/// As `attempt`, which the work asks as often as it likes; what it makes with it keeps nothing from one call
/// to the next, as expressions of composite types do.
pub unsafe fn released<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    // SAFETY: a query is running, so there is an owner. As at the end of a subtransaction; an ERROR that
    // unwinds leaves the child to its parent.
    unsafe {
        let parent = pg_sys::CurrentResourceOwner;
        let owner = pg_sys::ResourceOwnerCreate(parent, c"Colonnade value".as_ptr());
        pg_sys::CurrentResourceOwner = owner;
        let value = work();
        pg_sys::CurrentResourceOwner = parent;
        for phase in [
            Phase::RESOURCE_RELEASE_BEFORE_LOCKS,
            Phase::RESOURCE_RELEASE_LOCKS,
            Phase::RESOURCE_RELEASE_AFTER_LOCKS,
        ] {
            pg_sys::ResourceOwnerRelease(owner, phase, value.is_ok(), false);
        }
        pg_sys::ResourceOwnerDelete(owner);
        value
    }
}

/// Whether an ERROR is about a value. The class of its SQLSTATE decides, the first two characters.
const fn is_of_a_value(code: i32) -> bool {
    use PgSqlErrorCode as C;
    /// The server packs six bits for each character, the first one lowest.
    const CLASS: isize = (1 << 12) - 1;
    let (code, class) = (code as isize, code as isize & CLASS);
    class == C::ERRCODE_DATA_EXCEPTION as isize & CLASS
        || class == C::ERRCODE_FEATURE_NOT_SUPPORTED as isize & CLASS
        || class == C::ERRCODE_SYNTAX_ERROR as isize & CLASS
        || class == C::ERRCODE_PROGRAM_LIMIT_EXCEEDED as isize & CLASS
        // Names in texts: 'nowhere.t'::regclass.
        || class == C::ERRCODE_INVALID_SCHEMA_NAME as isize & CLASS
        || class == C::ERRCODE_INVALID_CATALOG_NAME as isize & CLASS
        || code == C::ERRCODE_UNSAFE_NEW_ENUM_VALUE_USAGE as isize
}
