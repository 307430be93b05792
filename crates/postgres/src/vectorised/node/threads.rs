//! How many threads an execution may have.
//!
//! The node asks for workers at each start:
//! - little work gets none, because to start a thread would take longer;
//! - a query gets as many workers as Gather would ask for;
//! - the workers and the backend's own thread are at most `colonnade.max_threads`;
//! - all queries of the cluster together have at most `max_parallel_workers` and `max_worker_processes`,
//!   counted in shared memory;
//! - parallel workers of the server get none.
//!
//! Invariant: reserved workers are given back when the reservation is dropped, also after an ERROR. A backend
//! that dies otherwise takes the shared memory with it.

use std::sync::atomic::{AtomicU32, Ordering};

use pgrx::pg_sys;

use crate::host::shared_memory::Shared;
use crate::options::settings::{MAX_THREADS, vectorised_min_rows};

/// Threads are started for work that costs at least as much as reading this many times `vectorised_min_rows`
/// rows.
const WORTH: f64 = 20.0;

/// Worker threads of all backends.
static COUNTER: Shared<AtomicU32> = Shared::new(c"colonnade threads");

/// Asks for the shared memory.
///
/// # Safety
/// Runs once, while the server preloads the library.
pub unsafe fn register() {
    // SAFETY: the server preloads the library, once.
    unsafe { COUNTER.register() }
}

/// Worker threads that were reserved.
#[derive(Debug)]
pub struct Reservation {
    workers: u32,
}

impl Reservation {
    /// Reserves as many threads as this query may have now for work of this estimated cost; perhaps none.
    pub fn take(cost: f64) -> Self {
        // SAFETY: reads settings and a variable of this process.
        let (wanted, limit) = unsafe {
            let rows = cost / pg_sys::cpu_tuple_cost.max(f64::MIN_POSITIVE);
            if pg_sys::ParallelWorkerNumber >= 0 || rows < WORTH * vectorised_min_rows() {
                return Self { workers: 0 };
            }
            let most = pg_sys::max_parallel_workers.min(pg_sys::max_worker_processes);
            (pg_sys::max_parallel_workers_per_gather, most)
        };
        let wanted = u32::try_from(wanted.min(MAX_THREADS.get() - 1)).unwrap_or(0);
        let limit = u32::try_from(limit).unwrap_or(0);
        let Some(counter) = COUNTER.get().filter(|_| wanted > 0) else { return Self { workers: 0 } };
        let mut workers = 0;
        // The closure is called again if another backend was faster.
        let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            workers = wanted.min(limit.saturating_sub(used));
            Some(used + workers)
        });
        Self { workers }
    }

    /// Threads that compute, the main one among them.
    pub const fn threads(&self) -> usize {
        1 + self.workers as usize
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(counter) = COUNTER.get().filter(|_| self.workers > 0) {
            counter.fetch_sub(self.workers, Ordering::Relaxed);
        }
    }
}
