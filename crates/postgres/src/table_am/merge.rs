//! `engine.colcompress_merge(regclass)`: a table rewritten so that all its rows are in full stripes, sorted by `orderby` if it has one;
//! and `engine.unpack(regclass)`: one rewritten so that all are in heap pages, which publishing it needs.
//!
//! Both work like the rewriting forms of ALTER TABLE: a new file is filled from what a fresh snapshot sees, takes the old one's place,
//! and indexes are built anew, all in the caller's transaction under AccessExclusiveLock. As with those, a
//! transaction whose snapshot is older than the rewrite finds the table empty afterwards.
//! Invariant: until the swap the old file is untouched, so an ERROR anywhere leaves the table as it was.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, CommandId, Datum, FunctionCallInfo, Oid, Relation, TupleTableSlot};

use super::{maintenance, vacuum_counts};
use crate::compat;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::relation;
use crate::storage::directory_age::Age;
use crate::storage::metapage;
use crate::storage::open_stripes::{self, LoadOrder, Loader};

crate::sql_function!(pg_finfo_colonnade_colcompress_merge);
crate::sql_function!(pg_finfo_colonnade_unpack);

/// `engine.colcompress_merge(regclass)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_colcompress_merge(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; checks raise an ERROR.
    unsafe {
        rewrite(maintenance::table_argument(call), Into::Stripes);
        Datum::null()
    }
}

/// `engine.unpack(regclass)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_unpack(call: FunctionCallInfo) -> Datum {
    // SAFETY: as above.
    unsafe {
        rewrite(maintenance::table_argument(call), Into::HeapPages);
        Datum::null()
    }
}

/// Where the rows go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    Stripes,
    HeapPages,
}

unsafe fn rewrite(table: Oid, into: Into) {
    // SAFETY: the lock is kept to the end of the transaction; every check may raise an ERROR.
    unsafe {
        let verb = if into == Into::Stripes { "merge" } else { "unpack" };
        let old = maintenance::open_owned(table, pg_sys::AccessExclusiveLock, verb);
        if into == Into::Stripes {
            check_unpublished(old);
        }
        pg_sys::PreventCommandIfReadOnly(
            if into == Into::Stripes { c"engine.colcompress_merge()" } else { c"engine.unpack()" }.as_ptr(),
        );
        pg_sys::CheckTableNotInUse(old, if into == Into::Stripes { c"merge" } else { c"unpack" }.as_ptr());
        open_stripes::flush_relation(old);
        pg_sys::CommandCounterIncrement();
        let form = (*old).rd_rel;
        let (space, method, persistence) = ((*form).reltablespace, (*form).relam, (*form).relpersistence);
        let target =
            compat::make_new_heap(table, space, method, persistence, pg_sys::AccessExclusiveLock as i32);
        // Rows get other numbers, and locks on them are by number.
        compat::transfer_predicate_locks(old);
        copy(old, target, into);
        pg_sys::table_close(old, pg_sys::NoLock as i32);
        compat::finish_heap_swap(table, target, persistence);
    }
}

unsafe fn check_unpublished(rel: Relation) {
    // SAFETY: rel is open and locked.
    unsafe {
        if open_stripes::is_published(rel) {
            error::raise(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot merge table {} because it is published", relation::quoted_name(rel)),
                "Logical decoding reads ordinary heap rows only, so a published table has no stripes.",
                "Take the table out of its publications first.",
            );
        }
    }
}

/// What takes the rows.
enum Target {
    Stripes(Box<Loader>),
    HeapPages(pg_sys::BulkInsertState),
}

/// Puts one row into heap pages. Its tuple is made anew: the table forgets which values old rows lack, and what dropped columns held.
unsafe fn insert_hot(
    new: Relation,
    slot: *mut TupleTableSlot,
    command: CommandId,
    state: pg_sys::BulkInsertState,
) {
    // SAFETY: the slot has the row type of `new`; the tuple lives in the caller's short-lived context.
    unsafe {
        pg_sys::slot_getallattrs(slot);
        let desc = (*new).rd_att;
        let count = usize::try_from((*desc).natts).unwrap_or(0);
        for (column, attribute) in (*desc).attrs.as_slice(count).iter().enumerate() {
            *(*slot).tts_isnull.add(column) |= attribute.attisdropped;
        }
        let tuple = pg_sys::heap_form_tuple(desc, (*slot).tts_values, (*slot).tts_isnull);
        pg_sys::heap_insert(new, tuple, command, pg_sys::TABLE_INSERT_SKIP_FSM as i32, state);
    }
}

/// Copies every row that a fresh snapshot sees.
unsafe fn copy(old: Relation, target: Oid, into: Into) {
    // SAFETY: both relations are locked exclusively; the slot fits both, since the new one has the old one's row type.
    unsafe {
        let new = pg_sys::table_open(target, pg_sys::NoLock as i32);
        let command = pg_sys::GetCurrentCommandId(true);
        let mut target = match into {
            Into::Stripes => {
                Target::Stripes(Box::new(Loader::new(new, LoadOrder::Sorted, command, Age::New)))
            }
            Into::HeapPages => {
                // Heap would take block 0 otherwise.
                metapage::ensure(new);
                Target::HeapPages(pg_sys::GetBulkInsertState())
            }
        };
        let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
        let slot = pg_sys::table_slot_create(old, std::ptr::null_mut());
        let scan = pg_sys::table_beginscan(old, snapshot, 0, std::ptr::null_mut());
        let context = pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            c"colonnade merge".as_ptr(),
            0,
            8 * 1024,
            8 * 1024 * 1024,
        );
        let before = pg_sys::MemoryContextSwitchTo(context);
        let mut rows = 0.0;
        while pg_sys::table_scan_getnextslot(scan, pg_sys::ScanDirection::ForwardScanDirection, slot) {
            match &mut target {
                Target::Stripes(loader) => loader.push(new, &[slot]),
                Target::HeapPages(state) => insert_hot(new, slot, command, *state),
            }
            rows += 1.0;
            pg_sys::MemoryContextReset(context);
            pgrx::check_for_interrupts!();
        }
        match target {
            Target::Stripes(loader) => loader.finish(new),
            Target::HeapPages(state) => pg_sys::FreeBulkInsertState(state),
        }
        pg_sys::MemoryContextSwitchTo(before);
        pg_sys::MemoryContextDelete(context);
        pg_sys::table_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::UnregisterSnapshot(snapshot);
        // The swap takes these figures along.
        vacuum_counts::set_counts(new, rows);
        pg_sys::table_close(new, pg_sys::NoLock as i32);
        pg_sys::CommandCounterIncrement();
    }
}
