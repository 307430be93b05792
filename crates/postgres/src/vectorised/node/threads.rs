//! How many threads an execution may have.
//!
//! The node asks at each start. A query gets as many workers as Gather would ask for, at most `colonnade.max_threads` with the backend's own thread; all queries of the cluster together
//! at most `max_parallel_workers`, counted in shared memory. Parallel workers of the server get none. Invariant: what was reserved is given back when the reservation is
//! dropped, also after an ERROR; a backend that dies otherwise takes the shared memory with it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use pgrx::pg_guard;
use pgrx::pg_sys;

use crate::compat;
use crate::host::guc::MAX_THREADS;

/// Name of the counter in shared memory.
const NAME: &std::ffi::CStr = c"colonnade threads";

/// Worker threads of all backends. Its address is that of shared memory, the same in all of them.
static COUNTER: AtomicUsize = AtomicUsize::new(0);

static REQUEST: OnceLock<pg_sys::shmem_request_hook_type> = OnceLock::new();
static STARTUP: OnceLock<pg_sys::shmem_startup_hook_type> = OnceLock::new();

/// Asks for the shared memory.
///
/// # Safety
/// Runs once, while the server preloads the library.
pub unsafe fn register() {
    // SAFETY: hooks are plain globals; nothing else runs yet.
    unsafe {
        if REQUEST.set(pg_sys::shmem_request_hook).is_ok() {
            pg_sys::shmem_request_hook = Some(request);
        }
        if STARTUP.set(pg_sys::shmem_startup_hook).is_ok() {
            pg_sys::shmem_startup_hook = Some(startup);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: called by the server when sizes are added up.
    unsafe {
        if let Some(Some(previous)) = REQUEST.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
        pg_sys::RequestAddinShmemSpace(size_of::<AtomicU32>());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    // SAFETY: called by the server when the memory is there; the lock is held while it is looked up or made.
    unsafe {
        if let Some(Some(previous)) = STARTUP.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(compat::SHMEM_INIT_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let mut found = false;
        let place = pg_sys::ShmemInitStruct(NAME.as_ptr(), size_of::<AtomicU32>(), &raw mut found);
        if !found {
            place.cast::<AtomicU32>().write(AtomicU32::new(0));
        }
        COUNTER.store(place as usize, Ordering::Relaxed);
        pg_sys::LWLockRelease(lock);
    }
}

/// Worker threads that were reserved.
#[derive(Debug)]
pub struct Reservation {
    workers: u32,
}

impl Reservation {
    /// As many as this query may have now, perhaps none.
    pub fn take() -> Self {
        // SAFETY: reads settings and a variable of this process.
        let (wanted, limit) = unsafe {
            if pg_sys::ParallelWorkerNumber >= 0 {
                return Self { workers: 0 };
            }
            (pg_sys::max_parallel_workers_per_gather, pg_sys::max_parallel_workers)
        };
        let wanted = u32::try_from(wanted.min(MAX_THREADS.get() - 1)).unwrap_or(0);
        let limit = u32::try_from(limit).unwrap_or(0);
        let Some(counter) = counter().filter(|_| wanted > 0) else { return Self { workers: 0 } };
        let mut workers = 0;
        // The closure is called again where somebody else was faster.
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
        if let Some(counter) = counter().filter(|_| self.workers > 0) {
            counter.fetch_sub(self.workers, Ordering::Relaxed);
        }
    }
}

fn counter() -> Option<&'static AtomicU32> {
    // SAFETY: null, or the counter's place in shared memory, which lasts as long as the process.
    unsafe { (COUNTER.load(Ordering::Relaxed) as *const AtomicU32).as_ref() }
}
