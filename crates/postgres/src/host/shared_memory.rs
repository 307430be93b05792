//! Places in the server's shared memory.
//!
//! A part of the extension declares a static `Shared<T>` and registers it while the library is preloaded.
//! `get` returns its place in every process.
//!
//! Invariant: the value is valid if all its bytes are zero, and is changed through atomics only.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pgrx::pg_guard;
use pgrx::pg_sys;

use super::hooks::Chain;
use super::server_locks::{SHMEM_INIT_LOCK, main_lock};

/// A value of type `T` that all processes share.
pub struct Shared<T> {
    name: &'static CStr,
    /// The value's address, which is the same in all processes.
    place: AtomicUsize,
    kind: PhantomData<fn() -> T>,
}

struct Part {
    name: &'static CStr,
    bytes: usize,
    place: &'static AtomicUsize,
    made: unsafe fn(),
}

static PARTS: Mutex<Vec<Part>> = Mutex::new(Vec::new());
static REQUEST: Chain<pg_sys::shmem_request_hook_type> = Chain::new();
static STARTUP: Chain<pg_sys::shmem_startup_hook_type> = Chain::new();

impl<T: Sync> Shared<T> {
    /// A place that is not there yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, place: AtomicUsize::new(0), kind: PhantomData }
    }

    /// Asks for the memory.
    ///
    /// # Safety
    /// Call it while the server preloads the library. All bytes zero are a `T`.
    pub unsafe fn register(&'static self) {
        // SAFETY: the caller's promise.
        unsafe { self.register_and(|| ()) }
    }

    /// Asks for the memory. `made` is called in each process once it has found the place.
    ///
    /// # Safety
    /// As above. `made` raises no ERROR.
    pub unsafe fn register_and(&'static self, made: unsafe fn()) {
        // SAFETY: hooks are plain globals; nothing else runs yet.
        unsafe {
            REQUEST.put_in_front(&raw mut pg_sys::shmem_request_hook, Some(request));
            STARTUP.put_in_front(&raw mut pg_sys::shmem_startup_hook, Some(startup));
        }
        for_parts(|parts| {
            parts.push(Part { name: self.name, bytes: size_of::<T>(), place: &self.place, made })
        });
    }

    /// The value. None before the server has made its shared memory.
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or the place in shared memory, which lasts as long as the process.
        unsafe { (self.place.load(Ordering::Relaxed) as *const T).as_ref() }
    }
}

fn for_parts(what: impl FnOnce(&mut Vec<Part>)) {
    what(&mut PARTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: called by the server when sizes are added up.
    unsafe {
        if let Some(previous) = REQUEST.next() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
        for_parts(|parts| parts.iter().for_each(|part| pg_sys::RequestAddinShmemSpace(part.bytes)));
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    // SAFETY: called by the server when the memory is there; the lock is held while it is looked up or made.
    unsafe {
        if let Some(previous) = STARTUP.next() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
        let lock = main_lock(SHMEM_INIT_LOCK);
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        for_parts(|parts| {
            for part in parts.iter() {
                let mut found = false;
                let place = pg_sys::ShmemInitStruct(part.name.as_ptr(), part.bytes, &raw mut found);
                if !found {
                    place.cast::<u8>().write_bytes(0, part.bytes);
                }
                part.place.store(place as usize, Ordering::Relaxed);
            }
        });
        pg_sys::LWLockRelease(lock);
        for_parts(|parts| parts.iter().for_each(|part| (part.made)()));
    }
}
