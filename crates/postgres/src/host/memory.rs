//! Rust values that live as long as a memory context.
//!
//! A scan descriptor is palloc'd and may vanish with its context when a query fails, without `scan_end`. What it
//! owns on Rust's heap is therefore boxed and dropped by a reset callback of the context. Invariant: a boxed value
//! is dropped exactly once, by the context.

use std::ffi::c_void;

use pgrx::pg_sys;

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
    // SAFETY: the callback struct stays at its address inside the leaked box until drop_holder frees it, and the
    // server has unlinked it from the context's list before it calls.
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
