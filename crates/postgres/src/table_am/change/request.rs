//! What the server asks for when it has a row changed or locked.
//!
//! `modify` makes these from the arguments of its callbacks; `cold_change` and `cold_chain` pass them on.
//! Invariant: the pointers are the server's and are good until the callback returns.

use pgrx::pg_sys::{
    self, CommandId, ItemPointerData, LockTupleMode, LockWaitPolicy, Snapshot, TM_FailureData,
    TupleTableSlot, uint8,
};

/// What the server says of a TM_Result that tells nothing.
pub const UNCHANGED: TM_FailureData = TM_FailureData {
    ctid: ItemPointerData { ip_blkid: pg_sys::BlockIdData { bi_hi: 0, bi_lo: 0 }, ip_posid: 0 },
    xmax: pg_sys::InvalidTransactionId,
    cmax: pg_sys::InvalidCommandId,
    traversed: false,
};

/// How a row is to be deleted or updated (`tuple_delete`, `tuple_update`).
#[repr(C)]
pub struct ChangeRequest<'a> {
    /// The command that changes the row.
    pub cid: CommandId,
    /// Null, or a snapshot that has to see the row, too.
    pub crosscheck: Snapshot,
    /// Whether to wait for other writers of the row.
    pub wait: bool,
    /// Why the row was not changed.
    pub failure: &'a mut TM_FailureData,
}

/// How a row is to be locked (`tuple_lock`).
#[repr(C)]
pub struct LockRequest<'a> {
    /// The snapshot that heap's own callback is called with.
    pub snapshot: Snapshot,
    /// The slot that the locked version goes to.
    pub slot: *mut TupleTableSlot,
    /// The command that locks the row.
    pub cid: CommandId,
    /// How strong the lock is.
    pub mode: LockTupleMode::Type,
    /// Whether to wait for who is in the way.
    pub wait: LockWaitPolicy::Type,
    /// The server's `TUPLE_LOCK_FLAG_*`.
    pub flags: uint8,
    /// Why the row was not locked.
    pub failure: &'a mut TM_FailureData,
}
