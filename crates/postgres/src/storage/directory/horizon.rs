//! Which transactions every snapshot sees, as who rewrites a table has to know.
//!
//! Made by merge, unpack, VACUUM FULL and CLUSTER once they have the table to themselves. VACUUM FULL and
//! CLUSTER are told by the server. Its answer counts writers in other databases, because they hold back the
//! xmin of the rewriter's own snapshot, and with it most of what has just been loaded would look young. So
//! merge and unpack look closer: at what the snapshots of others see by their xmin, and at what the own ones
//! see by themselves. Rows of the own transaction are told apart by command, as a statement that began before
//! may read on under its own snapshot. Invariant: whoever is not known to be seen by all is not; that costs
//! room, never a row.

use std::cell::Cell;

use pgrx::pg_sys::{self, CommandId, Snapshot, TransactionId};

use super::age::Age;
use crate::compat;
use crate::host::subtransaction;
use crate::storage::catalog::side_table::Cursor;

/// See the module.
pub struct Horizon {
    /// Every snapshot sees what was committed before.
    oldest_xmin: TransactionId,
    exact: Option<Exact>,
    /// Every own snapshot sees what commands before this one did.
    first_command: CommandId,
    /// The last answer.
    known: Cell<(TransactionId, bool)>,
}

struct Exact {
    /// Snapshots of others see what has been committed before.
    others: TransactionId,
    own: Vec<Snapshot>,
}

impl Horizon {
    /// By the server's word only.
    pub fn of_server(oldest_xmin: TransactionId) -> Self {
        let known = Cell::new((pg_sys::InvalidTransactionId, true));
        Self { oldest_xmin, exact: None, first_command: 0, known }
    }

    /// As exact as can be known now.
    pub unsafe fn of_now(oldest_xmin: TransactionId) -> Self {
        // SAFETY: called by a function of SQL's, so that snapshots on the server's stack outlive this.
        unsafe {
            let server = Self::of_server(oldest_xmin);
            let Some(own) = own_snapshots() else { return server };
            let first_command = own.iter().map(|&snapshot| (*snapshot).curcid).min().unwrap_or(0);
            let exact = Some(Exact { others: compat::oldest_xmin_of_others(), own });
            Self { exact, first_command, ..server }
        }
    }

    /// Every snapshot sees what was committed before this one.
    pub fn oldest_xmin(&self) -> TransactionId {
        self.oldest_xmin
    }

    /// Whether every snapshot sees what this transaction did: it has committed, and is not the present one.
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

    /// The age of what `xid` did (invalid: frozen), which is committed or the present transaction; `command`
    /// says of the latter, as which command.
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

    /// The age of rows of the own transaction that all own snapshots see, where there can be such.
    pub fn own_of_before(&self) -> Option<Age> {
        self.first_command.checked_sub(1).map(Age::Own)
    }

    /// One command for all that every own snapshot sees.
    fn own_command(&self, command: CommandId) -> CommandId {
        if command < self.first_command { self.first_command - 1 } else { command }
    }
}

/// The snapshots of this transaction that are older than all its others; None where that cannot be known. At
/// READ COMMITTED each statement has one, and those inside it have later ones. A cursor's may be older than
/// any, and who has exported one does not know who uses it.
unsafe fn own_snapshots() -> Option<Vec<Snapshot>> {
    // SAFETY: inside a transaction.
    unsafe {
        // The server's look at the portals leaves its walk open where it finds one.
        let has_cursors = || subtransaction::undone(|| !pg_sys::ThereAreNoReadyPortals());
        if !pg_sys::ActiveSnapshotSet() || pg_sys::XactHasExportedSnapshots() || has_cursors() {
            return None;
        }
        let own = vec![pg_sys::GetOldestSnapshot(), pg_sys::GetActiveSnapshot()];
        own.iter().all(|snapshot| !snapshot.is_null()).then_some(own)
    }
}
