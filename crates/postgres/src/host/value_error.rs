//! ERRORs of built-in functions about values, held back.
//!
//! Callers: `vectorised/attempt`, for functions that are asked for rows that the server's executor may not reach, and `early_value`. There is no subtransaction, whose end in the middle of a statement
//! would end more than this; so invariant: only what [`Calls`] finds tame is tried (a function that runs queries or functions of a user leaves things that only an abort puts in order), and only
//! ERRORs that a value is the reason of are held back.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pgrx::pg_guard;
use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid, ResourceReleasePhase as Phase};

use super::tree;

/// The languages `internal` and `c` (pg_language.dat).
const INTERNAL: u32 = 12;
const C: u32 = 13;
/// `pg_get_ruledef`, which is marked as if it ran none.
const RUNS_QUERIES: [u32; 2] = [1573, 2504];

/// What the work gives; None where it raises an ERROR about a value. Other ERRORs unwind.
///
/// # Safety
/// On the main thread, and the work is tame; it owns nothing, because an ERROR jumps out of it, and calls the server bare, because a panic must not cross the guard.
pub unsafe fn attempt<T>(work: impl FnOnce() -> T) -> Option<T> {
    let (mut user, mut context) = (Oid::INVALID, 0);
    // SAFETY: the caller's promise.
    unsafe { pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context) };
    // SAFETY: the caller's promise.
    let guarded = || unsafe { pg_guard_ffi_boundary(work) };
    match catch_unwind(AssertUnwindSafe(guarded)) {
        Ok(value) => Some(value),
        Err(problem) => match problem.downcast_ref() {
            Some(CaughtError::PostgresError(report)) if is_of_a_value(report.sql_error_code()) => {
                // An abort would put it back.
                // SAFETY: what it was before.
                unsafe { pg_sys::SetUserIdAndSecContext(user, context) };
                None
            }
            _ => resume_unwind(problem),
        },
    }
}

/// The same, and what the work holds of the server's (entries of caches, mostly) is let go where it fails.
///
/// # Safety
/// As `attempt`; the work keeps nothing from one call to the next, as expressions of composite types do.
pub unsafe fn attempt_released<T>(work: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: a query is running, so there is an owner. As at the end of a subtransaction; an ERROR that unwinds leaves the child to its parent.
    unsafe {
        let parent = pg_sys::CurrentResourceOwner;
        let owner = pg_sys::ResourceOwnerCreate(parent, c"Colonnade value".as_ptr());
        pg_sys::CurrentResourceOwner = owner;
        let value = attempt(work);
        pg_sys::CurrentResourceOwner = parent;
        for phase in [
            Phase::RESOURCE_RELEASE_BEFORE_LOCKS,
            Phase::RESOURCE_RELEASE_LOCKS,
            Phase::RESOURCE_RELEASE_AFTER_LOCKS,
        ] {
            pg_sys::ResourceOwnerRelease(owner, phase, value.is_some(), false);
        }
        pg_sys::ResourceOwnerDelete(owner);
        value
    }
}

/// By the class of a SQLSTATE, its first two characters.
const fn is_of_a_value(code: PgSqlErrorCode) -> bool {
    use PgSqlErrorCode as C;
    /// The server packs six bits for each character, the first one lowest.
    const CLASS: isize = (1 << 12) - 1;
    let class = code as isize & CLASS;
    class == C::ERRCODE_DATA_EXCEPTION as isize & CLASS
        || class == C::ERRCODE_FEATURE_NOT_SUPPORTED as isize & CLASS
        || class == C::ERRCODE_SYNTAX_ERROR as isize & CLASS
        || class == C::ERRCODE_PROGRAM_LIMIT_EXCEEDED as isize & CLASS
}

/// What an expression calls.
#[derive(Debug, Default, Clone, Copy)]
pub struct Calls {
    /// Sub-plans, functions that are not built in, or that may run queries.
    others: bool,
    /// Functions that look things up, casts of users among them.
    stable: bool,
    /// Values of types that are not built in, which have functions of their own.
    user_types: bool,
}

impl Calls {
    /// Looks at an expression.
    ///
    /// # Safety
    /// A valid expression.
    pub unsafe fn of(node: *mut Node) -> Self {
        let mut found = Self::default();
        // SAFETY: the walker's data lives as long as it runs.
        unsafe { tree::guarded(|| visit(node, (&raw mut found).cast())) };
        found
    }

    /// True where an ERROR of it may be held back.
    pub const fn are_tame(self) -> bool {
        !(self.others || (self.stable && self.user_types))
    }

    /// True where it knows built-in types only, too.
    pub const fn are_plain(self) -> bool {
        !self.others && !self.user_types
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut Node, data: *mut c_void) -> bool {
    // SAFETY: the server passes valid nodes, or null, and the data of `Calls::of`.
    unsafe {
        if node.is_null() {
            return false;
        }
        let found = data.cast::<Calls>();
        match (*node).type_ {
            NodeTag::T_SubPlan
            | NodeTag::T_AlternativeSubPlan
            | NodeTag::T_CoerceToDomain
            | NodeTag::T_ConvertRowtypeExpr
            | NodeTag::T_NextValueExpr
            | NodeTag::T_XmlExpr => (*found).others = true,
            NodeTag::T_Var
            | NodeTag::T_Const
            | NodeTag::T_Param
            | NodeTag::T_FuncExpr
            | NodeTag::T_OpExpr
            | NodeTag::T_CoerceViaIO
            | NodeTag::T_ArrayExpr
            | NodeTag::T_FieldSelect
            | NodeTag::T_RelabelType => {
                let kind = pg_sys::exprType(node);
                (*found).user_types |= kind.to_u32() >= pg_sys::FirstNormalObjectId
                    || matches!(kind, pg_sys::RECORDOID | pg_sys::RECORDARRAYOID);
            }
            NodeTag::T_RowExpr => (*found).user_types = true,
            _ => {}
        }
        pg_sys::check_functions_in_node(node, Some(note), data);
        (*found).others || tree::walk(node, visit, data)
    }
}

/// Notes what a function is; true ends the look at a node.
#[pg_guard]
unsafe extern "C-unwind" fn note(function: Oid, data: *mut c_void) -> bool {
    // SAFETY: the data of `Calls::of`; catalog look-ups, and a tuple that was found has the catalog's columns.
    unsafe {
        let found = data.cast::<Calls>();
        let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, Datum::from(function));
        if tuple.is_null() {
            (*found).others = true;
            return true;
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
        (*found).others |= function.to_u32() >= pg_sys::FirstNormalObjectId
            || !matches!(row.prolang.to_u32(), INTERNAL | C)
            || row.proparallel as u8 != pg_sys::PROPARALLEL_SAFE
            || RUNS_QUERIES.contains(&function.to_u32());
        (*found).stable |= row.provolatile as u8 != pg_sys::PROVOLATILE_IMMUTABLE;
        pg_sys::ReleaseSysCache(tuple);
        (*found).others
    }
}
