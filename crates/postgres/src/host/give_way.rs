//! Giving way: a process that keeps a lock on a table for long is cancelled soon after somebody else wants a
//! lock that has to wait for it.
//!
//! Used by packing's worker while it builds an index anew, which waits for other transactions. A session may
//! hold a snapshot that the worker waits for, and then wait for the worker's lock. After `deadlock_timeout`
//! the server would end that session, because a deadlock ends whoever finds it. So the worker goes before
//! that.
//!
//! The worker's own thread sleeps in the server. Therefore a second thread looks at the lock's counters. It
//! reads two numbers of shared memory, and sends the process the signal that cancels a statement.
//!
//! Invariant: the process holds the lock while the work runs, so the server keeps it in its place. An ERROR
//! of the work gives the lock back. Until the thread ends it may then read numbers of another lock. A signal
//! that comes of it is forgotten before anything else begins.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pgrx::pg_sys::{self, LOCK, LOCKMODE, Oid};

use super::{server_locks, worker};
use crate::compat;

/// The longest time between two looks, in milliseconds.
const LONGEST: i32 = 100;
/// So many looks at least within `deadlock_timeout`. Two of them have to see somebody wait.
const LOOKS: i32 = 8;

/// A lock of this session that somebody else may wait for.
struct Watched(*mut LOCK);

// SAFETY: what the pointer leads to is memory that all processes share, and is only read.
unsafe impl Send for Watched {}

impl Watched {
    /// Whether somebody waits. The numbers may be those of two moments, which the next look sets right.
    fn has_waiters(&self) -> bool {
        // SAFETY: shared memory stays mapped.
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
    // SAFETY: the session gives back the lock that it took. The thread has ended by then.
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
