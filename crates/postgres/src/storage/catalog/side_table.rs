//! The catalogs beside the users' tables: where they are, and walks over their rows.
//!
//! Used by `directory`, `row_proxy`, `delete_bitmap` and `row_move`, one catalog each. They are ordinary heap
//! tables, keyed by storage id and one or two numbers.
//!
//! Rows are read by the catalog's index with SnapshotAny, and each is judged in place by the caller's own
//! snapshot. So reads take no predicate locks on the catalogs (protocol point 9), and a SnapshotDirty tells
//! whom to wait for. Invariants: nothing here waits or decodes, because the caller may hold a lock on an
//! index page (point 6). What a cursor says about a row is valid until the next step.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FmgrInfo, ItemPointerData, Oid, Relation};

use super::by_heap::may_lack_rows;
use super::generation;
pub use super::row_cursor::{Compare, Cursor};
use crate::compat;
use crate::host::error;
use crate::host::guarded_run::{self, together};
use crate::host::relation::{Open, with_table};
use crate::host::relation_file;
use crate::storage::file::tid;

/// Columns of `engine.stripe`. No catalog has more.
pub const STRIPE_COLUMNS: usize = 10;
/// Columns of `engine.row_proxy`.
pub const ROW_PROXY_COLUMNS: usize = 4;
/// Columns of `engine.delete_bitmap`.
pub const DELETE_BITMAP_COLUMNS: usize = 4;
/// Columns of `engine.row_move`.
pub const ROW_MOVE_COLUMNS: usize = 4;
/// Columns of `engine.column_file`.
pub const COLUMN_FILE_COLUMNS: usize = 2;
/// Columns of `engine.column_file_default`.
pub const COLUMN_FILE_DEFAULT_COLUMNS: usize = 3;

/// One of the catalogs.
#[derive(Clone, Copy)]
pub enum SideTable {
    /// `engine.stripe`.
    Stripe,
    /// `engine.row_proxy`.
    RowProxy,
    /// `engine.delete_bitmap`.
    DeleteBitmap,
    /// `engine.row_move`.
    RowMove,
    /// `engine.column_file`. Its first key is a foreign table, not a storage id.
    ColumnFile,
    /// `engine.column_file_default`. Its first key is a foreign table.
    ColumnFileDefault,
}

/// OIDs of a catalog and its index.
#[derive(Clone, Copy)]
pub struct Oids {
    pub table: Oid,
    pub index: Oid,
}

thread_local! {
    static OIDS: [Cell<Option<Oids>>; 6] = const { [const { Cell::new(None) }; 6] };
    static WATCHING: Cell<bool> = const { Cell::new(false) };
    /// For each catalog the number of a file of it that was not empty.
    static FILLED: [Cell<u32>; 6] = const { [const { Cell::new(0) }; 6] };
    /// By `Compare`, the server's data of the functions that compare keys.
    static FUNCTIONS: [Cell<Option<FmgrInfo>>; 3] = const { [const { Cell::new(None) }; 3] };
}

/// The function that is also told of changed relations. An invalid Oid stands for any relation.
static LISTENER: OnceLock<fn(Oid)> = OnceLock::new();

/// Has `listener` called for every relation that changes, from when this backend has looked at a catalog.
pub fn listen(listener: fn(Oid)) {
    let _ = LISTENER.set(listener);
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_changed(_arg: Datum, relid: Oid) {
    if let Some(listener) = LISTENER.get() {
        listener(relid);
    }
    OIDS.with(|cells| {
        for cell in cells {
            if let Some(oids) = cell.get()
                && (relid == Oid::INVALID || relid == oids.table || relid == oids.index)
            {
                cell.set(None);
                generation::begin_anew();
            }
        }
    });
}

fn look_up(name: &CStr, schema: Oid) -> Option<Oid> {
    // SAFETY: a syscache look-up with a terminated name.
    let oid = unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) };
    (oid != Oid::INVALID).then_some(oid)
}

impl SideTable {
    const fn names(self) -> (&'static CStr, &'static CStr) {
        match self {
            Self::Stripe => (c"stripe", c"stripe_pkey"),
            Self::RowProxy => (c"row_proxy", c"row_proxy_pkey"),
            Self::DeleteBitmap => (c"delete_bitmap", c"delete_bitmap_first_row"),
            Self::RowMove => (c"row_move", c"row_move_pkey"),
            Self::ColumnFile => (c"column_file", c"column_file_pkey"),
            Self::ColumnFileDefault => (c"column_file_default", c"column_file_default_pkey"),
        }
    }

    const fn columns(self) -> i32 {
        match self {
            Self::Stripe => STRIPE_COLUMNS as i32,
            Self::RowProxy => ROW_PROXY_COLUMNS as i32,
            Self::DeleteBitmap => DELETE_BITMAP_COLUMNS as i32,
            Self::RowMove => ROW_MOVE_COLUMNS as i32,
            Self::ColumnFile => COLUMN_FILE_COLUMNS as i32,
            Self::ColumnFileDefault => COLUMN_FILE_DEFAULT_COLUMNS as i32,
        }
    }

    /// Columns that the key of the index has, from the first on.
    pub(super) const fn keys(self) -> usize {
        match self {
            Self::Stripe
            | Self::RowProxy
            | Self::DeleteBitmap
            | Self::ColumnFile
            | Self::ColumnFileDefault => 2,
            Self::RowMove => 3,
        }
    }

    /// OIDs of the catalog, or None when the extension is being dropped or was never created.
    pub fn oids_if_present(self) -> Option<Oids> {
        if let Some(oids) = OIDS.with(|cells| cells[self as usize].get()) {
            return Some(oids);
        }
        // SAFETY: catalog look-ups inside a transaction; the callback is registered once per backend.
        unsafe {
            if !WATCHING.replace(true) {
                pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), Datum::from(0usize));
            }
            let schema = pg_sys::get_namespace_oid(c"engine".as_ptr(), true);
            if schema == Oid::INVALID {
                return None;
            }
            let (table, index) = self.names();
            let oids = Oids { table: look_up(table, schema)?, index: look_up(index, schema)? };
            OIDS.with(|cells| cells[self as usize].set(Some(oids)));
            Some(oids)
        }
    }

    /// OIDs of the catalog.
    pub fn oids(self) -> Oids {
        match self.oids_if_present() {
            Some(oids) => oids,
            None => error::raise(
                error::PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("the catalog engine.{} does not exist", self.names().0.to_string_lossy()),
                "",
                "Create the extension colonnade in this database.",
            ),
        }
    }

    /// Takes the locks that later look-ups need, and opens nothing. Under pg_upgrade the index may be
    /// missing: users' primary keys are made before it, when the catalogs have no rows.
    pub fn lock_for_reading(self) {
        // SAFETY: plain relation locks, kept to the end of the transaction.
        unsafe {
            if let Some(oids) = self.oids_if_present() {
                pg_sys::LockRelationOid(oids.table, pg_sys::AccessShareLock as i32);
                pg_sys::LockRelationOid(oids.index, pg_sys::AccessShareLock as i32);
            }
        }
    }

    /// Opens the catalog.
    pub unsafe fn open(self, lock: u32) -> Relation {
        // SAFETY: closed by the caller, or by the server's abort.
        unsafe {
            let table = Open::of(pg_sys::table_open(self.oids().table, lock as i32));
            if (*table.descriptor()).natts != self.columns() {
                error::internal(format!(
                    "the catalog engine.{} has an unexpected number of columns",
                    self.names().0.to_string_lossy()
                ));
            }
            table.as_ptr()
        }
    }

    /// Whether the catalog's file may have rows. Once it had some this is remembered, because asking the
    /// system takes long. If the file is cut off later, a walk finds none.
    unsafe fn has_rows(self, table: Open) -> bool {
        // Its file does not change.
        let file = relation_file::file_number(&relation_file::locator(table));
        FILLED.with(|files| {
            let filled = &files[self as usize];
            if filled.get() != file && table.block_count() > 0 {
                filled.set(file);
            }
            filled.get() == file
        })
    }

    /// Walks the rows of one storage id in the order of the index, or backwards. `key` limits the second
    /// column, too. `step` returns whether to go on. Rows are compared with the keys once more: on a standby
    /// VACUUM does not wait for such scans, so another row may be at an index entry's place.
    pub fn walk(
        self,
        storage_id: u64,
        key: Option<(Compare, u64)>,
        backward: bool,
        step: impl FnMut(&Cursor) -> bool,
    ) {
        self.walk_keys(storage_id, key.as_slice(), backward, step)
    }

    /// As `walk`, with limits on the second and further columns of the index.
    pub fn walk_keys(
        self,
        storage_id: u64,
        limits: &[(Compare, u64)],
        backward: bool,
        step: impl FnMut(&Cursor) -> bool,
    ) {
        // SAFETY: both are closed here; `step` may raise an ERROR, after which the server releases all of
        // this.
        unsafe {
            let table = self.open(pg_sys::AccessShareLock);
            // An empty catalog has no row that could matter to a snapshot.
            let oid = self.oids().index;
            if !self.has_rows(Open::of(table)) {
                // There is nothing to walk.
            } else if guarded_run::TransactionStartedDuringRecovery() && may_lack_rows(oid) {
                self.walk_by_heap(storage_id, limits, backward, step);
            } else {
                let open = || guarded_run::index_open(oid, pg_sys::AccessShareLock as i32);
                let close = |index| guarded_run::index_close(index, pg_sys::NoLock as i32);
                walk_by(Open::of(table), open, close, storage_id, limits, backward, step);
            }
            pg_sys::table_close(table, pg_sys::NoLock as i32);
        }
    }

    /// Does what `walk_keys` does, for a caller that has the catalog and its index open.
    pub fn walk_opened(
        table: Open,
        index: Open,
        storage_id: u64,
        limits: &[(Compare, u64)],
        backward: bool,
        step: impl FnMut(&Cursor) -> bool,
    ) {
        // SAFETY: both are open; see `walk_keys`.
        unsafe { walk_by(table, || index.as_ptr(), |_| (), storage_id, limits, backward, step) }
    }

    /// The answer of `look` about the row at a place where there was one. None if there is nothing now.
    /// `look` has to judge itself whether it is the row that the caller means, and whether anybody sees it.
    pub fn at<T>(self, place: ItemPointerData, look: impl FnOnce(&Cursor) -> Option<T>) -> Option<T> {
        // SAFETY: the page is pinned while it is looked at; the block is in the file, which shrinks only
        // under a lock that excludes ours. An ERROR releases all of this.
        unsafe {
            let oid = self.oids().table;
            let table = together(|| guarded_run::table_open(oid, pg_sys::AccessShareLock as i32));
            let mut found = None;
            let mut pin: pg_sys::Buffer = 0;
            // If the catalog has other columns than this library knows, the walk that follows refuses it.
            let known = (*(*table).rd_att).natts == self.columns();
            if known && Open::of(table).has_block(tid::block_of(place)) {
                let mut tuple = pg_sys::HeapTupleData { t_self: place, ..pg_sys::HeapTupleData::default() };
                let (tuple, buffer) = (&raw mut tuple, &raw mut pin);
                let any = &raw mut pg_sys::SnapshotAnyData;
                if together(|| guarded_run::heap_fetch(table, any, tuple, buffer, false)) {
                    found = look(&Cursor::new(Open::of(table), tuple, pin));
                }
            }
            together(|| {
                if pin != 0 {
                    guarded_run::ReleaseBuffer(pin);
                }
                guarded_run::table_close(table, pg_sys::NoLock as i32);
            });
            found
        }
    }

    /// Deletes every row of a storage id that this transaction sees: its file goes away with the transaction.
    /// The caller holds AccessExclusiveLock on the table.
    pub unsafe fn delete_storage(self, storage_id: u64) {
        let mut found = Vec::new();
        // SAFETY: see `walk`.
        unsafe {
            if self.oids_if_present().is_none() {
                return;
            }
            self.walk(storage_id, None, false, |cursor| {
                if cursor.satisfies(&raw mut pg_sys::SnapshotSelfData) {
                    found.push(cursor.place());
                }
                true
            });
            self.delete(storage_id, found);
        }
    }

    /// Deletes rows of a storage id that nobody else can change.
    pub unsafe fn delete(self, storage_id: u64, tids: Vec<ItemPointerData>) {
        // SAFETY: simple_heap_delete raises an ERROR if somebody else changed the row, which the callers
        // exclude.
        unsafe {
            if tids.is_empty() {
                return;
            }
            // ON COMMIT DELETE ROWS runs without a snapshot, but deleting a summary's TOAST values needs one.
            let push = !pg_sys::ActiveSnapshotSet();
            if push {
                pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            }
            with_table(self.oids().table, pg_sys::RowExclusiveLock, |table| {
                for mut tid in tids {
                    pg_sys::simple_heap_delete(table.as_ptr(), &raw mut tid);
                }
            });
            generation::changed(storage_id);
            if push {
                pg_sys::PopActiveSnapshot();
            }
        }
    }
}

/// Does the work of `SideTable::walk_opened`. The frames that open and close the index own nothing.
unsafe fn walk_by(
    table: Open,
    open: impl FnOnce() -> Relation,
    close: impl FnOnce(Relation),
    storage_id: u64,
    limits: &[(Compare, u64)],
    backward: bool,
    mut step: impl FnMut(&Cursor) -> bool,
) {
    let direction = if backward {
        pg_sys::ScanDirection::BackwardScanDirection
    } else {
        pg_sys::ScanDirection::ForwardScanDirection
    };
    // SAFETY: ordinary index scan; `step` may raise an ERROR, after which the server releases all of this.
    unsafe {
        let mut keys = [pg_sys::ScanKeyData::default(); 3];
        let conditions = std::iter::once((Compare::Equal, storage_id)).chain(limits.iter().copied());
        let mut key_count = 0;
        for (key, (compare, value)) in keys.iter_mut().zip(conditions) {
            key_count += 1;
            scan_key(key, key_count as i16, compare, value);
        }
        let (keys, none) = (keys.as_mut_ptr(), std::ptr::null_mut());
        let (index, scan, slot) = together(|| {
            let index = open();
            let slot = guarded_run::table_slot_create(table.as_ptr(), std::ptr::null_mut());
            let scan = compat::index_beginscan(
                table.as_ptr(),
                index,
                &raw mut pg_sys::SnapshotAnyData,
                key_count,
                0,
            );
            guarded_run::index_rescan(scan, keys, key_count, none, 0);
            (index, scan, slot)
        });
        while together(|| guarded_run::index_getnext_slot(scan, direction, slot)) {
            // Slots of heap tables are buffer heap slots, and this one holds a tuple.
            let held = slot.cast::<pg_sys::BufferHeapTupleTableSlot>();
            let cursor = Cursor::new(table, (*held).base.tuple, (*held).buffer);
            if cursor.matches(storage_id, limits) && !step(&cursor) {
                break;
            }
            // The server does this, too. Statements that are rolled back over and over leave a row each, and
            // every walk would go through all of them until VACUUM.
            if cursor.is_known_rolled_back() && !(*scan).xactStartedInRecovery {
                (*scan).kill_prior_tuple = true;
                (*scan).xs_heap_continue = false;
            }
        }
        together(|| {
            guarded_run::index_endscan(scan);
            guarded_run::ExecDropSingleTupleTableSlot(slot);
            close(index);
        });
    }
}

unsafe fn scan_key(key: &mut pg_sys::ScanKeyData, column: i16, compare: Compare, value: u64) {
    let (strategy, function) = match compare {
        Compare::Equal => (pg_sys::BTEqualStrategyNumber, pg_sys::F_INT8EQ),
        Compare::AtMost => (pg_sys::BTLessEqualStrategyNumber, pg_sys::F_INT8LE),
        Compare::AtLeast => (pg_sys::BTGreaterEqualStrategyNumber, pg_sys::F_INT8GE),
    };
    // SAFETY: what is kept of a built-in function lives as long as the backend, as does whatever it
    // allocates.
    unsafe {
        let known = FUNCTIONS.with(|functions| functions[compare as usize].get());
        let function = known.unwrap_or_else(|| {
            let mut info = FmgrInfo::default();
            pg_sys::fmgr_info_cxt(function.into(), &raw mut info, pg_sys::TopMemoryContext);
            FUNCTIONS.with(|functions| functions[compare as usize].set(Some(info)));
            info
        });
        *key = pg_sys::ScanKeyData {
            sk_flags: 0,
            sk_attno: column,
            sk_strategy: strategy as u16,
            sk_subtype: Oid::INVALID,
            sk_collation: Oid::INVALID,
            sk_func: function,
            sk_argument: Datum::from(value as i64),
        };
    }
}
