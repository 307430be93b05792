//! INSERT and COPY into foreign tables, and the refusal of UPDATE and DELETE.
//!
//! Rows wait in memory until a stripe is full or their statement ends (`storage::pending_rows`). The end of a
//! statement writes them before its triggers run, so nothing is done where the server ends the insertion.
//! Statements that insert a row each write a stripe each.
//!
//! The server checks constraints of its own tables only. Here NOT NULL, CHECK and the bounds of a partition
//! are checked as well, as nobody else writes the file.

use std::ffi::c_int;

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, CmdType, CommandId, EState, List, ModifyTable, ModifyTableState, PlannerInfo, Relation,
    ResultRelInfo, TupleTableSlot,
};

use crate::host::error;
use crate::host::relation::Open;
use crate::storage::pending_rows;

/// How many rows COPY hands over at a time, where it can (from 16 on).
const BATCH_ROWS: c_int = 500;

/// What an insertion keeps in the executor's memory.
struct Insertion {
    command: CommandId,
    /// The table has NOT NULL or CHECK constraints.
    has_constraints: bool,
    /// It is a partition, and nobody has made sure that rows belong there.
    has_bounds: bool,
}

/// `PlanForeignModify`: nothing to plan. Changes of rows are refused here, with a better hint than the
/// server's.
#[pg_guard]
pub unsafe extern "C-unwind" fn plan(
    root: *mut PlannerInfo,
    plan: *mut ModifyTable,
    result: pg_sys::Index,
    _at: c_int,
) -> *mut List {
    // SAFETY: the planner's own structs; the entry of a result relation is that of a table.
    unsafe {
        let verb = match (*plan).operation {
            CmdType::CMD_INSERT => return std::ptr::null_mut(),
            CmdType::CMD_DELETE => "delete from",
            _ => "update",
        };
        let entry = *(*root).simple_rte_array.add(result as usize);
        let name = std::ffi::CStr::from_ptr(pg_sys::get_rel_name((*entry).relid)).to_string_lossy();
        error::not_supported(
            format!("cannot {verb} foreign table \"{name}\""),
            "Rows of a column file stay as they were loaded.",
            "Keep rows that change in a table USING colcompress. TRUNCATE takes all rows of a column file away.",
        )
    }
}

/// `IsForeignRelUpdatable`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn allowed(_rel: Relation) -> c_int {
    1 << CmdType::CMD_INSERT
}

/// `BeginForeignModify`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn begin(
    state: *mut ModifyTableState,
    result: *mut ResultRelInfo,
    _private: *mut List,
    _at: c_int,
    flags: c_int,
) {
    if flags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int == 0 {
        // SAFETY: the executor's own structs; the statement's command id is set.
        unsafe {
            let estate = (*state).ps.state;
            prepare(estate, result, (*estate).es_output_cid);
        }
    }
}

/// `BeginForeignInsert`: COPY, or rows that are routed to a partition.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn begin_insert(
    state: *mut ModifyTableState,
    result: *mut ResultRelInfo,
) {
    // SAFETY: as `begin`. COPY's executor state has no query, and no command id.
    unsafe {
        let estate = (*state).ps.state;
        let command = match (*estate).es_plannedstmt.is_null() {
            true => pg_sys::GetCurrentCommandId(true),
            false => (*estate).es_output_cid,
        };
        prepare(estate, result, command);
    }
}

unsafe fn prepare(estate: *mut EState, result: *mut ResultRelInfo, command: CommandId) {
    // SAFETY: the caller's structs; what is kept lives as long as the query.
    unsafe {
        let rel = (*result).ri_RelationDesc;
        let is_routed = !(*result).ri_RootResultRelInfo.is_null();
        let kept =
            pg_sys::MemoryContextAlloc((*estate).es_query_cxt, size_of::<Insertion>()).cast::<Insertion>();
        kept.write(Insertion {
            command,
            has_constraints: !(*(*rel).rd_att).constr.is_null(),
            // A trigger may have changed what the row was routed by.
            has_bounds: (*(*rel).rd_rel).relispartition
                && (!is_routed || (*result).ri_TrigDesc.as_ref().is_some_and(|t| t.trig_insert_before_row)),
        });
        (*result).ri_FdwState = kept.cast();
    }
}

/// `ExecForeignInsert`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn insert(
    estate: *mut EState,
    result: *mut ResultRelInfo,
    slot: *mut TupleTableSlot,
    _plan_slot: *mut TupleTableSlot,
) -> *mut TupleTableSlot {
    // SAFETY: the executor's own structs, prepared above.
    unsafe { push(estate, result, &[slot]) };
    slot
}

/// `ExecForeignBatchInsert`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn insert_many(
    estate: *mut EState,
    result: *mut ResultRelInfo,
    slots: *mut *mut TupleTableSlot,
    _plan_slots: *mut *mut TupleTableSlot,
    count: *mut c_int,
) -> *mut *mut TupleTableSlot {
    // SAFETY: as `insert`; the server gives so many slots.
    unsafe { push(estate, result, std::slice::from_raw_parts(slots, usize::try_from(*count).unwrap_or(0))) };
    slots
}

/// `GetForeignModifyBatchSize`: not where each row is looked at when it is in.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn batch_size(result: *mut ResultRelInfo) -> c_int {
    // SAFETY: the executor's own struct; triggers are null or the relation's.
    unsafe {
        let triggers = (*result).ri_TrigDesc.as_ref();
        let has_triggers = triggers.is_some_and(|t| t.trig_insert_before_row || t.trig_insert_after_row);
        let looked_at = !(*result).ri_projectReturning.is_null() || !(*result).ri_WithCheckOptions.is_null();
        if has_triggers || looked_at { 1 } else { BATCH_ROWS }
    }
}

unsafe fn push(estate: *mut EState, result: *mut ResultRelInfo, slots: &[*mut TupleTableSlot]) {
    // SAFETY: the executor's own structs, prepared above. Nothing between `set_for` and the push removes the
    // set.
    unsafe {
        let insertion = &*(*result).ri_FdwState.cast::<Insertion>();
        for &slot in slots {
            if insertion.has_constraints {
                pg_sys::ExecConstraints(result, slot, estate);
            }
            if insertion.has_bounds {
                pg_sys::ExecPartitionCheck(result, slot, estate, true);
            }
        }
        let rel = Open::of((*result).ri_RelationDesc);
        let Some(set) = pending_rows::set_for(rel, insertion.command, 0) else {
            error::not_supported(
                "cannot load a column file while the transaction commits",
                "",
                "Insert before the end of the transaction.",
            )
        };
        (*set).push(rel, slots);
        if pending_rows::over_limit() {
            pending_rows::relieve(rel);
        }
    }
}
