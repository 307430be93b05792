//! What the ends of transactions and subtransactions mean for rows in memory.
//!
//! Statements write their rows themselves. This file handles rows that are left then (of a caller without
//! hooks), and rollback. Before a commit or PREPARE everything is written. Before a subcommit the
//! subtransaction's rows are written. An abort discards them.
//!
//! Once everything is written before a commit, the transaction takes no more rows into memory, because
//! nothing would write them. Code that inserts that late, as another extension's callback, gets hot rows.
//!
//! Invariants: no row is in memory when a transaction commits. An abort never calls into the server, whose
//! memory may already be going away.

use std::cell::Cell;
use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, SubTransactionId, SubXactEvent, XactEvent};

use super::{SETS, any, finish_where, forget, statement};
use crate::host::error;

thread_local! {
    /// The transaction has written its rows and is about to commit.
    static CLOSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the transaction is being committed. Then rows may not wait in memory any more, and no
/// subtransaction may begin. The server has put away its stack of after-trigger states, and would begin one
/// that outlives the transaction's memory.
pub fn is_committing() -> bool {
    CLOSED.get()
}

/// Registers the callbacks.
pub(super) unsafe fn register() {
    // SAFETY: plain registrations, once per process.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_event), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_event), std::ptr::null_mut());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_event(event: XactEvent::Type, _arg: *mut c_void) {
    match event {
        XactEvent::XACT_EVENT_PRE_COMMIT | XactEvent::XACT_EVENT_PRE_PREPARE => {
            // SAFETY: the transaction is still in progress.
            unsafe { finish_where(|_| true) }
            if any() {
                error::internal("rows of this transaction are still in memory");
            }
            CLOSED.set(true);
        }
        XactEvent::XACT_EVENT_COMMIT | XactEvent::XACT_EVENT_PREPARE => CLOSED.set(false),
        XactEvent::XACT_EVENT_ABORT | XactEvent::XACT_EVENT_PARALLEL_ABORT => {
            CLOSED.set(false);
            statement::clear();
            if any() {
                discard(None);
            }
        }
        _ => {}
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_event(
    event: SubXactEvent::Type,
    own: SubTransactionId,
    parent: SubTransactionId,
    _arg: *mut c_void,
) {
    if event == SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        statement::forget(own);
    }
    if !any() {
        return;
    }
    match event {
        // SAFETY: the subtransaction is still in progress.
        SubXactEvent::SUBXACT_EVENT_PRE_COMMIT_SUB => unsafe {
            finish_where(|key| key.subtransaction == own);
        },
        SubXactEvent::SUBXACT_EVENT_COMMIT_SUB => SETS.with_borrow_mut(|sets| {
            sets.values_mut().for_each(|set| set.child_committed(own, parent));
        }),
        SubXactEvent::SUBXACT_EVENT_ABORT_SUB => {
            discard(Some(own));
            SETS.with_borrow_mut(|sets| sets.values_mut().for_each(|set| set.child_aborted(own)));
        }
        _ => {}
    }
}

/// Drops the rows of a subtransaction, or all rows.
fn discard(of: Option<SubTransactionId>) {
    let goes = |subtransaction| of.is_none_or(|of| of == subtransaction);
    SETS.with_borrow_mut(|sets| {
        sets.values_mut().filter(|set| goes(set.key().subtransaction)).for_each(|set| set.abandon());
    });
    forget(|key| goes(key.subtransaction));
}
