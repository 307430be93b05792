//! DELETE and UPDATE of many rows of a stripe.
//!
//! Called by `cold_change`, which changes the first rows of a stripe one by one and counts them here. After
//! enough of them the statement claims the stripe, and each further change is a bit
//! (`storage::change::delete_bitmap`, protocol point 3 of `docs/internals/concurrency.md`). This file also
//! tells the writer of a single row what it has to know of others' bulk changes: `settle` waits for them and
//! fails as heap does.
//!
//! A row that moves to another partition is inserted there. `cold_change::delete` gives the claimed stripes
//! back before that.
//!
//! Invariant: while a statement holds a claim, it never waits for another transaction except through this
//! file. Four kinds of statement could wait elsewhere between two rows, and therefore change row by row:
//! - one that inserts other keys: it may wait for the inserter of a duplicate
//! - one that also changes or locks rows of tables of another access method: it may wait for their writers
//! - one with a BEFORE trigger: the trigger may wait for anything
//! - COPY: it waits for whatever reads the rows that it sends

use std::cell::Cell;
use std::ffi::c_void;

use pgrx::PgList;
use pgrx::pg_sys::{
    self, CmdType, CommandId, ItemPointerData, LockTupleMode, LockWaitPolicy, Oid, PlannedStmt, QueryDesc,
    SubTransactionId, TM_FailureData, TM_Result, TupleTableSlot,
};

use super::request::UNCHANGED;
use super::{cold_change, successor_locks};
use crate::compat;
use crate::host::relation::{Open, has_attribute, with_index};
use crate::options;
use crate::storage::change::delete_bitmap::{self, Change, Probe};
use crate::storage::change::stripe_lock;
use crate::storage::directory::StripeEntry;
use crate::storage::file::tid;
use crate::storage::pending_rows;

/// What a claim says of a row. None: the row has to be changed by itself, which is always so if `alone` is
/// set and the row is alive.
fn probe(
    rel: Open,
    at: ItemPointerData,
    cid: CommandId,
    alone: bool,
    failure: &mut TM_FailureData,
) -> Option<(u64, TM_Result::Type)> {
    if !delete_bitmap::any() {
        return None;
    }
    let row = tid::row_of(at)?;
    match delete_bitmap::probe(rel.oid(), row, cid) {
        Probe::Alive if !alone => Some((row, TM_Result::TM_Ok)),
        Probe::Killed(writer) => {
            *failure = TM_FailureData { ctid: at, xmax: writer, cmax: cid, ..UNCHANGED };
            Some((row, TM_Result::TM_SelfModified))
        }
        Probe::Alive | Probe::Unknown => None,
    }
}

/// Deletes a row of a claimed stripe.
pub(super) fn delete(
    rel: Open,
    at: ItemPointerData,
    cid: CommandId,
    alone: bool,
    failure: &mut TM_FailureData,
) -> Option<TM_Result::Type> {
    // SAFETY: as the server calls tuple_delete.
    unsafe {
        let (row, result) = probe(rel, at, cid, alone, failure)?;
        if result == TM_Result::TM_Ok {
            delete_bitmap::mark(rel, row, cid, None);
            pg_sys::pgstat_count_heap_delete(rel.as_ptr());
        }
        Some(result)
    }
}

/// Updates a row of a claimed stripe.
pub(super) unsafe fn update(
    rel: Open,
    at: ItemPointerData,
    slot: *mut TupleTableSlot,
    cid: CommandId,
    alone: bool,
    failure: &mut TM_FailureData,
) -> Option<TM_Result::Type> {
    // SAFETY: as the server calls tuple_update.
    unsafe {
        let (row, result) = probe(rel, at, cid, alone, failure)?;
        if result == TM_Result::TM_Ok {
            cold_change::insert_successor(rel, slot, cid);
            delete_bitmap::mark(rel, row, cid, Some((*slot).tts_tid));
        }
        Some(result)
    }
}

/// A command: its transaction, subtransaction (a rollback to a savepoint gives its command id to the next
/// one) and id.
type Command = (u32, SubTransactionId, CommandId);

thread_local! {
    /// What `may_claim` has said of the command asked about last.
    static ASKED: Cell<Option<(Command, bool)>> = const { Cell::new(None) };
}

/// Counts a change of a row of a stripe that the command has locked. Claims the stripe once there were enough
/// changes.
pub(super) unsafe fn count(rel: Open, entry: &StripeEntry, cid: CommandId) {
    // SAFETY: statements run inside transactions.
    unsafe {
        if let Some(changed) = delete_bitmap::due(entry, cid)
            && may_claim(cid)
        {
            delete_bitmap::claim(rel, entry, changed, cid);
        }
    }
}

/// Whether the running statement does nothing between two rows that may wait: see the header. This is asked
/// for each stripe, and a statement may change many tables, so the last answer is kept.
unsafe fn may_claim(cid: CommandId) -> bool {
    // SAFETY: MyProc is this backend's own entry; the query runs.
    unsafe {
        let now = (compat::local_transaction(), pg_sys::GetCurrentSubTransactionId(), cid);
        if let Some((_, answer)) = ASKED.get().filter(|(when, _)| *when == now) {
            return answer;
        }
        let answer = pending_rows::running_query().is_some_and(|query| never_waits(query));
        ASKED.set(Some((now, answer)));
        answer
    }
}

/// Whether a statement never waits between two rows: see the header.
unsafe fn never_waits(query: *mut QueryDesc) -> bool {
    // SAFETY: the query runs, so the tables that it changes are open; their numbers count from one.
    unsafe {
        let plan = (*query).plannedstmt;
        let is_update = match (*query).operation {
            CmdType::CMD_DELETE => false,
            CmdType::CMD_UPDATE => true,
            _ => return false,
        };
        if (*plan).hasModifyingCTE || locks_rows(plan) {
            return false;
        }
        // COPY sends the returned rows while the statement runs, and waits for the client that reads them.
        let dest = (*query).dest;
        if !dest.is_null() && (*dest).mydest == pg_sys::CommandDest::DestCopyOut {
            return false;
        }
        let open = (*(*query).estate).es_relations;
        PgList::<c_void>::from_pg((*plan).resultRelations).iter_int().all(|number| {
            let Some(at) = usize::try_from(number).ok().and_then(|number| number.checked_sub(1)) else {
                return false;
            };
            let table = *open.add(at);
            // A statement that names a partitioned table has it among its tables, but the table has no rows
            // of its own.
            table.is_null()
                || (*(*table).rd_rel).relkind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE
                || options::is_our_relation(Open::of(table))
                    && !has_before_trigger(Open::of(table), is_update)
                    && (!is_update || keeps_unique_keys(Open::of(table), query))
        })
    }
}

/// Whether a table has a BEFORE row trigger that a DELETE or, with `is_update`, an UPDATE may fire. An UPDATE
/// also fires triggers of DELETE, for rows that it moves to another partition.
fn has_before_trigger(rel: Open, is_update: bool) -> bool {
    // SAFETY: the relation cache's own list, looked at before the server is called again.
    unsafe {
        let triggers = (*rel.as_ptr()).trigdesc;
        let deletes = !is_update || (*rel.form()).relispartition;
        !triggers.is_null()
            && (is_update && (*triggers).trig_update_before_row
                || deletes && (*triggers).trig_delete_before_row)
    }
}

/// Whether the statement locks rows of any table between two rows that it changes.
unsafe fn locks_rows(plan: *mut PlannedStmt) -> bool {
    // SAFETY: a list of row marks, those of subqueries among them.
    unsafe {
        PgList::<pg_sys::PlanRowMark>::from_pg((*plan).rowMarks)
            .iter_ptr()
            .any(|mark| (*mark).markType <= pg_sys::RowMarkType::ROW_MARK_KEYSHARE)
    }
}

/// The columns that an UPDATE may set, apart from what its BEFORE triggers set. Null if the statement does
/// not tell. All generated columns count: the statement does not say which of them depend on the columns that
/// it names (`extraUpdatedCols` is always empty in newer minor versions).
unsafe fn columns_set(rel: Open, query: *mut QueryDesc) -> *mut pg_sys::Bitmapset {
    // SAFETY: as `never_waits`.
    unsafe {
        let mut set: *mut pg_sys::Bitmapset = std::ptr::null_mut();
        // Tables that the executor changes, by their numbers among all tables. A partition has what the
        // statement sets in the table that it names.
        let (estate, plan) = ((*query).estate, (*query).plannedstmt);
        let changed = (*estate).es_result_relations;
        for number in PgList::<c_void>::from_pg((*plan).resultRelations).iter_int() {
            let Some(at) = usize::try_from(number).ok().and_then(|number| number.checked_sub(1)) else {
                continue;
            };
            let table = if changed.is_null() { std::ptr::null_mut() } else { *changed.add(at) };
            if !table.is_null() && Open::of((*table).ri_RelationDesc).oid() == rel.oid() {
                set = pg_sys::bms_add_members(set, pg_sys::ExecGetUpdatedCols(table, estate));
            }
        }
        let desc = rel.descriptor();
        if !set.is_null() && !(*desc).constr.is_null() && (*(*desc).constr).has_generated_stored {
            for column in rel
                .columns()
                .iter()
                .filter(|column| column.attgenerated as u8 == pg_sys::ATTRIBUTE_GENERATED_STORED)
            {
                let member = i32::from(column.attnum) - pg_sys::FirstLowInvalidHeapAttributeNumber;
                set = pg_sys::bms_add_member(set, member);
            }
        }
        set
    }
}

/// Whether the running statement certainly leaves these columns alone.
pub(super) unsafe fn leaves_alone(rel: Open, columns: *const pg_sys::Bitmapset) -> bool {
    // SAFETY: as `never_waits`.
    unsafe {
        let Some(query) = pending_rows::running_query() else { return false };
        let triggers = (*rel.as_ptr()).trigdesc;
        if !triggers.is_null() && (*triggers).trig_update_before_row {
            return false;
        }
        let set = columns_set(rel, query);
        let apart = !set.is_null() && !pg_sys::bms_overlap(set, columns);
        pg_sys::bms_free(set);
        apart
    }
}

/// Whether an UPDATE sets no column that a unique index or an exclusion constraint looks at.
unsafe fn keeps_unique_keys(rel: Open, query: *mut QueryDesc) -> bool {
    // SAFETY: as `never_waits`.
    unsafe {
        let set = columns_set(rel, query);
        !set.is_null() && rel.indexes().into_iter().all(|index| !is_unique_by(index, set))
    }
}

/// Whether an index keeps duplicates out and may look at one of these columns.
unsafe fn is_unique_by(index: Oid, columns: *const pg_sys::Bitmapset) -> bool {
    // SAFETY: the index is open for as long as its form is looked at.
    unsafe {
        with_index(index, pg_sys::AccessShareLock, |open| {
            let form = (*open.as_ptr()).rd_index;
            if !(*form).indisunique && !(*form).indisexclusion {
                return false;
            }
            let keys = (*form).indkey.values.as_slice(usize::try_from((*form).indnatts).unwrap_or(0));
            !pg_sys::RelationGetIndexPredicate(open.as_ptr()).is_null()
                || keys.iter().any(|&key| key == 0 || has_attribute(columns, key.into()))
        })
    }
}

/// Makes sure that nobody has changed a row in bulk. Waits for a transaction that is still doing so, as far
/// as the policy allows. Err: why the row cannot be locked. The caller keeps the stripe in place.
///
/// FOR KEY SHARE goes together with an UPDATE in bulk, because such an UPDATE leaves keys alone. This
/// function then locks the new version, and the caller locks the old one.
pub(super) unsafe fn settle(
    rel: Open,
    entry: &StripeEntry,
    row: u64,
    cid: CommandId,
    mode: LockTupleMode::Type,
    wait: LockWaitPolicy::Type,
) -> Result<(), (TM_Result::Type, TM_FailureData)> {
    // SAFETY: nothing is locked or pinned while this waits.
    unsafe {
        let mut at = tid::cold_tid(row);
        if !stripe_lock::has_bitmap(entry) {
            return Ok(());
        }
        loop {
            let failure = TM_FailureData { ctid: at, ..UNCHANGED };
            match delete_bitmap::last_change(entry.storage_id, row) {
                Change::None => return Ok(()),
                Change::Own(writer, cmin, successor) => {
                    let failure = TM_FailureData { ctid: successor, xmax: writer, cmax: cmin, ..failure };
                    let later = cmin >= cid;
                    return Err((
                        if later { TM_Result::TM_SelfModified } else { TM_Result::TM_Invisible },
                        failure,
                    ));
                }
                Change::Running(by, successor) | Change::Done(by, successor)
                    if mode == LockTupleMode::LockTupleKeyShare && !tid::is_cold(successor) =>
                {
                    let result = successor_locks::follow(rel, successor, by);
                    let failure = TM_FailureData { ctid: successor, xmax: by, ..failure };
                    return if result == TM_Result::TM_Ok { Ok(()) } else { Err((result, failure)) };
                }
                Change::Done(writer, successor) => {
                    let moved = !tid::is_cold(successor);
                    let failure = TM_FailureData { ctid: successor, xmax: writer, ..failure };
                    return Err((if moved { TM_Result::TM_Updated } else { TM_Result::TM_Deleted }, failure));
                }
                Change::Running(writer, _) => {
                    let what = pg_sys::XLTW_Oper::XLTW_Lock;
                    if !cold_change::wait_for(rel, writer, &mut at, wait, what) {
                        return Err((TM_Result::TM_WouldBlock, failure));
                    }
                }
            }
        }
    }
}
