//! A full stripe being encoded by a thread of its own while the backend goes on reading rows.
//!
//! `set` starts the worker and waits for it. The worker shares the stripe's vectors, which nobody changes any
//! more, and hands back bytes. The backend's own thread puts these on pages. Waiting looks for interrupts.
//!
//! Invariant: a worker ends before its `Encoding` does. Dropping an `Encoding` tells the worker to stop and
//! waits until it has stopped, which takes a few milliseconds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use encodings::{Codec, NoPglz};
use stripe::{EncodedStripe, StripeOptions};
use vector::{Error, Result, Vector};

use crate::host::worker;

/// How often a waiting backend looks for interrupts.
const PATIENCE: Duration = Duration::from_millis(10);

/// A worker and its result to come.
pub(super) struct Encoding {
    result: Receiver<Result<EncodedStripe>>,
    done: Arc<AtomicBool>,
    cancelled: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Encoding {
    /// Starts encoding. None if it must not or cannot be done beside the backend. pglz is a function of the
    /// server, which only the backend's own thread may call. And the system may refuse a thread.
    pub fn start(row_count: u32, columns: &Arc<Vec<Vector>>, options: &StripeOptions<'_>) -> Option<Self> {
        if options.codec == Codec::Pglz {
            return None;
        }
        let (chunk_rows, codec, level) = (options.chunk_rows, options.codec, options.level);
        let columns = Arc::clone(columns);
        let done = Arc::new(AtomicBool::new(false));
        let cancelled = Arc::new(AtomicBool::new(false));
        let (sender, result) = sync_channel(1);
        let (ready, stop) = (Arc::clone(&done), Arc::clone(&cancelled));
        let work = move || {
            let check = || match stop.load(Ordering::Relaxed) {
                true => Err(Error::Host("encoding was cancelled".into())),
                false => Ok(()),
            };
            let options = StripeOptions {
                chunk_rows,
                codec,
                level,
                codecs: &NoPglz,
                check: &check,
                ..StripeOptions::default()
            };
            let encoded = caught(|| stripe::write_stripe(row_count, &columns, &options));
            // Sending fails if the stripe is not wanted any more and nobody waits.
            let _ = sender.send(encoded);
            ready.store(true, Ordering::Release);
        };
        let thread = worker::spawn("colonnade load", work).ok()?;
        Some(Self { result, done, cancelled, thread: Some(thread) })
    }

    /// True when [`wait`](Self::wait) would not wait.
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Waits for the stripe. An interrupt meanwhile raises its ERROR, and the worker's result is lost.
    pub fn wait(self) -> Result<EncodedStripe> {
        loop {
            match self.result.recv_timeout(PATIENCE) {
                Ok(encoded) => return encoded,
                Err(RecvTimeoutError::Timeout) => {
                    pgrx::check_for_interrupts!();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Host("the encoding thread ended without a result".into()));
                }
            }
        }
    }
}

impl Drop for Encoding {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread's panics are caught inside, so there is no error to handle here.
            let _ = thread.join();
        }
    }
}

/// The result of `work`. A panic becomes an error.
fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::Host(format!("encoding a stripe failed: {}", text.unwrap_or("panic"))))
    })
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::caught;
    use vector::Error;

    #[test]
    fn a_panic_becomes_an_error() {
        fn says(work: impl FnOnce()) -> String {
            let ended = caught(|| {
                work();
                Ok(())
            });
            let Err(Error::Host(message)) = ended else { panic!("no error") };
            message
        }
        let number = 7;
        assert!(says(|| panic!("plain")).ends_with("plain"));
        assert!(says(|| panic!("with {number}")).ends_with("with 7"));
        assert_eq!(caught(|| Ok(1)), Ok(1));
    }
}
