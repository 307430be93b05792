//! Threads beside the backend's own.
//!
//! Used by `storage::encoding` for `stripe::background`. The server knows one thread a process: a worker
//! gets what it works on, gives back a result, and never calls the server or touches its memory. Invariant: a
//! worker takes no signal, so that the server's handlers run where the server expects them.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread with every signal blocked. Errors: what the system says if it has no thread to give.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // SAFETY: plain calls on masks of our own. A thread inherits the mask of whoever starts it, so signals
    // are blocked before it exists; this thread has its old mask again at once, and nothing in between can
    // unwind.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        let mut before = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        if libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        let started = Builder::new().name(name.into()).spawn(work);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        started
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::spawn;

    fn blocked(signal: i32) -> bool {
        // SAFETY: reads this thread's mask.
        unsafe {
            let mut mask = std::mem::zeroed::<libc::sigset_t>();
            libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &raw mut mask);
            libc::sigismember(&raw const mask, signal) == 1
        }
    }

    #[test]
    fn only_the_worker_has_its_signals_blocked() {
        let signals =
            [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGQUIT, libc::SIGALRM, libc::SIGHUP];
        let inside = spawn("test", move || signals.map(blocked)).unwrap().join().unwrap();
        assert_eq!(inside, [true; 6]);
        assert_eq!(signals.map(blocked), [false; 6]);
    }
}
