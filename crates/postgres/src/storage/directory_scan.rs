//! Looking things up in `engine.stripe`.
//!
//! Callers: scans (`visible`, `all_versions`), TID fetches (`find`), VACUUM. The catalog is read with SnapshotAny and
//! each row is judged by the caller's snapshot here, in place: so reads take no predicate locks on the catalog
//! (protocol point 9), and a SnapshotDirty comes back with xmin or xmax set to whoever is still at work on the stripe
//! (point 6). Nothing here waits or decodes; it may run while the caller holds a lock on an index page.

use std::ffi::c_void;

use pgrx::pg_sys::{self, Datum, ItemPointerData, Relation, Snapshot, TransactionId};

use super::directory::{self, COLUMNS, RESERVED, StripeEntry};
use super::metapage;
use super::pages::BlockRun;
use crate::compat;
use crate::host::{buffer, error};

/// Where in the catalog's columns things are.
mod column {
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
struct Cursor {
    table: Relation,
    slot: *mut pg_sys::TupleTableSlot,
}

impl Cursor {
    unsafe fn tuple(&self) -> pg_sys::HeapTuple {
        // SAFETY: slots of heap tables are buffer heap slots, and this one holds a tuple.
        unsafe { (*self.slot.cast::<pg_sys::BufferHeapTupleTableSlot>()).base.tuple }
    }

    /// Whether the row is visible under `snapshot`, by the server's own rules for this kind of snapshot.
    unsafe fn satisfies(&self, snapshot: Snapshot) -> bool {
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
    unsafe fn inserter(&self) -> TransactionId {
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
    unsafe fn is_void(&self) -> bool {
        // SAFETY: header of a tuple under pin; its hint bits only ever tell the truth.
        unsafe { tuple_is_void(self.tuple()) }
    }

    /// Tells a serializable transaction that a scan of `rel` did not see what this row's inserter wrote.
    unsafe fn report_missed(&self, rel: Relation, snapshot: Snapshot) {
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
    unsafe fn entry(&self, with_summary: bool) -> StripeEntry {
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
unsafe fn tuple_is_void(tuple: pg_sys::HeapTuple) -> bool {
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
unsafe fn walk(storage_id: u64, from: Option<u64>, mut step: impl FnMut(&Cursor) -> bool) {
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

/// Stripes that `snapshot` sees, ordered by first row number, reservations left out.
pub unsafe fn visible(storage_id: u64, snapshot: Snapshot) -> Vec<StripeEntry> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, None, |cursor| {
            if cursor.satisfies(snapshot) {
                let entry = cursor.entry(true);
                if !entry.reserved_only {
                    found.push(entry);
                }
            }
            true
        });
    }
    found.sort_by_key(|entry: &StripeEntry| entry.first_row);
    found
}

/// `visible` of what this transaction sees as of now, with whether every snapshot sees the stripe: its writer was done
/// before `oldest_xmin`.
pub unsafe fn visible_by_age(storage_id: u64, oldest_xmin: TransactionId) -> Vec<(StripeEntry, bool)> {
    let mut found = Vec::new();
    // SAFETY: see `walk`. The inserter of a visible row has committed or is this transaction; a frozen row's is invalid
    // and precedes every other.
    unsafe {
        walk(storage_id, None, |cursor| {
            if cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                let entry = cursor.entry(true);
                if !entry.reserved_only {
                    found.push((entry, pg_sys::TransactionIdPrecedes(cursor.inserter(), oldest_xmin)));
                }
            }
            true
        });
    }
    found.sort_by_key(|(entry, _)| entry.first_row);
    found
}

/// `visible` for a scan of the whole table `rel`: also tells a serializable transaction about stripes of others that
/// it does not see.
pub unsafe fn visible_in(rel: Relation, snapshot: Snapshot) -> Vec<StripeEntry> {
    let mut found = Vec::new();
    // SAFETY: see `walk`; the conflict check happens on the user's table with the loader's xid.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return found };
        let serializable = compat::serializable_reads(rel, snapshot);
        walk(storage_id, None, |cursor| {
            if cursor.satisfies(snapshot) {
                let entry = cursor.entry(true);
                if !entry.reserved_only {
                    found.push(entry);
                }
            } else if serializable {
                cursor.report_missed(rel, snapshot);
            }
            true
        });
    }
    found.sort_by_key(|entry: &StripeEntry| entry.first_row);
    found
}

/// Every version of every row, dead ones included, without summaries; only rows of rolled-back writers are left out.
/// What it does not name belongs to nobody, or to a writer that has not got as far as the directory.
pub unsafe fn all_versions(storage_id: u64) -> Vec<StripeEntry> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, None, |cursor| {
            if !cursor.is_void() {
                found.push(cursor.entry(false));
            }
            true
        });
    }
    found
}

/// The stripe that holds row number `row` and that `snapshot` sees, without its summary. A stripe comes before a
/// reservation; a reservation is returned only where the snapshot sees it and no stripe (its rows are in a loader's
/// memory, or were never written).
/// With SnapshotDirty, xmin and xmax of the snapshot are set as for a heap tuple when something is returned and are
/// clear when nothing is.
///
/// A snapshot that judges by now looks at reservations *first*: a loader that commits between the two walks takes its
/// reservation away with its stripes in place, so the second walk finds them. The other way round a unique check could
/// find neither, and let a duplicate in.
pub unsafe fn find(storage_id: u64, row: u64, snapshot: Snapshot) -> Option<StripeEntry> {
    // SAFETY: see `walk`. Stripes that a snapshot sees do not overlap, so the first hit is the only one. A row of a
    // rolled-back writer is void even to SnapshotAny: its pages may be gone.
    unsafe {
        let look = |reserved_only: bool| {
            let mut found = None;
            walk(storage_id, Some(row), |cursor| {
                let entry = cursor.entry(false);
                if entry.reserved_only == reserved_only
                    && entry.covers(row)
                    && !cursor.is_void()
                    && cursor.satisfies(snapshot)
                {
                    found = Some(entry);
                }
                found.is_none()
            });
            found
        };
        if (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC {
            return look(false).or_else(|| look(true));
        }
        let reserved = look(true);
        let (xmin, xmax) = ((*snapshot).xmin, (*snapshot).xmax);
        let stored = look(false);
        if stored.is_some() {
            return stored;
        }
        match reserved {
            Some(_) if (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY => {
                (*snapshot).xmin = xmin;
                (*snapshot).xmax = xmax;
            }
            Some(_) => {}
            None => clear_dirty(snapshot),
        }
        reserved
    }
}

/// Resets what a SnapshotDirty reports.
pub unsafe fn clear_dirty(snapshot: Snapshot) {
    // SAFETY: snapshot is live; only snapshots of this type are written to.
    unsafe {
        if (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY {
            (*snapshot).xmin = pg_sys::InvalidTransactionId;
            (*snapshot).xmax = pg_sys::InvalidTransactionId;
            (*snapshot).speculativeToken = 0;
        }
    }
}

/// Whether this transaction has reserved `row` (and not rolled that back).
pub unsafe fn is_ours(storage_id: u64, row: u64) -> bool {
    let mut ours = false;
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, Some(row), |cursor| {
            ours = cursor.entry(false).covers(row)
                && pg_sys::TransactionIdIsCurrentTransactionId(cursor.inserter())
                && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData);
            !ours
        });
    }
    ours
}

/// TIDs of the rows that this transaction sees as of now.
pub(super) unsafe fn tids(storage_id: u64) -> Vec<ItemPointerData> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, None, |cursor| {
            if cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                found.push((*cursor.slot).tts_tid);
            }
            true
        });
    }
    found
}

/// What a scan of a whole table needs to know, from one walk over the directory.
pub struct Survey {
    /// Stripes that the snapshot sees, ordered by first row number.
    pub visible: Vec<StripeEntry>,
    /// The blocks of every version of every row.
    pub runs: Vec<BlockRun>,
}

/// Surveys the directory for a scan of `rel`; also tells a serializable transaction about what it does not see.
pub unsafe fn survey(rel: Relation, snapshot: Snapshot) -> Survey {
    let mut survey = Survey { visible: Vec::new(), runs: Vec::new() };
    // SAFETY: as `visible_in`.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return survey };
        let serializable = compat::serializable_reads(rel, snapshot);
        walk(storage_id, None, |cursor| {
            let seen = cursor.satisfies(snapshot);
            if !seen {
                if cursor.is_void() {
                    return true;
                }
                if serializable {
                    cursor.report_missed(rel, snapshot);
                }
            }
            let entry = cursor.entry(seen);
            survey.runs.push(entry.run);
            if seen && !entry.reserved_only {
                survey.visible.push(entry);
            }
            true
        });
    }
    survey.visible.sort_by_key(|entry| entry.first_row);
    survey
}

/// Tells a serializable transaction about every version that owns `row` and that its snapshot does not see.
pub unsafe fn report_missed(rel: Relation, storage_id: u64, row: u64, snapshot: Snapshot) {
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, Some(row), |cursor| {
            if cursor.entry(false).covers(row) && !cursor.satisfies(snapshot) {
                cursor.report_missed(rel, snapshot);
            }
            true
        });
    }
}

/// Stripes that somebody may still see, given the oldest transaction that is still running, with whether they are live
/// now; ordered by first row number.
pub unsafe fn not_dead(storage_id: u64, oldest_xmin: TransactionId) -> Vec<(StripeEntry, bool)> {
    use pg_sys::HTSV_Result as V;
    let mut found = Vec::new();
    // SAFETY: see `walk`; the tuple's buffer is pinned by the slot and locked while the tuple is judged.
    unsafe {
        walk(storage_id, None, |cursor| {
            let entry = cursor.entry(false);
            if entry.reserved_only {
                return true;
            }
            let buf = (*cursor.slot.cast::<pg_sys::BufferHeapTupleTableSlot>()).buffer;
            buffer::lock_shared(buf);
            let state = pg_sys::HeapTupleSatisfiesVacuum(cursor.tuple(), oldest_xmin, buf);
            buffer::unlock(buf);
            match state {
                V::HEAPTUPLE_LIVE => found.push((entry, true)),
                V::HEAPTUPLE_INSERT_IN_PROGRESS if cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) => {
                    found.push((entry, true));
                }
                V::HEAPTUPLE_DELETE_IN_PROGRESS | V::HEAPTUPLE_RECENTLY_DEAD => found.push((entry, false)),
                _ => {}
            }
            true
        });
    }
    found.sort_by_key(|(entry, _)| entry.first_row);
    found
}

/// TIDs of the reservations that this transaction has made and not rolled back.
pub(super) unsafe fn own_reservations(storage_id: u64) -> Vec<ItemPointerData> {
    let mut found = Vec::new();
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, None, |cursor| {
            if cursor.entry(false).reserved_only
                && pg_sys::TransactionIdIsCurrentTransactionId(cursor.inserter())
                && cursor.satisfies(&raw mut pg_sys::SnapshotSelfData)
            {
                found.push((*cursor.slot).tts_tid);
            }
            true
        });
    }
    found
}

/// Every (first block, block count) that any version of a row of this storage id names, by reading the whole catalog:
/// index entries are no witness for what VACUUM is about to free (protocol point 7). Rows of rolled-back writers name
/// nothing.
pub unsafe fn runs_by_heap_scan(storage_id: u64) -> Vec<BlockRun> {
    let mut runs = Vec::new();
    // SAFETY: a plain catalog scan under SnapshotAny.
    unsafe {
        let oids = directory::oids();
        let table = pg_sys::table_open(oids.table, pg_sys::AccessShareLock as i32);
        let scan = pg_sys::systable_beginscan(
            table,
            pg_sys::InvalidOid,
            false,
            &raw mut pg_sys::SnapshotAnyData,
            0,
            std::ptr::null_mut(),
        );
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            if tuple_is_void(tuple) {
                continue;
            }
            let mut values = [Datum::from(0usize); COLUMNS];
            let mut nulls = [false; COLUMNS];
            pg_sys::heap_deform_tuple(tuple, (*table).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
            if values[column::STORAGE_ID].value() as u64 == storage_id {
                let narrow = |at: usize| u32::try_from(values[at].value()).ok();
                match narrow(column::FIRST_BLOCK).zip(narrow(column::BLOCK_COUNT)) {
                    Some((first_block, block_count)) => runs.push(BlockRun { first_block, block_count }),
                    None => error::internal("engine.stripe holds a value out of range"),
                }
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(table, pg_sys::NoLock as i32);
    }
    runs
}

/// Rows in the stripes that `snapshot` sees.
pub unsafe fn row_count(storage_id: u64, snapshot: Snapshot) -> f64 {
    let mut rows = 0.0;
    // SAFETY: see `walk`.
    unsafe {
        walk(storage_id, None, |cursor| {
            if cursor.satisfies(snapshot) {
                let entry = cursor.entry(false);
                if !entry.reserved_only {
                    rows += f64::from(entry.row_count);
                }
            }
            true
        });
    }
    rows
}
