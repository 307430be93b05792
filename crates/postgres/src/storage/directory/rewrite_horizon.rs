//! Which transactions every snapshot sees, for commands that rewrite a table.
//!
//! Merge, unpack, VACUUM FULL and CLUSTER make a `Horizon` once they have locked out all others. VACUUM FULL
//! and CLUSTER get the answer from the server. That answer counts writers in other databases: they hold back
//! the xmin of the rewriter's own snapshot, and most of what was just loaded would look young.
//!
//! So merge and unpack look closer. For others' snapshots they go by the xmin. Their own transaction's
//! snapshots they ask directly. Rows of their own transaction are told apart by command, because a statement
//! that began before may read on under its own snapshot.
//!
//! Invariant: a transaction that is not known to be seen by all counts as not seen. That costs space, never a
//! row.

use std::cell::Cell;

use pgrx::pg_sys::{self, CommandId, Snapshot, TransactionId};

use super::age::Age;
use crate::compat;
use crate::host::server_locks;
use crate::host::subtransaction;
use crate::storage::catalog::side_table::Cursor;

/// Which transactions every snapshot sees. The header of this file says how it is found.
pub struct Horizon {
    /// Every snapshot sees what was committed before this transaction.
    oldest_xmin: TransactionId,
    exact: Option<Exact>,
    /// Every snapshot of this transaction sees what commands before this one did.
    first_command: CommandId,
    /// The last answer of `sees_all`.
    known: Cell<(TransactionId, bool)>,
}

struct Exact {
    /// Snapshots of others see what was committed before this transaction.
    others: TransactionId,
    own: Vec<Snapshot>,
}

impl Horizon {
    /// A horizon by the server's answer only.
    pub fn of_server(oldest_xmin: TransactionId) -> Self {
        let known = Cell::new((pg_sys::InvalidTransactionId, true));
        Self { oldest_xmin, exact: None, first_command: 0, known }
    }

    /// A horizon that is as exact as can be known now. `known` are the snapshots of this session that hooks
    /// around statements know, if its oldest one is among them.
    pub unsafe fn of_now(oldest_xmin: TransactionId, known: Option<Vec<Snapshot>>) -> Self {
        // SAFETY: called by a function of SQL's, so that snapshots on the server's stack outlive this.
        unsafe {
            let server = Self::of_server(oldest_xmin);
            let Some(own) = own_snapshots(known) else { return server };
            let first_command = own.iter().map(|&snapshot| (*snapshot).curcid).min().unwrap_or(0);
            let exact = Some(Exact { others: server_locks::oldest_xmin_of_others(), own });
            Self { exact, first_command, ..server }
        }
    }

    /// Every snapshot sees what was committed before the transaction that is returned.
    pub fn oldest_xmin(&self) -> TransactionId {
        self.oldest_xmin
    }

    /// Whether every snapshot sees what transaction `xid` did. It has committed, and is not the present one.
    pub fn sees_all(&self, xid: TransactionId) -> bool {
        // SAFETY: comparisons of ids; own snapshots outlive this.
        unsafe {
            if pg_sys::TransactionIdPrecedes(xid, self.oldest_xmin) {
                return true;
            }
            let Some(exact) = &self.exact else { return false };
            let (last, answer) = self.known.get();
            if last == xid {
                return answer;
            }
            let answer = pg_sys::TransactionIdPrecedes(xid, exact.others)
                && exact.own.iter().all(|&snapshot| !pg_sys::XidInMVCCSnapshot(xid, snapshot));
            self.known.set((xid, answer));
            answer
        }
    }

    /// The age of what `xid` did (invalid: frozen). It has committed or is the present transaction, for which
    /// `command` says as which command it did so.
    pub fn age(&self, xid: TransactionId, command: impl FnOnce() -> CommandId) -> Age {
        // SAFETY: comparisons of ids; the invalid one and that of frozen rows precede all others.
        unsafe {
            if pg_sys::TransactionIdPrecedes(xid, self.oldest_xmin) {
                return Age::Everybody;
            }
            if pg_sys::TransactionIdIsCurrentTransactionId(xid) {
                return Age::Own(self.own_command(command()));
            }
            if self.sees_all(xid) { Age::Everybody } else { Age::Since(xid) }
        }
    }

    /// The age of a row of a catalog.
    pub unsafe fn age_of(&self, cursor: &Cursor) -> Age {
        // SAFETY: the cursor pins the tuple; cmin is asked of rows of this transaction only.
        unsafe { self.age(cursor.inserter(), || pg_sys::HeapTupleHeaderGetCmin((*cursor.tuple()).t_data)) }
    }

    /// The age of rows of this transaction that all its snapshots see, if there can be such rows.
    pub fn own_of_before(&self) -> Option<Age> {
        self.first_command.checked_sub(1).map(Age::Own)
    }

    /// One command id that stands for all commands which every own snapshot sees.
    fn own_command(&self, command: CommandId) -> CommandId {
        if command < self.first_command { self.first_command - 1 } else { command }
    }
}

/// The oldest snapshots of this transaction: all its others are later. None if that cannot be known. At READ
/// COMMITTED each statement has a snapshot, and statements inside it have later ones. A cursor's snapshot may
/// be older than any of these, and nobody knows who uses an exported one.
unsafe fn own_snapshots(known: Option<Vec<Snapshot>>) -> Option<Vec<Snapshot>> {
    // SAFETY: inside a transaction.
    unsafe {
        // If the server's function finds a portal, it leaves its walk over the portals open. So it runs in a
        // subtransaction that is undone.
        let has_cursors = || subtransaction::undone(|| !pg_sys::ThereAreNoReadyPortals());
        if !pg_sys::ActiveSnapshotSet() || pg_sys::XactHasExportedSnapshots() || has_cursors() {
            return None;
        }
        let mut own = compat::oldest_snapshots(known)?;
        own.push(pg_sys::GetActiveSnapshot());
        own.iter().all(|snapshot| !snapshot.is_null()).then_some(own)
    }
}
