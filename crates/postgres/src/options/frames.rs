//! What the utility statements in progress in this backend still have to do, innermost last.
//!
//! The utility hook pushes one [`Frame`] for every statement; the object access hook looks at the innermost
//! one when a table is created, rewritten, or loses a column.

use super::catalog::Settings;
use crate::host::nesting::Nesting;
use pgrx::pg_sys::{self, Oid, SubTransactionId};
use std::ffi::CString;

/// A table that the statement is about to create.
pub struct Creation {
    /// Schema as written. None if it was left out.
    pub schema: Option<CString>,
    /// Name as written.
    pub name: CString,
    /// Its options, not yet checked against its columns.
    pub settings: Settings,
    /// The table takes the order of `colonnade.orderby`, because the statement names none. It cannot be
    /// checked yet, as the table is not there.
    pub takes_usual_order: bool,
}

/// An ALTER TABLE.
#[derive(Default)]
pub struct Alteration {
    /// The table whose options are taken out during the statement, and what they will be afterwards.
    pub options: Option<(Oid, Settings)>,
    /// Does the statement itself set or reset `orderby`?
    pub sets_orderby: bool,
    /// Columns dropped without CASCADE.
    pub restricted_drops: Vec<CString>,
    /// Tables of which it changed a column. They are checked afterwards.
    pub changed_columns: Vec<Oid>,
}

/// One statement.
pub enum Frame {
    /// A statement without anything of ours.
    Other,
    /// CREATE TABLE, CREATE TABLE AS, CREATE MATERIALIZED VIEW.
    Create(Creation),
    /// ALTER TABLE, ALTER MATERIALIZED VIEW.
    Alter(Alteration),
}

thread_local! {
    // A backend has one thread that calls the server; a thread-local needs no lock.
    static STACK: Nesting<Frame> = const { Nesting::new() };
}

/// Pushes a frame. Returns the depth to give to [`pop`].
///
/// # Safety
/// On the main thread, inside a transaction.
pub unsafe fn push(frame: Frame) -> usize {
    STACK.with(|stack| stack.push(frame))
}

/// Takes the frame at `depth` back.
pub fn pop(depth: usize) -> Frame {
    STACK.with(|stack| stack.pop(depth)).unwrap_or(Frame::Other)
}

/// Looks at or changes the innermost frame. `look` must not call the server.
pub fn with_innermost<T>(look: impl FnOnce(&mut Frame) -> T) -> T {
    STACK.with(|stack| stack.innermost(|frame| look(frame.unwrap_or(&mut Frame::Other))))
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn transaction_event(event: pg_sys::XactEvent::Type, _arg: *mut std::ffi::c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        STACK.with(Nesting::clear);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn subtransaction_event(
    event: pg_sys::SubXactEvent::Type,
    own: SubTransactionId,
    _parent: SubTransactionId,
    _arg: *mut std::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        STACK.with(|stack| stack.forget(own));
    }
}

/// Registers the clean-up.
///
/// # Safety
/// Call it from `_PG_init`.
pub unsafe fn register() {
    pg_sys::RegisterXactCallback(Some(transaction_event), std::ptr::null_mut());
    pg_sys::RegisterSubXactCallback(Some(subtransaction_event), std::ptr::null_mut());
}
