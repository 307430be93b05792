//! `engine.stripe`, the directory: which stripes exist, and for whom.
//!
//! This file changes the catalog; the others read it:
//! - `entries`: the questions to it (which stripe has a row, which stripes a snapshot sees, which are dead)
//! - `cursor`: one row of it taken apart
//! - `places`: where the row of a stripe was found last
//! - `outline`: what planning needs, kept from one statement to the next
//! - `age`: which snapshots see an entry, kept when a table is rewritten
//! - `rewrite_horizon`: which transactions every snapshot sees, when a table is rewritten
//! - `old_versions`: versions that still hold pages, and having them pruned
//! - `sort_marks`: in which order the rows of a stripe are known to be
//!
//! Each stripe is one row in state `s` (stored). A range of row numbers that was handed out before its stripe
//! exists is a row in state `r` (reserved). A snapshot sees a stripe exactly when it sees its row, so commit,
//! rollback, savepoints and two-phase commit need nothing of ours.
//!
//! Rows carry the command id of the access method's callback, not the current one, so a command never sees
//! its own stripes. A finished stripe is a *second* row inside the reserved range, because the server refuses
//! to update a row that the same command inserted.
//!
//! Invariants: a reservation's row is in the directory before any of its numbers is handed out (protocol
//! point 1). No two visible stored rows overlap. Logical decoding never publishes rows of this catalog.

pub mod age;
pub mod cursor;
pub mod entries;
pub mod old_versions;
pub mod outline;
pub mod places;
pub mod rewrite_horizon;
pub mod sort_marks;

pub use entries::{find, visible};

use std::cell::RefCell;
use std::ffi::c_void;
use stripe::{EncodedStripe, RowNumbers};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, CommandId, Datum, ItemPointerData, TransactionId, XactEvent};

use self::age::Age;
use super::catalog::indexes::Indexes;
use super::catalog::side_table::{self, Oids, STRIPE_COLUMNS, SideTable};
use super::file::metapage;
use super::file::pages::{BlockRun, Expected};
use crate::convert::varlena;
use crate::host::error;
use crate::host::relation::Open;

/// State of a row that stands for reserved row numbers.
pub(super) const RESERVED: i8 = b'r' as i8;
/// State of a row that stands for a stripe.
pub(super) const STORED: i8 = b's' as i8;
/// State of a row that stands for a stripe of rows that packing has moved.
pub(super) const MOVED: i8 = b'm' as i8;

/// One row of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeEntry {
    /// Storage id of the relation's file.
    pub storage_id: u64,
    /// Row number of the first row.
    pub first_row: u64,
    /// Rows of the stripe, or numbers reserved.
    pub row_count: u32,
    /// Where its bytes are.
    pub run: BlockRun,
    /// Bytes of the stripe.
    pub byte_length: u64,
    /// Where in these bytes the footer starts.
    pub footer_offset: u64,
    /// Bytes of the footer.
    pub footer_length: u32,
    /// `stripe::Summary` bytes: statistics for pruning without opening the stripe.
    pub summary: Vec<u8>,
    /// A reservation: the numbers are taken, but the stripe is not written yet, or never will be.
    pub reserved_only: bool,
    /// The rows were elsewhere in the table before. Snapshots that do not see the stripe see them there.
    pub moved: bool,
    /// The transaction that put the row into the directory. Invalid if it is frozen, or not in the directory
    /// yet.
    pub inserter: TransactionId,
    /// The transaction that has replaced this stripe or put it elsewhere. It may still run, or may have been
    /// rolled back. Invalid if there is none.
    pub replaced_by: TransactionId,
}

impl StripeEntry {
    /// Whether, by its statistics, the stripe can have rows for which all predicates are TRUE.
    pub fn may_match<'p>(
        &self,
        predicates: impl Iterator<Item = &'p vector::Predicate>,
    ) -> vector::Result<bool> {
        stripe::scan::may_match(&self.summary, predicates)
    }

    /// A reservation of `row_count` numbers from `first_row` on.
    pub fn reservation(storage_id: u64, first_row: u64, row_count: u32) -> Self {
        Self {
            storage_id,
            first_row,
            row_count,
            run: BlockRun::EMPTY,
            byte_length: 0,
            footer_offset: 0,
            footer_length: 0,
            summary: Vec::new(),
            reserved_only: true,
            moved: false,
            inserter: pg_sys::InvalidTransactionId,
            replaced_by: pg_sys::InvalidTransactionId,
        }
    }

    /// A stripe whose bytes were written there.
    pub fn stored(storage_id: u64, first_row: u64, run: BlockRun, encoded: EncodedStripe) -> Self {
        Self {
            run,
            byte_length: encoded.bytes.len() as u64,
            footer_offset: encoded.footer_offset,
            footer_length: encoded.footer_length,
            summary: encoded.summary,
            reserved_only: false,
            ..Self::reservation(storage_id, first_row, encoded.row_count)
        }
    }

    /// One past the last row number.
    pub fn end_row(&self) -> u64 {
        self.first_row.saturating_add(u64::from(self.row_count))
    }

    /// Whether `row` is one of its numbers.
    pub fn covers(&self, row: u64) -> bool {
        row >= self.first_row && row < self.end_row()
    }

    /// What its pages must say about themselves.
    pub fn expected(&self) -> Expected {
        Expected { storage_id: self.storage_id, first_row: self.first_row }
    }
}

pub(super) fn oids() -> Oids {
    SideTable::Stripe.oids()
}

/// Takes the locks on the directory, the proxies and the delete bitmaps that later look-ups need, and opens
/// nothing. Called before rows get index entries. A unique check asks both while it holds a lock on an index
/// page, and must not wait there for a heavyweight lock (protocol point 6).
pub unsafe fn prepare() {
    // Plain relation locks, kept to the end of the transaction.
    SideTable::Stripe.lock_for_reading();
    SideTable::RowProxy.lock_for_reading();
    SideTable::DeleteBitmap.lock_for_reading();
}

fn int8(value: u64) -> Datum {
    match i64::try_from(value) {
        Ok(value) => Datum::from(value),
        Err(_) => error::internal("value is too large for the directory"),
    }
}

/// Adds a row to the directory as command `cid` of the current transaction, to be seen as `age` says.
pub unsafe fn insert(entry: &StripeEntry, cid: CommandId, age: Age) {
    // SAFETY: heap_form_tuple copies the values; relations are closed in every path that returns, and by the
    // server's abort otherwise.
    unsafe {
        let table = SideTable::Stripe.open(pg_sys::RowExclusiveLock);
        let indexes = Indexes::open(SideTable::Stripe, Open::of(table));
        outline::forget_storage(entry.storage_id);
        let summary = varlena::allocate(&entry.summary);
        let state = match entry.reserved_only {
            true => RESERVED,
            false if entry.moved => MOVED,
            false => STORED,
        };
        let mut values = [
            int8(entry.storage_id),
            int8(entry.first_row),
            int8(u64::from(entry.row_count)),
            int8(u64::from(entry.run.first_block)),
            int8(u64::from(entry.run.block_count)),
            int8(entry.byte_length),
            int8(entry.footer_offset),
            int8(u64::from(entry.footer_length)),
            Datum::from(state),
            summary,
        ];
        let mut nulls = [false; STRIPE_COLUMNS];
        let tuple = pg_sys::heap_form_tuple((*table).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
        indexes.insert(tuple, &[values[0], values[1], values[8]], age.command(cid), age.insert_options());
        age.stamp(Open::of(table), tuple);
        pg_sys::pfree(tuple.cast());
        pg_sys::pfree(summary.cast_mut_ptr());
        indexes.close();
        pg_sys::table_close(table, pg_sys::NoLock as i32);
    }
}

/// Makes a written stripe visible. Its numbers come from a reservation of this transaction. If its rows have
/// had no TIDs yet, they come straight from the counter.
pub unsafe fn complete(entry: &StripeEntry, cid: CommandId, age: Age) {
    debug_assert!(!entry.reserved_only);
    // SAFETY: as `insert`.
    unsafe { insert(entry, cid, age) }
}

/// Notes that a stripe which every snapshot sees is at another place, `run`, from now on. Its rows keep their
/// numbers. Older snapshots go on reading it at the old place. The caller excludes all others from the stripe
/// (`stripe_lock::exclude`).
pub unsafe fn relocate(entry: &StripeEntry, run: BlockRun, cid: CommandId) {
    // SAFETY: as `insert`.
    unsafe {
        replace(&StripeEntry { run, ..entry.clone() }, cid);
    }
}

/// Replaces the row of a stripe that every snapshot sees by one that says something else about the same row
/// numbers. The caller excludes all others from the stripe (`stripe_lock::exclude`).
pub unsafe fn replace(entry: &StripeEntry, cid: CommandId) {
    // SAFETY: as `insert`.
    unsafe {
        SideTable::Stripe.delete(entry.storage_id, entries::stored_at(entry));
        insert(entry, cid, Age::New);
    }
}

/// Takes `count` row numbers, and puts their reservation into the directory before anybody can learn them.
/// VACUUM reads the counter and the directory under the same lock. So it never takes a number that was handed
/// out for a dead one (protocol point 1). Returns the first row number.
///
/// # Safety
/// `rel` is locked with RowExclusiveLock.
pub unsafe fn reserve(rel: Open, count: u32, cid: CommandId) -> u64 {
    // SAFETY: the lock is promised. The page lock on block 0 is ours alone: heap takes none.
    unsafe {
        let storage_id = metapage::ensure(rel);
        // A unique check asks all these catalogs under the lock of an index page, where nothing may wait.
        prepare();
        lock_numbers(rel, pg_sys::ExclusiveLock);
        let first = metapage::reserve_rows(rel, u64::from(count));
        insert(&StripeEntry::reservation(storage_id, first, count), cid, Age::New);
        unlock_numbers(rel, pg_sys::ExclusiveLock);
        RESERVED_IN.with_borrow_mut(|ids| {
            if !ids.contains(&storage_id) {
                ids.push(storage_id);
            }
        });
        first
    }
}

thread_local! {
    /// Storage ids in which this transaction has reserved row numbers.
    static RESERVED_IN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Registers the transaction callback that ends reservations. Must be called before the code that flushes
/// rows at pre-commit registers, because the server calls back in the opposite order.
pub unsafe fn register() {
    side_table::listen(outline::forget);
    // SAFETY: once, from _PG_init.
    unsafe { pg_sys::RegisterXactCallback(Some(transaction_event), std::ptr::null_mut()) }
}

/// Ends reservations. When a loader commits, its stripes own the numbers that were used, so the reservation
/// is not needed any more. The loader itself deletes its row. So only transactions that meet the load while
/// it runs ever see the reservation.
#[pg_guard]
unsafe extern "C-unwind" fn transaction_event(event: XactEvent::Type, _arg: *mut c_void) {
    match event {
        XactEvent::XACT_EVENT_PRE_COMMIT | XactEvent::XACT_EVENT_PRE_PREPARE => {
            let ids = RESERVED_IN.take();
            // SAFETY: the transaction is still in progress.
            unsafe {
                if !ids.is_empty() && SideTable::Stripe.oids_if_present().is_some() {
                    // Rows of the command that has just finished can be deleted only by a later command.
                    pg_sys::CommandCounterIncrement();
                    ids.into_iter()
                        .for_each(|id| SideTable::Stripe.delete(id, entries::own_reservations(id)));
                }
            }
        }
        XactEvent::XACT_EVENT_ABORT | XactEvent::XACT_EVENT_COMMIT | XactEvent::XACT_EVENT_PREPARE => {
            RESERVED_IN.take();
        }
        _ => {}
    }
}

unsafe fn lock_numbers(rel: Open, mode: u32) {
    // SAFETY: a temporary table has no other writer.
    unsafe {
        if !rel.is_temporary() {
            pg_sys::LockPage(rel.as_ptr(), 0, mode as i32);
        }
    }
}

unsafe fn unlock_numbers(rel: Open, mode: u32) {
    // SAFETY: paired with `lock_numbers`.
    unsafe {
        if !rel.is_temporary() {
            pg_sys::UnlockPage(rel.as_ptr(), 0, mode as i32);
        }
    }
}

/// The row numbers that any version of any directory row owns, read so that others below the counter are dead
/// to everybody and never used again (protocol point 1). VACUUM takes the index entries of these away, and
/// the proxies and bitmaps that speak of them go (`gone_rows`, `row_proxy/unused`). None: no metapage.
pub fn numbers_in_use(rel: Open) -> Option<RowNumbers> {
    // SAFETY: Share excludes `reserve`.
    unsafe {
        lock_numbers(rel, pg_sys::ShareLock);
        let found = metapage::read(rel);
        let result = found.map(|(storage_id, next_row)| {
            // Walks twice. A loader that commits meanwhile takes its reservation away, perhaps before the
            // first walk looks at it. Its stripe's entry may have come after that walk had copied the page of
            // the index. By the second walk it is there.
            let walk = |_| entries::all_versions(storage_id).into_iter().map(|e| (e.first_row, e.end_row()));
            RowNumbers::new(next_row, (0..2).flat_map(walk).collect())
        });
        unlock_numbers(rel, pg_sys::ShareLock);
        result
    }
}

/// Deletes every row of a storage id that this transaction can see, because its file goes away with the
/// transaction. The caller holds AccessExclusiveLock on the table.
pub unsafe fn delete_storage(storage_id: u64) {
    // SAFETY: see the functions called.
    unsafe {
        outline::forget_storage(storage_id);
        for table in [SideTable::Stripe, SideTable::RowProxy, SideTable::DeleteBitmap, SideTable::RowMove] {
            table.delete_storage(storage_id);
        }
    }
}

/// Takes stripes out of the directory, given the TIDs of their rows, for snapshots that see this transaction.
/// The caller has excluded all others from them.
pub unsafe fn remove(storage_id: u64, tids: Vec<ItemPointerData>) {
    // SAFETY: nobody else removes stripes beside the table's only mover.
    unsafe {
        outline::forget_storage(storage_id);
        SideTable::Stripe.delete(storage_id, tids);
    }
}
