//! The server's hooks: how ours are put in front of those already there, and how the next one is found.
//!
//! A file that answers a hook has a static [`Chain`] beside its function. `_PG_init` (`lib.rs`) installs them
//! all. There it also says which of ours runs first.
//!
//! Invariant: the server's slots are changed only while it loads the library, on its one thread. So the next
//! function never changes afterwards.

use std::sync::OnceLock;

/// The function that comes after one of ours. `H` is the type of the server's slot, an optional function.
pub struct Chain<H>(OnceLock<H>);

impl<H: Copy + Default> Default for Chain<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Copy + Default> Chain<H> {
    /// Nothing is installed yet.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Puts `ours` into the server's slot, in front of what is there. Only the first call does anything.
    ///
    /// # Safety
    /// Call it from `_PG_init`. `slot` is the server's.
    pub unsafe fn put_in_front(&self, slot: *mut H, ours: H) {
        // SAFETY: the caller's promise: nothing else runs yet.
        unsafe {
            if self.0.set(*slot).is_ok() {
                *slot = ours;
            }
        }
    }

    /// The function to be called next. None if there is only the server's own.
    pub fn next(&self) -> H {
        self.0.get().copied().unwrap_or_default()
    }
}
