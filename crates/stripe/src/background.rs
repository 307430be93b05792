//! A stripe being encoded by a thread of its own while whoever has the rows goes on.
//!
//! A host calls [`encode_in_background`] when a stripe is full, asks `is_done` now and then, and takes the
//! stripe by `wait`. The thread shares the stripe's vectors, which nobody changes any more. It hands back
//! bytes, and calls nothing of the host's. How a thread is started is the host's business (`start`): a server
//! may have to block signals in it. Waiting asks the host every few milliseconds whether to go on.
//! Invariant: a thread ends before its `Background` does. Dropping one tells the thread to stop and waits
//! until it has, which takes it a few milliseconds.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use encodings::{Codec, NoPglz};
use vector::{Error, Result, Vector};

use crate::writer::{EncodedStripe, StripeOptions, write_stripe};

/// How often a waiting caller is asked whether to go on.
const PATIENCE: Duration = Duration::from_millis(10);

/// What a thread does. It catches its own panics.
pub type Work = Box<dyn FnOnce() + Send>;

/// A thread and what will come of it.
#[derive(Debug)]
pub struct Background<T> {
    result: Receiver<Result<T>>,
    done: Arc<AtomicBool>,
    cancelled: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Starts encoding what [`write_stripe`] would. None where it must not or cannot be done in another thread:
/// pglz is a function of the host's, which only the host's own thread may call, and the system may have no
/// thread to give. `options.codecs` and `options.check` are not used: they are the caller's thread's.
pub fn encode_in_background(
    row_count: u32,
    columns: &Arc<Vec<Vector>>,
    options: &StripeOptions<'_>,
    start: impl FnOnce(Work) -> io::Result<JoinHandle<()>>,
) -> Option<Background<EncodedStripe>> {
    if options.codec == Codec::Pglz {
        return None;
    }
    let StripeOptions { layout, chunk_rows, codec, level, force, bloom_columns, .. } = *options;
    let bloom_columns = bloom_columns.to_vec();
    let columns = Arc::clone(columns);
    let work = move |check: &dyn Fn() -> Result<()>| {
        let bloom_columns = &bloom_columns;
        let options =
            StripeOptions { layout, chunk_rows, codec, level, force, codecs: &NoPglz, bloom_columns, check };
        write_stripe(row_count, &columns, &options)
    };
    Background::start(work, start).ok()
}

impl<T: Send + 'static> Background<T> {
    /// Has a thread do `work`. It is given a function to call every few milliseconds, whose error, that it
    /// is to stop, it passes on. Errors: those of `start`.
    fn start(
        work: impl FnOnce(&dyn Fn() -> Result<()>) -> Result<T> + Send + 'static,
        start: impl FnOnce(Work) -> io::Result<JoinHandle<()>>,
    ) -> io::Result<Self> {
        let done = Arc::new(AtomicBool::new(false));
        let cancelled = Arc::new(AtomicBool::new(false));
        let (sender, result) = sync_channel(1);
        let (ready, stop) = (Arc::clone(&done), Arc::clone(&cancelled));
        let work = move || {
            let check = || match stop.load(Ordering::Relaxed) {
                true => Err(Error::Host("encoding was cancelled".into())),
                false => Ok(()),
            };
            let outcome = caught(|| work(&check));
            // Nobody is waiting any more when the stripe is not wanted.
            let _ = sender.send(outcome);
            ready.store(true, Ordering::Release);
        };
        let thread = start(Box::new(work))?;
        Ok(Self { result, done, cancelled, thread: Some(thread) })
    }

    /// True when [`wait`](Self::wait) would not wait.
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// The result, when it is there. `check` is called every few milliseconds until then. Its error, or its
    /// unwinding, ends the waiting, and the thread's result is lost.
    pub fn wait(self, check: &dyn Fn() -> Result<()>) -> Result<T> {
        loop {
            match self.result.recv_timeout(PATIENCE) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Timeout) => check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Host("the encoding thread ended without a result".into()));
                }
            }
        }
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panics are caught inside.
            let _ = thread.join();
        }
    }
}

/// What `work` gives; a panic as an error.
fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::Host(format!("encoding a stripe failed: {}", text.unwrap_or("panic"))))
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread::{JoinHandle, sleep, spawn};
    use std::time::{Duration, Instant};

    use encodings::Codec;
    use vector::{Error, LogicalType, Values, Vector};

    use super::{Background, Work, caught, encode_in_background};
    use crate::{StripeOptions, write_stripe};

    const ROWS: u32 = 5_000;

    fn columns() -> Arc<Vec<Vector>> {
        let column = |step: i64| {
            let values = (0..i64::from(ROWS)).map(|row| row * row * step % 997);
            Vector::new(LogicalType::Int64, Values::Int64(values.collect()))
        };
        Arc::new(vec![column(1), column(31)])
    }

    fn thread(work: Work) -> io::Result<JoinHandle<()>> {
        Ok(spawn(work))
    }

    fn message<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
        let Err(Error::Host(message)) = outcome else { panic!("{outcome:?}") };
        message
    }

    #[test]
    fn the_bytes_are_those_of_the_writer() {
        let columns = columns();
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            let options =
                StripeOptions { chunk_rows: 700, codec, bloom_columns: &[1], ..StripeOptions::default() };
            let there = encode_in_background(ROWS, &columns, &options, thread).unwrap();
            let here = write_stripe(ROWS, &columns, &options).unwrap();
            let there = there.wait(&|| Ok(())).unwrap();
            assert!(here.bytes == there.bytes && here.summary == there.summary);
            assert_eq!(
                (here.footer_offset, here.footer_length, here.row_count, here.report),
                (there.footer_offset, there.footer_length, there.row_count, there.report)
            );
        }
    }

    #[test]
    fn errors_of_the_writer_come_back() {
        let there = encode_in_background(1, &columns(), &StripeOptions::default(), thread).unwrap();
        assert!(matches!(there.wait(&|| Ok(())), Err(Error::InvalidInput(_))));
    }

    #[test]
    fn some_stripes_are_left_to_the_caller() {
        let pglz = StripeOptions { codec: Codec::Pglz, ..StripeOptions::default() };
        assert!(encode_in_background(ROWS, &columns(), &pglz, |_| panic!("started")).is_none());
        let none = |_| Err(io::ErrorKind::WouldBlock.into());
        assert!(encode_in_background(ROWS, &columns(), &StripeOptions::default(), none).is_none());
    }

    #[test]
    fn encoding_stops_when_it_is_told_to() {
        let (go, held) = channel();
        let start = |work: Work| {
            Ok(spawn(move || {
                held.recv().unwrap();
                work();
            }))
        };
        let there = encode_in_background(ROWS, &columns(), &StripeOptions::default(), start).unwrap();
        assert!(!there.is_done());
        there.cancelled.store(true, Ordering::Relaxed);
        go.send(()).unwrap();
        assert!(message(there.wait(&|| Ok(()))).ends_with("cancelled"));
    }

    /// A thread that works until it is told to stop; the flag says that it has ended.
    fn endless() -> (Background<()>, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let start = |work: Work| {
            Ok(spawn(move || {
                work();
                sleep(Duration::from_millis(20));
                flag.store(true, Ordering::Release);
            }))
        };
        let work = |check: &dyn Fn() -> vector::Result<()>| {
            loop {
                check()?;
                sleep(Duration::from_millis(1));
            }
        };
        (Background::start(work, start).unwrap(), ended)
    }

    #[test]
    fn a_thread_ends_before_it_is_dropped() {
        let (there, ended) = endless();
        sleep(Duration::from_millis(5));
        assert!(!ended.load(Ordering::Acquire) && !there.is_done());
        drop(there);
        assert!(ended.load(Ordering::Acquire));
    }

    #[test]
    fn waiting_ends_when_the_caller_is_cancelled() {
        let (there, ended) = endless();
        let asked = there.wait(&|| Err(Error::Host("no more".into())));
        assert_eq!(message(asked), "no more");
        assert!(ended.load(Ordering::Acquire));
        let (there, ended) = endless();
        let unwound = catch_unwind(AssertUnwindSafe(|| there.wait(&|| panic!("an interrupt"))));
        assert!(unwound.is_err() && ended.load(Ordering::Acquire));
    }

    #[test]
    fn a_panic_inside_becomes_an_error() {
        let there = Background::<()>::start(|_| panic!("inside"), thread).unwrap();
        assert_eq!(message(there.wait(&|| Ok(()))), "encoding a stripe failed: inside");
    }

    #[test]
    fn done_means_that_nobody_waits() {
        let there = Background::start(|_| Ok(7), thread).unwrap();
        let begun = Instant::now();
        while !there.is_done() && begun.elapsed() < Duration::from_secs(20) {
            sleep(Duration::from_millis(1));
        }
        assert!(there.is_done());
        assert_eq!(there.wait(&|| panic!("asked")), Ok(7));
    }

    #[test]
    fn a_panic_becomes_an_error() {
        fn says(work: impl FnOnce()) -> String {
            message(caught(|| {
                work();
                Ok(())
            }))
        }
        let number = 7;
        assert!(says(|| panic!("plain")).ends_with("plain"));
        assert!(says(|| panic!("with {number}")).ends_with("with 7"));
        assert_eq!(caught(|| Ok(1)), Ok(1));
    }
}
