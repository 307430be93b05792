//! Giving way: a process that keeps a lock on a table for long is cancelled soon after somebody else wants a
//! lock that has to wait for it.
//!
//! Used by packing's worker for what may wait for other transactions itself. The server looks for a deadlock
//! when somebody has waited for `deadlock_timeout`, and who looks is who loses. So whoever waits for the
//! worker would lose, where the worker waits for its snapshot. The worker has to go before that.
//!
//! A thread of the worker's looks at the lock's counters, because the worker's own thread sleeps in the
//! server. It reads two numbers of shared memory, and sends the process the signal that cancels a statement.
//! Invariant: nothing is done between the end of the work and the end of the thread. An ERROR of the work
//! gives the lock back, and the thread may read it for a moment after that: shared memory stays where it is.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pgrx::pg_sys::{self, LOCK, LOCKMODE, Oid};

use super::{server_locks, worker};
use crate::compat;

/// The longest time between two looks, in milliseconds. Within it a user's wait is not noticed.
const LONGEST: i32 = 100;
/// So many looks at least before the server looks for a deadlock.
const LOOKS: i32 = 8;

/// A lock of this session that somebody else may wait for.
struct Watched(*mut LOCK);

// SAFETY: what the pointer leads to is memory that all processes share, and is only read.
unsafe impl Send for Watched {}

impl Watched {
    /// Whether somebody waits. The numbers may be those of two moments, which the next look sets right.
    fn has_waiters(&self) -> bool {
        // SAFETY: shared memory stays mapped. The lock stays in its place while the process holds it.
        unsafe {
            let requested = (&raw const (*self.0).nRequested).read_volatile();
            requested > (&raw const (*self.0).nGranted).read_volatile()
        }
    }
}

/// Runs `what`, which catches its ERRORs, under a lock of the session's on a table of this database. If
/// somebody else has to wait for a lock on the table, `what` is cancelled. None if the lock is not free.
///
/// # Safety
/// No transaction is open before and after. SIGINT cancels what this process does.
pub unsafe fn while_nobody_waits<T>(table: Oid, mode: u32, what: impl FnOnce() -> T) -> Option<T> {
    let (tag, mode) = (server_locks::relation_tag(table), mode as LOCKMODE);
    // SAFETY: the lock is given back by the session that took it; the thread ends before.
    unsafe {
        let watched = Watched(compat::lock_for_session(&tag, mode).as_ref()?.lock);
        let pause = Duration::from_millis((pg_sys::DeadlockTimeout / LOOKS).clamp(1, LONGEST) as u64);
        let (done, is_done) = channel::<()>();
        let process = libc::getpid();
        let thread = worker::spawn("colonnade gives way", move || {
            let mut before = false;
            while is_done.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                // Twice in a row: a lock that is just being granted has the same numbers for a moment.
                let now = watched.has_waiters();
                if now && before {
                    libc::kill(process, libc::SIGINT);
                }
                before = now;
            }
        });
        let result = what();
        drop(done);
        // Without a thread, the server's own way is left: whoever waits cancels, if it is no deadlock.
        if let Ok(thread) = thread {
            drop(thread.join());
        }
        // A signal for the work may have come after its end.
        pg_sys::QueryCancelPending = 0;
        // The end of a transaction by an ERROR gives back the session's locks, too.
        if server_locks::holds_lock(table, mode as u32) {
            pg_sys::LockRelease(&raw const tag, mode, true);
        }
        Some(result)
    }
}
