//! What `CALL engine.colcompress_repack` is doing now in each session. `engine.packing_progress` shows it
//! beside the worker.
//!
//! A worker tells what it does by its activity (`process::report`), but the activity of a session is its
//! statement. So a session that packs has a place in shared memory. There are `CALLS` places.
//!
//! Invariant: the session gives the place back when the CALL ends, and when one of its transactions is rolled
//! back.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};

use super::{Held, text_of, words_of};
use crate::host::fmgr;
use crate::table_am::packing::process;

crate::sql_function!(pg_finfo_colonnade_packing_calls);

/// Sessions that can be shown.
pub(super) const CALLS: usize = 64;
/// Words of a place: process (0: free), user, what it does.
pub(super) const CALL_WORDS: usize = 2 + super::TEXT_WORDS;

thread_local! {
    static IS_CALL: Cell<bool> = const { Cell::new(false) };
}

fn own_pid() -> u64 {
    // SAFETY: a constant of the process.
    u64::try_from(unsafe { pg_sys::MyProcPid }).unwrap_or(0)
}

fn at(held: &Held, pid: u64) -> Option<&'static [AtomicU64; CALL_WORDS]> {
    held.0.calls.iter().find(|place| place[0].load(Ordering::Relaxed) == pid)
}

/// This session begins to pack.
pub(in crate::table_am::packing) fn begin_call() {
    IS_CALL.set(true);
}

/// This session has stopped packing.
pub(in crate::table_am::packing) fn end_call() {
    if IS_CALL.replace(false)
        && let Some(held) = Held::get()
        && let Some(place) = at(&held, own_pid())
    {
        place[0].store(0, Ordering::Relaxed);
    }
}

/// Says what packing is doing, in a session or in the worker. It does nothing in any other process.
pub(in crate::table_am::packing) unsafe fn tell(what: &str) {
    if !IS_CALL.get() {
        // SAFETY: a process of the server.
        unsafe {
            if !pg_sys::MyBgworkerEntry.is_null() {
                process::report(what);
            }
        }
        return;
    }
    // SAFETY: a look at the session's own state.
    let user = unsafe { pg_sys::GetSessionUserId() };
    let words = words_of(what);
    let pid = own_pid();
    if let Some(held) = Held::get()
        && let Some(place) = at(&held, pid).or_else(|| at(&held, 0))
    {
        place[1].store(user.to_u32().into(), Ordering::Relaxed);
        place.iter().skip(2).zip(words).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        place[0].store(pid, Ordering::Relaxed);
    }
}

/// `engine.packing_calls()`, for users who may see what the session runs.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_packing_calls(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the result's row type is that of the SQL declaration.
    unsafe {
        pg_sys::InitMaterializedSRF(call, 0);
        let found: Vec<(u64, u64, String)> = Held::get().map_or_else(Vec::new, |held| {
            let taken = held.0.calls.iter().filter(|place| place[0].load(Ordering::Relaxed) != 0);
            let read = |at: &AtomicU64| at.load(Ordering::Relaxed);
            taken
                .map(|place| {
                    let words: Vec<u64> = place.iter().skip(2).map(read).collect();
                    (read(&place[0]), read(&place[1]), text_of(&words))
                })
                .collect()
        });
        let me = pg_sys::GetUserId();
        let sees_all = pg_sys::has_privs_of_role(me, Oid::from(pg_sys::ROLE_PG_READ_ALL_STATS));
        for (pid, user, what) in found {
            let user = Oid::from(u32::try_from(user).unwrap_or(0));
            if !sees_all && !pg_sys::has_privs_of_role(me, user) {
                continue;
            }
            let mut values = [Datum::from(pid), super::report::text(&what)];
            let mut nulls = [false; 2];
            fmgr::put_row(call, &mut values, &mut nulls);
        }
        Datum::null()
    }
}
