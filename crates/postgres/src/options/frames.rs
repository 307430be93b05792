//! What the utility statements in progress in this backend still have to do, innermost last.
//!
//! The utility hook pushes one [`Frame`] for every statement; the object access hook looks at the innermost
//! one when a table is created, rewritten, or loses a column. The server's code between the two may leave
//! by longjmp, so no destructor can pop frames: the hook cuts the stack back to its own depth when it
//! returns, a subtransaction's abort cuts what the subtransaction pushed, and a statement from the client
//! starts with an empty stack.
//!
//! Invariant: no borrow of the stack is held across a call into the server.

use super::catalog::Settings;
use pgrx::pg_sys::{self, Oid, SubTransactionId};
use std::cell::RefCell;
use std::ffi::CString;

/// A table that the statement is about to create.
pub struct Creation {
    /// Schema as written; none if it was left out.
    pub schema: Option<CString>,
    /// Name as written.
    pub name: CString,
    /// Its options, not yet checked against its columns.
    pub settings: Settings,
}

/// An ALTER TABLE.
#[derive(Default)]
pub struct Alteration {
    /// The table whose options are taken out meanwhile, and what they will be afterwards.
    pub options: Option<(Oid, Settings)>,
    /// Does the statement itself set or reset `orderby`?
    pub sets_orderby: bool,
    /// Columns dropped without CASCADE.
    pub restricted_drops: Vec<CString>,
    /// Tables of which it changed a column, to be looked at again afterwards.
    pub changed_columns: Vec<Oid>,
}

/// One statement.
pub enum Frame {
    /// Nothing of ours.
    Other,
    /// CREATE TABLE, CREATE TABLE AS, CREATE MATERIALIZED VIEW.
    Create(Creation),
    /// ALTER TABLE, ALTER MATERIALIZED VIEW.
    Alter(Alteration),
}

thread_local! {
    // A backend has one thread that calls the server; a thread-local needs no lock.
    static STACK: RefCell<Vec<(SubTransactionId, Frame)>> = const { RefCell::new(Vec::new()) };
}

/// Pushes a frame; returns the depth to cut back to afterwards.
pub unsafe fn push(frame: Frame) -> usize {
    let subtransaction = pg_sys::GetCurrentSubTransactionId();
    STACK.with_borrow_mut(|stack| {
        stack.push((subtransaction, frame));
        stack.len() - 1
    })
}

/// Takes the frame at `depth` back, dropping it and whatever failed statements left above it.
pub fn pop(depth: usize) -> Frame {
    STACK.with_borrow_mut(|stack| {
        stack.truncate(depth + 1);
        // A transaction command inside CALL may have emptied the stack.
        if stack.len() > depth { stack.pop().map_or(Frame::Other, |f| f.1) } else { Frame::Other }
    })
}

/// Empties the stack: a new statement from the client begins.
pub fn clear() {
    STACK.with_borrow_mut(Vec::clear);
}

/// Looks at or changes the innermost frame. `look` must not call the server.
pub fn with_innermost<T>(look: impl FnOnce(&mut Frame) -> T) -> T {
    STACK.with_borrow_mut(|stack| match stack.last_mut() {
        Some((_, frame)) => look(frame),
        None => look(&mut Frame::Other),
    })
}

/// Drops the frames of a subtransaction that failed.
pub fn forget(subtransaction: SubTransactionId) {
    STACK.with_borrow_mut(|stack| {
        let keep = stack.iter().position(|(owner, _)| *owner >= subtransaction);
        stack.truncate(keep.unwrap_or(stack.len()));
    });
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn subtransaction_event(
    event: pg_sys::SubXactEvent::Type,
    own: SubTransactionId,
    _parent: SubTransactionId,
    _arg: *mut std::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        forget(own);
    }
}

/// Registers the clean-up.
pub unsafe fn register() {
    pg_sys::RegisterSubXactCallback(Some(subtransaction_event), std::ptr::null_mut());
}
