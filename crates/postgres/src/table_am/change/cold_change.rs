//! UPDATE, DELETE and row locks of cold rows.
//!
//! Called by `modify`. The stripe is kept in place first. Then the row's proxy is locked, which waits and
//! fails as heap does (protocol points 2 and 3 of `docs/internals/concurrency.md`).
//! - DELETE buries the row.
//! - UPDATE inserts the new version as a hot row, and buries the old one with the new TID as its successor.
//!   From the successor on, heap has the chain of versions (`cold_chain`).
//!
//! Both use the executor's command id. As on heap, an UPDATE that leaves the key alone goes together with FOR
//! KEY SHARE locks; these are carried over to the new version (`successor_locks`). Every other change of a
//! row holds the strongest lock on it. A statement that changes many rows of a stripe changes most of them in
//! bulk (`bulk_change`).
//!
//! Invariant: others' predicate locks are looked for after the row is buried: see `row_proxy::visibility`.

use pgrx::pg_sys::{
    self, Bitmapset, CommandId, ItemPointerData, LockTupleMode, LockWaitPolicy, Snapshot, TM_FailureData,
    TM_Result, TransactionId, TupleTableSlot, XLTW_Oper,
};

use super::request::{ChangeRequest, LockRequest, UNCHANGED};
use super::{bulk_change, cold_chain, successor_locks};
use crate::compat;
use crate::host::catalogs;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::heap_am::heap_guarded;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::change::row_proxy::{self, Outcome, Pinned, Replaced};
use crate::storage::change::{delete_bitmap, stripe_lock};
use crate::storage::directory::StripeEntry;
use crate::storage::directory::entries::Unchangeable;
use crate::storage::file::{metapage, tid};
use crate::storage::{decoding, directory};
use crate::table_am::read::cold_rows::SLOT_WANTS_SYSTEM_COLUMNS;
use crate::table_am::read::{moved, own_writes, row_versions};

/// A cold row that is being changed or locked.
struct Target {
    storage_id: u64,
    row: u64,
    entry: StripeEntry,
}

/// Keeps the row's stripe where it is. For a row that was moved, it fails as heap would and names the mover,
/// so that the caller goes on at the new place.
unsafe fn target(
    rel: Open,
    at: ItemPointerData,
    cid: CommandId,
    failure: &mut TM_FailureData,
) -> Result<Target, TM_Result::Type> {
    // SAFETY: a DELETE, UPDATE or lock of the server's, which has locked the table; the snapshot is a
    // constant.
    unsafe {
        *failure = TM_FailureData { ctid: at, ..UNCHANGED };
        own_writes::flush(rel);
        let found = tid::row_of(at).zip(metapage::storage_id(rel));
        let Some((row, storage_id)) = found else { return Err(TM_Result::TM_Deleted) };
        match stripe_lock::share(rel, storage_id, row, cid) {
            Ok(entry) => Ok(Target { storage_id, row, entry }),
            Err(Unchangeable::Invisible) => Err(TM_Result::TM_Invisible),
            Err(Unchangeable::Gone(None)) => Err(TM_Result::TM_Deleted),
            Err(Unchangeable::Gone(Some(entry))) => {
                if let Some(mover) = moved::mover_of(storage_id, row) {
                    failure.xmax = mover;
                } else if !row_proxy::is_there(rel, storage_id, row, &raw mut pg_sys::SnapshotSelfData) {
                    // The row was dead when its stripe was taken out. Its tombstone says what has become of
                    // it.
                    return Ok(Target { storage_id, row, entry: *entry });
                }
                Err(TM_Result::TM_Deleted)
            }
        }
    }
}

/// Locks a row that has not been deleted in bulk. If the wait policy is `Error` and it would have to wait,
/// the ERROR names the user's table and not the catalog.
unsafe fn lock_proxy(
    rel: Open,
    target: &Target,
    cid: CommandId,
    mode: LockTupleMode::Type,
    wait: LockWaitPolicy::Type,
) -> Outcome {
    // SAFETY: the stripe is locked, or gone and the row dead.
    unsafe {
        if let Err((result, failure)) = bulk_change::settle(rel, &target.entry, target.row, cid, mode, wait) {
            return Outcome::Failed(result, failure);
        }
        let follow = |new: Replaced| successor_locks::follow(rel, new.successor, new.by);
        let end = target.entry.end_row();
        let try_lock =
            |policy| row_proxy::lock(target.storage_id, target.row, end, cid, mode, policy, follow);
        let outcome = try_lock(LockWaitPolicy::LockWaitSkip);
        if !matches!(outcome, Outcome::Failed(TM_Result::TM_WouldBlock, _)) {
            return outcome;
        }
        match wait {
            LockWaitPolicy::LockWaitBlock => {
                delete_bitmap::write_all();
                try_lock(wait)
            }
            LockWaitPolicy::LockWaitError => would_block(rel),
            _ => outcome,
        }
    }
}

/// Raises the ERROR of NOWAIT.
pub(super) fn would_block(rel: Open) -> ! {
    let name = rel.name();
    let message = format!("could not obtain lock on row in relation \"{name}\"");
    error::raise(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, message, "", "")
}

/// Waits for a transaction that is changing a row, if the policy allows to wait. False: the policy does not.
pub(super) unsafe fn wait_for(
    rel: Open,
    whom: TransactionId,
    at: &mut ItemPointerData,
    wait: LockWaitPolicy::Type,
    what: XLTW_Oper::Type,
) -> bool {
    // SAFETY: nothing is locked or pinned here.
    unsafe {
        if wait == LockWaitPolicy::LockWaitBlock {
            delete_bitmap::write_all();
            pg_sys::XactLockTableWait(whom, rel.as_ptr(), at, what);
            return true;
        }
        let over = compat::is_over(whom);
        if !over && wait == LockWaitPolicy::LockWaitError {
            would_block(rel);
        }
        over
    }
}

/// Locks a row in order to change it.
unsafe fn take(
    rel: Open,
    at: ItemPointerData,
    change: &mut ChangeRequest,
    mode: LockTupleMode::Type,
) -> Result<(Target, Pinned), TM_Result::Type> {
    // SAFETY: as the server calls tuple_delete and tuple_update.
    unsafe {
        let crosscheck = change.crosscheck;
        let policy = if change.wait { LockWaitPolicy::LockWaitBlock } else { LockWaitPolicy::LockWaitSkip };
        let target = target(rel, at, change.cid, change.failure)?;
        match lock_proxy(rel, &target, change.cid, mode, policy) {
            Outcome::Failed(result, why) => {
                *change.failure = why;
                Err(if result == TM_Result::TM_WouldBlock { TM_Result::TM_BeingModified } else { result })
            }
            Outcome::Locked(_) if !crosscheck.is_null() && !is_seen(rel, &target, crosscheck) => {
                Err(TM_Result::TM_Updated)
            }
            Outcome::Locked(proxy) => Ok((target, proxy)),
        }
    }
}

/// Whether a snapshot sees the row.
///
/// # Safety
/// The snapshot is live.
unsafe fn is_seen(rel: Open, target: &Target, snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    unsafe {
        (moved::is_old(target.storage_id, target.entry.inserter)
            || directory::find(target.storage_id, target.row, snapshot)
                .is_some_and(|entry| !entry.reserved_only))
            && row_proxy::is_there(rel, target.storage_id, target.row, snapshot)
    }
}

fn refuse_invisible(result: TM_Result::Type, what: &str) {
    if result == TM_Result::TM_Invisible {
        let message = format!("attempted to {what} invisible tuple");
        error::raise(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message, "", "");
    }
}

/// Buries a locked row, carries others' locks over to its successor and tells serializable readers.
unsafe fn bury(rel: Open, target: &Target, proxy: Pinned, successor: ItemPointerData, cid: CommandId) {
    // SAFETY: the row is locked, so that others can but lock it FOR KEY SHARE, and that only where its
    // successor is a hot row of this transaction's.
    unsafe {
        let lockers = row_proxy::bury(proxy, successor, cid);
        successor_locks::carry(rel, successor, &lockers);
        let mut at = tid::cold_tid(target.row);
        predicate_locks::serializable_write_row(rel, &raw mut at, tid::block_of(at));
    }
}

/// `tuple_delete` of a cold row.
pub(super) unsafe fn delete(
    rel: Open,
    at: ItemPointerData,
    change: &mut ChangeRequest,
    changing_partition: bool,
) -> TM_Result::Type {
    // SAFETY: as the server calls it.
    unsafe {
        let cid = change.cid;
        let alone = changing_partition || !change.crosscheck.is_null();
        decoding::tell_of_change(rel);
        if changing_partition {
            // The next steps may wait: for a lock on the other partition, in its triggers, or for the
            // inserter of a duplicate.
            delete_bitmap::write_all();
        }
        if let Some(result) = bulk_change::delete(rel, at, cid, alone, change.failure) {
            return result;
        }
        let mode = LockTupleMode::LockTupleExclusive;
        let (target, proxy) = match take(rel, at, change, mode) {
            Ok(taken) => taken,
            Err(result) => {
                refuse_invisible(result, "delete");
                return result;
            }
        };
        let successor = if changing_partition { row_proxy::OTHER_PARTITION } else { at };
        bury(rel, &target, proxy, successor, cid);
        if !alone {
            bulk_change::count(rel, &target.entry, cid);
        }
        pg_sys::pgstat_count_heap_delete(rel.as_ptr());
        TM_Result::TM_Ok
    }
}

/// `tuple_update` of a cold row: the slot's row becomes a hot one.
pub(super) unsafe fn update(
    rel: Open,
    at: ItemPointerData,
    slot: *mut TupleTableSlot,
    change: &mut ChangeRequest,
    mode: &mut LockTupleMode::Type,
) -> TM_Result::Type {
    // SAFETY: as the server calls it.
    unsafe {
        *mode = LockTupleMode::LockTupleNoKeyExclusive;
        let cid = change.cid;
        let alone = !change.crosscheck.is_null();
        decoding::tell_of_change(rel);
        if let Some(result) = bulk_change::update(rel, at, slot, cid, alone, change.failure) {
            return result;
        }
        if changes_key(rel, at, slot) {
            *mode = LockTupleMode::LockTupleExclusive;
        }
        let (target, proxy) = match take(rel, at, change, *mode) {
            Ok(taken) => taken,
            Err(result) => {
                refuse_invisible(result, "update");
                return result;
            }
        };
        insert_successor(rel, slot, cid);
        bury(rel, &target, proxy, (*slot).tts_tid, cid);
        if !alone {
            bulk_change::count(rel, &target.entry, cid);
        }
        TM_Result::TM_Ok
    }
}

/// Inserts the new version of a cold row, as a hot one.
pub(super) unsafe fn insert_successor(rel: Open, slot: *mut TupleTableSlot, cid: CommandId) {
    // SAFETY: as the server calls tuple_update.
    unsafe {
        heap_guarded!(tuple_insert(rel.as_ptr(), slot, cid, 0, std::ptr::null_mut()));
        // Takes back the insertion that heap has counted.
        pg_sys::pgstat_count_heap_insert(rel.as_ptr(), -1);
        compat::count_heap_update(rel.as_ptr());
    }
}

/// Whether the new version of a cold row has other values in key columns. This decides which lock an UPDATE
/// of the row needs.
unsafe fn changes_key(rel: Open, at: ItemPointerData, new: *mut TupleTableSlot) -> bool {
    // SAFETY: both slots have its row type.
    unsafe {
        let kind = pg_sys::IndexAttrBitmapKind::INDEX_ATTR_BITMAP_KEY;
        let keys: *mut Bitmapset = pg_sys::RelationGetIndexAttrBitmap(rel.as_ptr(), kind);
        if keys.is_null() || bulk_change::leaves_alone(rel, keys) {
            pg_sys::bms_free(keys);
            return false;
        }
        let old = pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut());
        let mut place = at;
        let any = &raw mut pg_sys::SnapshotAnyData;
        let mut changed = !pg_sys::table_tuple_fetch_row_version(rel.as_ptr(), &raw mut place, any, old);
        let mut member = -1;
        while !changed {
            member = pg_sys::bms_next_member(keys, member);
            if member < 0 {
                break;
            }
            let attribute = member + pg_sys::FirstLowInvalidHeapAttributeNumber;
            let column = usize::try_from(attribute).ok().and_then(|at| rel.columns().get(at.checked_sub(1)?));
            let Some(column) = column else { continue };
            let value = |slot: *mut TupleTableSlot| {
                let mut null = false;
                let value = pg_sys::slot_getattr(slot, attribute, &raw mut null);
                (value, null)
            };
            let ((one, one_null), (other, other_null)) = (value(old), value(new));
            changed = one_null != other_null
                || (!one_null && !catalogs::same_bytes(one, other, column.attbyval, column.attlen));
        }
        pg_sys::ExecDropSingleTupleTableSlot(old);
        pg_sys::bms_free(keys);
        changed
    }
}

/// `tuple_lock` of a cold row. `at` becomes the TID of the version that was locked.
pub(super) unsafe fn lock(rel: Open, at: &mut ItemPointerData, request: &mut LockRequest) -> TM_Result::Type {
    // SAFETY: as the server calls it.
    unsafe {
        let target = match target(rel, *at, request.cid, request.failure) {
            Ok(target) => target,
            Err(TM_Result::TM_Invisible) => return invisible(rel, *at, request.slot),
            Err(result) => return result,
        };
        match lock_proxy(rel, &target, request.cid, request.mode, request.wait) {
            Outcome::Locked(proxy) => {
                proxy.release();
                row_versions::fetch(rel, &target.entry, target.row, request.slot);
                TM_Result::TM_Ok
            }
            Outcome::Failed(TM_Result::TM_Updated, why)
                if u32::from(request.flags) & pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION != 0 =>
            {
                *at = why.ctid;
                cold_chain::lock_successor(rel, at, why.xmax, request)
            }
            Outcome::Failed(result, why) => {
                *request.failure = why;
                result
            }
        }
    }
}

/// The row was inserted by this very command, or by a transaction that is still at work. Makes the slot say
/// by whom.
unsafe fn invisible(rel: Open, at: ItemPointerData, slot: *mut TupleTableSlot) -> TM_Result::Type {
    // SAFETY: the slot is the table's. The row may have no values yet; who asks looks at xmin.
    unsafe {
        (*slot).tts_flags |= SLOT_WANTS_SYSTEM_COLUMNS;
        if let Some(row) = tid::row_of(at) {
            let inserter = pg_sys::GetCurrentTransactionId();
            crate::table_am::read::cold_rows::store(rel, slot, row, inserter, |_, _| ());
        }
        TM_Result::TM_Invisible
    }
}
