//! Rows into a table as the server's COPY inserts them: many at a time, with constraints and indexes.
//!
//! Each row goes through a projection, which casts values to the types of the columns and computes the
//! defaults of those that are not filled.

use std::ffi::{CString, c_char, c_int, c_void};

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, BulkInsertState, CommandId, Datum, EState, Expr, ExprContext, List, Oid, ProgressCommandType,
    ProjectionInfo, ResultRelInfo, TupleTableSlot,
};

use crate::compat;
use crate::host::relation::Open;
use crate::host::{error, slots};

/// Rows that are inserted at once, at most, as by the server's COPY.
pub const ROWS: usize = 1000;

/// The type of values before they become those of a column.
#[derive(Clone, Copy)]
pub struct From {
    pub type_oid: Oid,
    pub modifier: i32,
}

/// Rows on their way into a table.
pub struct Insertion<'a> {
    rel: Open<'a>,
    estate: *mut EState,
    result: *mut ResultRelInfo,
    /// Memory of what the projection computes, until rows are inserted.
    context: *mut ExprContext,
    source: *mut TupleTableSlot,
    projection: *mut ProjectionInfo,
    slots: Vec<*mut TupleTableSlot>,
    bulk: BulkInsertState,
    command: CommandId,
    /// The table has NOT NULL or CHECK constraints; it is a partition.
    has_constraints: bool,
    is_partition: bool,
    rows: u64,
    name: CString,
}

impl<'a> Insertion<'a> {
    /// Values of these types are to fill these columns of a table, in so many rows.
    ///
    /// # Safety
    /// The table is open and locked, and `from` and `targets` are of one length.
    pub unsafe fn begin(rel: Open<'a>, from: &[From], targets: &[usize], rows: u64) -> Self {
        // SAFETY: executor calls as the server's COPY makes them.
        unsafe {
            let estate = pg_sys::CreateExecutorState();
            let result = pg_sys::palloc0(size_of::<ResultRelInfo>()).cast::<ResultRelInfo>();
            (*result).type_ = pg_sys::NodeTag::T_ResultRelInfo;
            pg_sys::InitResultRelInfo(result, rel.as_ptr(), 0, std::ptr::null_mut(), 0);
            pg_sys::ExecOpenIndices(result, false);
            let context = pg_sys::CreateExprContext(estate);
            let described = pg_sys::CreateTemplateTupleDesc(from.len() as c_int);
            for (number, from) in (1..).zip(from) {
                let (oid, modifier) = (from.type_oid, from.modifier);
                pg_sys::TupleDescInitEntry(described, number, std::ptr::null(), oid, modifier, 0);
            }
            let source = pg_sys::MakeSingleTupleTableSlot(described, &raw const pg_sys::TTSOpsVirtual);
            (*context).ecxt_scantuple = source;
            let slot = || pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut());
            let slots: Vec<_> =
                std::iter::repeat_with(slot).take(rows.clamp(1, ROWS as u64) as usize).collect();
            let first = slots.first().copied().unwrap_or(std::ptr::null_mut());
            let list = target_list(rel, from, targets);
            let parent = std::ptr::null_mut();
            let projection = pg_sys::ExecBuildProjectionInfo(list, context, first, parent, described);
            let copy = pg_sys::PROGRESS_COPY_COMMAND_FROM.into();
            pg_sys::pgstat_progress_start_command(ProgressCommandType::PROGRESS_COMMAND_COPY, rel.oid());
            pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_COPY_COMMAND as c_int, copy);
            let file = pg_sys::PROGRESS_COPY_TYPE_FILE.into();
            pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_COPY_TYPE as c_int, file);
            Self {
                rel,
                estate,
                result,
                context,
                source,
                projection,
                slots,
                bulk: pg_sys::GetBulkInsertState(),
                command: pg_sys::GetCurrentCommandId(true),
                has_constraints: !(*rel.descriptor()).constr.is_null(),
                is_partition: (*rel.form()).relispartition,
                rows: 0,
                name: CString::new(rel.name()).unwrap_or_default(),
            }
        }
    }

    /// Inserts so many rows, whose values are given column by column.
    ///
    /// # Safety
    /// Values of the types that were said at the beginning.
    pub unsafe fn push(&mut self, values: &[[Datum; ROWS]], nulls: &[[bool; ROWS]], count: usize) {
        let mut place = Place { name: self.name.as_ptr(), row: self.rows };
        // SAFETY: the server's stack of contexts; the entry is taken off before it goes, also by an ERROR.
        unsafe {
            let previous = pg_sys::error_context_stack;
            let mut entry = pg_sys::ErrorContextCallback {
                previous,
                callback: Some(tell_place),
                arg: (&raw mut place).cast(),
            };
            pg_sys::error_context_stack = &raw mut entry;
            let told = Told(previous);
            self.insert(values, nulls, count, &raw mut place);
            drop(told);
            self.rows += count as u64;
            let done = i64::try_from(self.rows).unwrap_or(i64::MAX);
            pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_COPY_TUPLES_PROCESSED as c_int, done);
        }
    }

    /// As `push`.
    unsafe fn insert(
        &self,
        values: &[[Datum; ROWS]],
        nulls: &[[bool; ROWS]],
        count: usize,
        place: *mut Place,
    ) {
        // SAFETY: the promise of `push`; all was made by `begin`.
        unsafe {
            let Some(all) = self.slots.get(..count) else { return };
            for (row, &slot) in all.iter().enumerate() {
                (*place).row += 1;
                for (at, (values, nulls)) in values.iter().zip(nulls).enumerate() {
                    *(*self.source).tts_values.add(at) = values.get(row).copied().unwrap_or(Datum::null());
                    *(*self.source).tts_isnull.add(at) = nulls.get(row).copied().unwrap_or(true);
                }
                slots::filled(self.source, (*(*self.source).tts_tupleDescriptor).natts as i16);
                self.project(slot);
                (*slot).tts_tableOid = self.rel.oid();
                if self.has_constraints {
                    pg_sys::ExecConstraints(self.result, slot, self.estate);
                }
                if self.is_partition {
                    pg_sys::ExecPartitionCheck(self.result, slot, self.estate, true);
                }
            }
            let (rel, slots) = (self.rel.as_ptr(), all.as_ptr().cast_mut());
            let Some(insert) = (*(*rel).rd_tableam).multi_insert else {
                error::internal("a table whose access method inserts no rows")
            };
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                insert(rel, slots, count as c_int, self.command, 0, self.bulk);
            });
            (*place).row -= count as u64;
            for &slot in all {
                (*place).row += 1;
                if (*self.result).ri_NumIndices > 0 {
                    compat::insert_index_entries(self.result, slot, self.estate);
                }
                empty(slot);
            }
            slots::forget_row(self.context);
            let own = (*self.estate).es_per_tuple_exprcontext;
            if !own.is_null() {
                slots::forget_row(own);
            }
        }
    }

    /// Fills a slot of the table with what the source makes of its row.
    unsafe fn project(&self, slot: *mut TupleTableSlot) {
        // SAFETY: the projection was made for slots of this kind. Functions of casts and defaults may raise
        // an ERROR, so there is a guard.
        unsafe {
            let state = &raw mut (*self.projection).pi_state;
            (*state).resultslot = slot;
            pg_sys::ffi::pg_guard_ffi_boundary(|| slots::fill_projection(state, self.context));
            slots::filled(slot, (*(*slot).tts_tupleDescriptor).natts as i16);
        }
    }

    /// Ends it. Returns how many rows were inserted.
    ///
    /// # Safety
    /// The table is still open.
    pub unsafe fn end(self) -> u64 {
        // SAFETY: all was made by `begin`.
        unsafe {
            pg_sys::FreeBulkInsertState(self.bulk);
            let rel = self.rel.as_ptr();
            if let Some(finish) = (*(*rel).rd_tableam).finish_bulk_insert {
                pg_sys::ffi::pg_guard_ffi_boundary(|| finish(rel, 0));
            }
            pg_sys::ExecCloseIndices(self.result);
            for &slot in self.slots.iter().chain([&self.source]) {
                pg_sys::ExecDropSingleTupleTableSlot(slot);
            }
            pg_sys::FreeExecutorState(self.estate);
            pg_sys::pgstat_progress_end_command();
        }
        self.rows
    }
}

/// Empties a slot of a table.
unsafe fn empty(slot: *mut TupleTableSlot) {
    // SAFETY: a valid slot, whose callbacks are static.
    unsafe {
        if let Some(clear) = (*(*slot).tts_ops).clear {
            pg_sys::ffi::pg_guard_ffi_boundary(|| clear(slot));
        }
    }
}

/// What the columns of a table are made of: for each an expression over the row of the source.
unsafe fn target_list(rel: Open, from: &[From], targets: &[usize]) -> *mut List {
    // SAFETY: nodes as the server's parser makes them.
    unsafe {
        let mut list = std::ptr::null_mut();
        for (at, column) in rel.columns().iter().enumerate() {
            let filled = targets.iter().position(|target| *target == at);
            let expression = match filled.and_then(|place| Some((place, from.get(place)?))) {
                Some((place, from)) => cast(place + 1, *from, column),
                None => default(rel, column),
            };
            let number = column.attnum;
            let entry = pg_sys::makeTargetEntry(expression, number, std::ptr::null_mut(), false);
            list = pg_sys::lappend(list, entry.cast());
        }
        list
    }
}

/// The value at a place of the source, as one of a column.
unsafe fn cast(number: usize, from: From, to: &pg_sys::FormData_pg_attribute) -> *mut Expr {
    // SAFETY: catalog look-ups; casts of these types are there (`direct::holds`).
    unsafe {
        let collation = pg_sys::get_typcollation(from.type_oid);
        let value = pg_sys::makeVar(1, number as i16, from.type_oid, from.modifier, collation, 0);
        let cast = pg_sys::coerce_to_target_type(
            std::ptr::null_mut(),
            value.cast(),
            from.type_oid,
            to.atttypid,
            to.atttypmod,
            pg_sys::CoercionContext::COERCION_ASSIGNMENT,
            pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
            -1,
        );
        if cast.is_null() {
            error::internal("a type without its cast");
        }
        pg_sys::expression_planner(cast.cast())
    }
}

/// What rows have in a column that is not filled.
unsafe fn default(rel: Open, column: &pg_sys::FormData_pg_attribute) -> *mut Expr {
    // SAFETY: catalog look-ups.
    unsafe {
        if !column.attisdropped {
            let default = pg_sys::build_column_default(rel.as_ptr(), column.attnum.into());
            if !default.is_null() {
                return pg_sys::expression_planner(default.cast());
            }
            return pg_sys::makeNullConst(column.atttypid, column.atttypmod, column.attcollation).cast();
        }
        // A dropped column's type may be gone, too.
        pg_sys::makeNullConst(pg_sys::INT4OID, -1, Oid::INVALID).cast()
    }
}

/// Takes off what was put on the server's stack of contexts.
struct Told(*mut pg_sys::ErrorContextCallback);

impl Drop for Told {
    fn drop(&mut self) {
        // SAFETY: what was there before.
        unsafe { pg_sys::error_context_stack = self.0 };
    }
}

/// Where an ERROR comes from.
struct Place {
    /// The table's name.
    name: *const c_char,
    /// The row in the file.
    row: u64,
}

/// Adds that to an ERROR.
#[pg_guard]
unsafe extern "C-unwind" fn tell_place(place: *mut c_void) {
    unsafe extern "C-unwind" {
        fn errcontext_msg(format: *const c_char, ...) -> c_int;
    }
    // SAFETY: the argument that was given with this function; a message is made.
    unsafe {
        let place = &*place.cast::<Place>();
        errcontext_msg(c"COPY %s, row %llu".as_ptr(), place.name, place.row);
    }
}
