//! Things of SQLite's that must not leave the thread that made them, in objects that may.

use std::mem::ManuallyDrop;
use std::thread::{ThreadId, current};

/// Something that only the thread that made it gets to see. Other threads may hold it and let go of it; what
/// they let go of is not freed.
pub struct Pinned<T> {
    value: ManuallyDrop<T>,
    thread: ThreadId,
}

// SAFETY: no other thread than the one that made it touches the value, neither by `get` nor when it is
// dropped.
unsafe impl<T> Send for Pinned<T> {}
// SAFETY: the same.
unsafe impl<T> Sync for Pinned<T> {}

impl<T> Pinned<T> {
    /// The value belongs to this thread.
    pub fn new(value: T) -> Self {
        Self { value: ManuallyDrop::new(value), thread: current().id() }
    }

    /// The value. None on another thread.
    pub fn get(&self) -> Option<&T> {
        (current().id() == self.thread).then_some(&*self.value)
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if current().id() == self.thread {
            // SAFETY: it is dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}
