//! Memory of Rust's own: values that live as long as a memory context, and large amounts that are asked for
//! before they are needed.
//!
//! A scan descriptor is palloc'd. If a query fails, it may vanish with its context without `scan_end`. So
//! values that it owns on Rust's heap are boxed, and a reset callback of the context drops them.
//!
//! Invariant: a boxed value is dropped exactly once, by the context.

use std::ffi::{CStr, c_void};

use pgrx::pg_sys;

use super::error;

/// It is not worth while to ask for fewer bytes than this.
const LARGE: usize = 16 << 20;

/// Raises "out of memory" if `bytes` more bytes cannot be allocated now. An allocation that fails in Rust
/// ends the process, and with it every session of the server. So code that is about to need much asks here
/// first. (This does not help if the system promises memory and then has none, as everywhere in the server.)
pub fn expect(bytes: usize) {
    if bytes < LARGE {
        return;
    }
    let mut probe: Vec<u8> = Vec::new();
    let had = probe.try_reserve_exact(bytes).is_ok();
    // Without the black box the compiler could see that the probe is not used, and allocate nothing.
    drop(std::hint::black_box(probe));
    if !had {
        error::raise_plain(vector::Error::OutOfMemory { bytes });
    }
}

#[repr(C)]
struct Holder<T> {
    callback: pg_sys::MemoryContextCallback,
    value: Option<T>,
}

unsafe extern "C-unwind" fn drop_holder<T>(arg: *mut c_void) {
    // SAFETY: arg is the box leaked by `leak_into_current_context`; the server calls this once.
    drop(unsafe { Box::from_raw(arg.cast::<Holder<T>>()) });
}

/// Moves `value` to the heap; it is dropped when the current memory context is reset or deleted.
pub unsafe fn leak_into_current_context<T>(value: T) -> *mut T {
    // SAFETY: the callback struct stays at its address inside the leaked box until drop_holder frees it, and
    // the server has unlinked it from the context's list before it calls.
    unsafe {
        let holder = Box::into_raw(Box::new(Holder {
            callback: pg_sys::MemoryContextCallback {
                func: Some(drop_holder::<T>),
                arg: std::ptr::null_mut(),
                next: std::ptr::null_mut(),
            },
            value: Some(value),
        }));
        (*holder).callback.arg = holder.cast();
        pg_sys::MemoryContextRegisterResetCallback(pg_sys::CurrentMemoryContext, &raw mut (*holder).callback);
        match (*holder).value.as_mut() {
            Some(value) => value,
            None => std::ptr::null_mut(),
        }
    }
}

/// A context below `parent` for little memory.
pub unsafe fn small_context(parent: pg_sys::MemoryContext, name: &'static CStr) -> pg_sys::MemoryContext {
    // SAFETY: the server keeps the pointer to the name, which is a constant.
    unsafe {
        pg_sys::AllocSetContextCreateInternal(
            parent,
            name.as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_SMALL_MAXSIZE as usize,
        )
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod c {
    use std::ffi::c_int;
    unsafe extern "C" {
        pub fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    pub const TRIM_THRESHOLD: c_int = -1;
    pub const TOP_PAD: c_int = -2;
    pub const MMAP_THRESHOLD: c_int = -3;
}

/// The C library keeps this many bytes for the next allocation, at most twice as many, instead of giving them
/// back to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: std::ffi::c_int = 16 << 20;

/// Lets this process keep a bounded amount of the memory that it frees. A scan allocates and frees the
/// vectors of each chunk. Without this the C library returns them to the system and gets them back zeroed,
/// page by page, which short queries notice.
pub fn keep_freed() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        // SAFETY: settings of the C library, which may be changed at any time.
        unsafe {
            // If more than twice the amount is free, memory is given back down to the amount. It must not all
            // go back, or a query that frees a little more would get all of it back zeroed the next time.
            c::mallopt(c::TRIM_THRESHOLD, 2 * KEPT);
            c::mallopt(c::TOP_PAD, KEPT);
            c::mallopt(c::MMAP_THRESHOLD, KEPT);
        }
    });
}

/// A context below the current one, for what is allocated for each row or batch: it is reset after each, and
/// deleted by the caller or with its parent.
pub fn reset_often(name: &'static CStr) -> pg_sys::MemoryContext {
    // SAFETY: the server keeps the name, which is never freed.
    unsafe {
        pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            name.as_ptr(),
            0,
            8 * 1024,
            8 * 1024 * 1024,
        )
    }
}
