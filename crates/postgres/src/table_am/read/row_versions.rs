//! Versions of cold rows that a statement asks for by TID, one after the other.
//!
//! An UPDATE fetches the old version of each row that it changes, and a locking clause each row that it
//! locks. Their AFTER triggers get each row once more. None of these has a scan to keep a fetcher in. So one
//! fetcher is kept here for as long as the same query asks for rows of the same table in the same slot. It
//! finds runs of rows as a scan's fetcher would.
//!
//! Invariant: the fetcher is used only by the query, the relation and the slot that it was made for, and is
//! dropped with the transaction. Queries are told apart by their command id.

use std::cell::RefCell;
use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, CmdType, CommandId, QueryDesc, Relation, SubTransactionId, SubXactEvent, TupleDesc, TupleTableSlot,
    XactEvent,
};

use super::cold_fetch::ColdFetch;
use crate::compat;
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::pending_rows;

/// What a fetcher was made for.
#[derive(PartialEq, Eq)]
struct Purpose {
    transaction: u32,
    command: CommandId,
    query: *mut QueryDesc,
    rel: Relation,
    slot: *mut TupleTableSlot,
    desc: TupleDesc,
}

thread_local! {
    static KEPT: RefCell<Option<(Purpose, ColdFetch)>> = const { RefCell::new(None) };
}

/// Registers the callback that drops the fetcher.
///
/// # Safety
/// Once, from `_PG_init`.
pub unsafe fn register() {
    // SAFETY: a plain registration.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_event), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_event), std::ptr::null_mut());
    }
}

/// Drops the fetcher when a savepoint is rolled back: the next statement may have the command id of the one
/// that failed.
#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_event(
    event: SubXactEvent::Type,
    _own: SubTransactionId,
    _parent: SubTransactionId,
    _arg: *mut c_void,
) {
    if event == SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        drop(KEPT.take());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_event(event: XactEvent::Type, _arg: *mut c_void) {
    let over = [XactEvent::XACT_EVENT_COMMIT, XactEvent::XACT_EVENT_PREPARE, XactEvent::XACT_EVENT_ABORT];
    if over.contains(&event) {
        drop(KEPT.take());
    }
}

/// Stores a row of a stripe into the slot, with a tuple header (see `ColdFetch::fetch_with_header`).
pub unsafe fn fetch(rel: Open, entry: &StripeEntry, row: u64, slot: *mut TupleTableSlot) {
    // SAFETY: the slot is one of the table's; outside such a query there is nothing that tells when it ends.
    unsafe {
        let query = pending_rows::running_query().filter(|&query| has_own_command(query));
        let Some(query) = query else {
            ColdFetch::new(rel).fetch_with_header(entry, row, slot);
            return;
        };
        let purpose = Purpose {
            transaction: compat::local_transaction(),
            command: (*(*query).estate).es_output_cid,
            query,
            rel: rel.as_ptr(),
            slot,
            desc: (*slot).tts_tupleDescriptor,
        };
        // The fetcher is taken out while it works, so that an ERROR drops it.
        let kept = KEPT.take().filter(|(of, _)| *of == purpose);
        let (purpose, mut rows) = kept.unwrap_or_else(|| (purpose, ColdFetch::new(rel)));
        rows.fetch_with_header(entry, row, slot);
        KEPT.set(Some((purpose, rows)));
    }
}

/// Whether the query uses a command id of its own, so that no other query of the transaction has the same.
unsafe fn has_own_command(query: *mut QueryDesc) -> bool {
    // SAFETY: the query runs.
    unsafe {
        let locks = !(*(*query).plannedstmt).rowMarks.is_null();
        !(*query).estate.is_null() && (locks || (*query).operation != CmdType::CMD_SELECT)
    }
}
