//! A stack of the statements that run inside each other in this backend, for hooks around statements.
//!
//! A hook pushes a frame, calls the server as plain C (see `unguarded`), and pops the frame. An ERROR leaves
//! by longjmp, so no destructor can pop. Instead, a hook cuts the stack back to its own depth when it
//! returns. The abort of a subtransaction drops the frames that were pushed in it, and the abort of the
//! transaction drops all.
//!
//! Invariant: no borrow of the stack is held across a call into the server.

use std::cell::RefCell;

use pgrx::pg_sys::{self, SubTransactionId};

/// Frames, innermost last, each with the subtransaction that pushed it.
pub struct Nesting<T>(RefCell<Vec<(SubTransactionId, T)>>);

impl<T> Nesting<T> {
    /// No frames.
    pub const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Pushes a frame; returns the depth to give to [`Nesting::pop`].
    ///
    /// # Safety
    /// On the main thread, inside a transaction.
    pub unsafe fn push(&self, frame: T) -> usize {
        // SAFETY: the caller promises a transaction.
        let owner = unsafe { pg_sys::GetCurrentSubTransactionId() };
        let mut stack = self.0.borrow_mut();
        stack.push((owner, frame));
        stack.len() - 1
    }

    /// Takes the frame at `depth` back and drops the frames above it. None: a ROLLBACK inside a procedure has
    /// emptied the stack.
    pub fn pop(&self, depth: usize) -> Option<T> {
        let mut stack = self.0.borrow_mut();
        stack.truncate(depth.saturating_add(1));
        if stack.len() > depth { stack.pop().map(|(_, frame)| frame) } else { None }
    }

    /// Looks at or changes the innermost frame. `look` must not call the server.
    pub fn innermost<R>(&self, look: impl FnOnce(Option<&mut T>) -> R) -> R {
        look(self.0.borrow_mut().last_mut().map(|(_, frame)| frame))
    }

    /// Something of each frame, innermost last. `look` must not call the server.
    pub fn all<R>(&self, look: impl Fn(&T) -> R) -> Vec<R> {
        self.0.borrow().iter().map(|(_, frame)| look(frame)).collect()
    }

    /// Drops the frames of an aborted subtransaction and of those inside it.
    pub fn forget(&self, aborted: SubTransactionId) {
        self.0.borrow_mut().retain(|(owner, _)| *owner < aborted);
    }

    /// Drops everything.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

impl<T> Default for Nesting<T> {
    fn default() -> Self {
        Self::new()
    }
}
