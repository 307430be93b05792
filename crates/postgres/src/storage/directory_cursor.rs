//! A cursor over the rows of `engine.stripe`.
//!
//! Called by `directory_scan`, which asks the questions. Rows are read with SnapshotAny, by the catalog's index, and each is
//! judged by the caller's own snapshot in place. Nothing here waits or decodes; it may run while the caller holds a lock
//! on an index page. Invariant: what a cursor says about a row is good until the next step.

use std::ffi::c_void;

use pgrx::pg_sys::{self, Datum, Relation, Snapshot, TransactionId};

use super::directory::{self, COLUMNS, RESERVED, StripeEntry};
use super::pages::BlockRun;
use crate::compat;
use crate::host::{buffer, error};

/// Where in the catalog's columns things are.
pub(super) mod column {
    pub const STORAGE_ID: usize = 0;
    pub const FIRST_ROW: usize = 1;
    pub const ROW_COUNT: usize = 2;
    pub const FIRST_BLOCK: usize = 3;
    pub const BLOCK_COUNT: usize = 4;
    pub const BYTE_LENGTH: usize = 5;
    pub const FOOTER_OFFSET: usize = 6;
    pub const FOOTER_LENGTH: usize = 7;
    pub const STATE: usize = 8;
    pub const SUMMARY: usize = 9;
}

/// The row a look-up stands on. Valid until the next step.
pub(super) struct Cursor {
    table: Relation,
    pub(super) slot: *mut pg_sys::TupleTableSlot,
}

impl Cursor {
    pub(super) unsafe fn tuple(&self) -> pg_sys::HeapTuple {
        // SAFETY: slots of heap tables are buffer heap slots, and this one holds a tuple.
        unsafe { (*self.slot.cast::<pg_sys::BufferHeapTupleTableSlot>()).base.tuple }
    }

    /// Whether the row is visible under `snapshot`, by the server's own rules for this kind of snapshot.
    pub(super) unsafe fn satisfies(&self, snapshot: Snapshot) -> bool {
        // SAFETY: the slot pins the tuple's buffer; hint bits are set under the shared lock.
        unsafe {
            let buf = (*self.slot.cast::<pg_sys::BufferHeapTupleTableSlot>()).buffer;
            buffer::lock_shared(buf);
            let seen = pg_sys::HeapTupleSatisfiesVisibility(self.tuple(), snapshot, buf);
            buffer::unlock(buf);
            seen
        }
    }

    /// The transaction that inserted the row (invalid when frozen).
    pub(super) unsafe fn inserter(&self) -> TransactionId {
        // SAFETY: header of a live tuple under pin; xmin and the infomask bits do not change but for hints.
        unsafe {
            let header = (*self.tuple()).t_data;
            let frozen = (pg_sys::HEAP_XMIN_COMMITTED | pg_sys::HEAP_XMIN_INVALID) as u16;
            if (*header).t_infomask & frozen == frozen {
                return pg_sys::InvalidTransactionId;
            }
            (*header).t_choice.t_heap.t_xmin
        }
    }

    /// Whether the row was inserted by a transaction that rolled back or died: then nobody ever saw it, nor will.
    pub(super) unsafe fn is_void(&self) -> bool {
        // SAFETY: header of a tuple under pin; its hint bits only ever tell the truth.
        unsafe { tuple_is_void(self.tuple()) }
    }

    /// Tells a serializable transaction that a scan of `rel` did not see what this row's inserter wrote.
    pub(super) unsafe fn report_missed(&self, rel: Relation, snapshot: Snapshot) {
        // SAFETY: server calls about a plain xid.
        unsafe {
            let writer = self.inserter();
            if writer != pg_sys::InvalidTransactionId
                && !pg_sys::TransactionIdIsCurrentTransactionId(writer)
                && !pg_sys::TransactionIdDidAbort(writer)
            {
                compat::serializable_missed(rel, writer, snapshot);
            }
        }
    }

    /// The row as an entry.
    pub(super) unsafe fn entry(&self, with_summary: bool) -> StripeEntry {
        // SAFETY: the tuple has COLUMNS columns (checked when the table was opened), none of them null.
        unsafe {
            let mut values = [Datum::from(0usize); COLUMNS];
            let mut nulls = [false; COLUMNS];
            pg_sys::heap_deform_tuple(
                self.tuple(),
                (*self.table).rd_att,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            let wide = |at: usize| -> u64 {
                match u64::try_from(values[at].value() as i64) {
                    Ok(value) if !nulls[at] => value,
                    _ => error::internal("engine.stripe holds a value out of range"),
                }
            };
            let narrow = |at: usize| -> u32 {
                u32::try_from(wide(at))
                    .unwrap_or_else(|_| error::internal("engine.stripe holds a value out of range"))
            };
            let summary = if with_summary && !nulls[column::SUMMARY] {
                bytes_of(values[column::SUMMARY])
            } else {
                Vec::new()
            };
            StripeEntry {
                storage_id: wide(column::STORAGE_ID),
                first_row: wide(column::FIRST_ROW),
                row_count: narrow(column::ROW_COUNT),
                run: BlockRun {
                    first_block: narrow(column::FIRST_BLOCK),
                    block_count: narrow(column::BLOCK_COUNT),
                },
                byte_length: wide(column::BYTE_LENGTH),
                footer_offset: wide(column::FOOTER_OFFSET),
                footer_length: narrow(column::FOOTER_LENGTH),
                summary,
                reserved_only: values[column::STATE].value() as i8 == RESERVED,
            }
        }
    }
}

/// See `Cursor::is_void`.
pub(super) unsafe fn tuple_is_void(tuple: pg_sys::HeapTuple) -> bool {
    // SAFETY: the tuple is pinned by the caller. "Running" is asked before "committed", as everywhere in the server.
    unsafe {
        let header = (*tuple).t_data;
        let hints =
            u32::from((*header).t_infomask) & (pg_sys::HEAP_XMIN_COMMITTED | pg_sys::HEAP_XMIN_INVALID);
        if hints & pg_sys::HEAP_XMIN_COMMITTED != 0 {
            return false;
        }
        let writer = (*header).t_choice.t_heap.t_xmin;
        hints == pg_sys::HEAP_XMIN_INVALID
            || (!pg_sys::TransactionIdIsInProgress(writer) && !pg_sys::TransactionIdDidCommit(writer))
    }
}

/// Bytes of a bytea, brought in from the TOAST table where they do not fit the row.
unsafe fn bytes_of(value: Datum) -> Vec<u8> {
    // SAFETY: value points at a varlena inside a pinned page; what detoasting allocates is freed again.
    unsafe {
        let raw = value.cast_mut_ptr::<pg_sys::varlena>();
        let flat = pg_sys::pg_detoast_datum_packed(raw);
        let out = pgrx::varlena::varlena_to_byte_slice(flat).to_vec();
        if !std::ptr::eq(flat, raw) {
            pg_sys::pfree(flat.cast::<c_void>());
        }
        out
    }
}

/// Walks the rows of one storage id in key order, or backwards from the last row whose first row number is at
/// most `from`. `step` returns whether to go on.
pub(super) unsafe fn walk(storage_id: u64, from: Option<u64>, mut step: impl FnMut(&Cursor) -> bool) {
    // SAFETY: ordinary index scan; `step` may raise an ERROR, after which the server releases all of this.
    unsafe {
        let oids = directory::oids();
        let table = pg_sys::table_open(oids.table, pg_sys::AccessShareLock as i32);
        let index = pg_sys::index_open(oids.index, pg_sys::AccessShareLock as i32);
        if (*(*table).rd_att).natts != COLUMNS as i32 {
            error::internal("the catalog engine.stripe has an unexpected number of columns");
        }
        let cursor = Cursor { table, slot: pg_sys::table_slot_create(table, std::ptr::null_mut()) };
        let mut keys = [pg_sys::ScanKeyData::default(), pg_sys::ScanKeyData::default()];
        pg_sys::ScanKeyInit(
            &raw mut keys[0],
            1,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::F_INT8EQ.into(),
            Datum::from(storage_id as i64),
        );
        let mut key_count = 1;
        if let Some(row) = from {
            pg_sys::ScanKeyInit(
                &raw mut keys[1],
                2,
                pg_sys::BTLessEqualStrategyNumber as u16,
                pg_sys::F_INT8LE.into(),
                Datum::from(row as i64),
            );
            key_count = 2;
        }
        let scan = pg_sys::index_beginscan(table, index, &raw mut pg_sys::SnapshotAnyData, key_count, 0);
        pg_sys::index_rescan(scan, keys.as_mut_ptr(), key_count, std::ptr::null_mut(), 0);
        let direction = if from.is_some() {
            pg_sys::ScanDirection::BackwardScanDirection
        } else {
            pg_sys::ScanDirection::ForwardScanDirection
        };
        while pg_sys::index_getnext_slot(scan, direction, cursor.slot) {
            if !step(&cursor) {
                break;
            }
        }
        pg_sys::index_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(cursor.slot);
        pg_sys::index_close(index, pg_sys::NoLock as i32);
        pg_sys::table_close(table, pg_sys::NoLock as i32);
    }
}
