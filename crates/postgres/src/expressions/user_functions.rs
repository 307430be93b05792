//! Keeps users' functions from running while ERRORs are held back.
//!
//! Called by `value_error`. Built-in functions may find others by a type (a cast to json, an output function,
//! an order), and `calls` cannot know all of these.
//!
//! The server calls a hook when it looks up a function that is not built in, and another before it calls a
//! function with settings or rights of its own. For functions that are not written in C, an ERROR there ends
//! the attempt before anything of a user's has begun. What remains are functions that were looked up earlier,
//! as the orders of types. `foreign_order` knows these.

use std::cell::Cell;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FmgrHookEventType, FmgrInfo, Oid, SysCacheIdentifier};

use crate::host::error::{self, PgSqlErrorCode};
use crate::host::hooks::Chain;
use crate::host::own_type;

/// The languages `internal` and `c` (pg_language.dat).
const INTERNAL: u32 = 12;
const C: u32 = 13;

static NEXT_NEEDED: Chain<pg_sys::needs_fmgr_hook_type> = Chain::new();
static NEXT_CALL: Chain<pg_sys::fmgr_hook_type> = Chain::new();

thread_local! {
    /// Whether functions of users are refused, and whether one was.
    static REFUSING: Cell<bool> = const { Cell::new(false) };
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Puts the hooks in place, keeping those of others.
///
/// # Safety
/// Call it from `_PG_init`.
pub unsafe fn install() {
    // SAFETY: called once, from _PG_init.
    unsafe {
        NEXT_NEEDED.put_in_front(&raw mut pg_sys::needs_fmgr_hook, Some(is_needed));
        NEXT_CALL.put_in_front(&raw mut pg_sys::fmgr_hook, Some(at_call));
    }
}

/// Whether a function is written in C. It is the server's own, or one of a module that a superuser has
/// installed. The latter include handlers of access methods, which the server looks up when it rebuilds its
/// caches.
///
/// # Safety
/// In a transaction; catalog look-ups may raise an ERROR.
unsafe fn is_in_c(function: Oid) -> bool {
    // SAFETY: a catalog look-up; a tuple that was found has the catalog's columns.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(SysCacheIdentifier::PROCOID as i32, Datum::from(function));
        if tuple.is_null() {
            return false;
        }
        let language = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>()).prolang.to_u32();
        pg_sys::ReleaseSysCache(tuple);
        matches!(language, INTERNAL | C)
    }
}

/// Whether a function is the server's own, and not a query written in SQL, or one of ours.
///
/// # Safety
/// As `is_in_c`.
pub unsafe fn is_built_in(function: Oid) -> bool {
    match function.to_u32() < pg_sys::FirstNormalObjectId {
        // SAFETY: in a transaction.
        true => unsafe { is_in_c(function) },
        false => own_type::is_own_function(function),
    }
}

/// Does something during which a call of a user's function raises an ERROR. Returns the result, and whether
/// that happened. The work does not unwind.
pub fn refused<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let (refusing, before) = (REFUSING.replace(true), REFUSED.replace(false));
    let done = work();
    REFUSING.set(refusing);
    (done, REFUSED.replace(before))
}

fn refuse() -> ! {
    REFUSED.set(true);
    error::raise(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "a function of a user's inside a built-in one",
        "",
        "",
    );
}

/// Called when the server looks up a function that is not in its own table.
#[pg_guard]
unsafe extern "C-unwind" fn is_needed(function: Oid) -> bool {
    // SAFETY: the server looks the function up, too; others are asked as the server would ask them.
    unsafe {
        if REFUSING.get() && !is_in_c(function) {
            refuse();
        }
        NEXT_NEEDED.next().is_some_and(|next| next(function))
    }
}

/// Called around functions that have settings or rights of their own, or that a hook asked for. For these the
/// hook above is not always called.
#[pg_guard]
unsafe extern "C-unwind" fn at_call(
    event: FmgrHookEventType::Type,
    function: *mut FmgrInfo,
    argument: *mut Datum,
) {
    // SAFETY: as the server calls it.
    unsafe {
        if REFUSING.get() && event == FmgrHookEventType::FHET_START && !is_in_c((*function).fn_oid) {
            refuse();
        }
        if let Some(next) = NEXT_CALL.next() {
            next(event, function, argument);
        }
    }
}
