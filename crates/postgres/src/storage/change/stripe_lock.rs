//! The stripe lock (protocol point 3): a transaction that locks or changes cold rows keeps their stripe where
//! it is.
//!
//! The lock is a shared lock on the stripe's first virtual block, held to the end of the transaction. Once it
//! is held, the stripe is looked up once more. A transaction that deletes rows in bulk or moves stripes takes
//! the lock exclusively (`exclude`), and only if it gets it at once.
//!
//! A transaction that needs more than `MOST` stripes takes one lock that stands for all stripes of a table,
//! so that the lock table is never exhausted. A transaction that excludes others takes that one, too, in a
//! mode that conflicts with sharing it.
//!
//! Invariants: a stripe that is remembered here is used only while the lock that keeps it is seen to be held.
//! Nobody waits while it excludes others.

use std::cell::RefCell;
use std::collections::BTreeMap;

use pgrx::pg_sys::{self, CommandId, ResourceOwner};

use super::delete_bitmap;
use crate::compat;
use crate::host::error;
use crate::host::relation::Open;
use crate::host::server_locks;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::entries::Unchangeable;
use crate::storage::directory::{entries, places};
use crate::storage::file::tid;
use crate::storage::published;

/// How many stripes a transaction locks one by one.
const MOST: usize = 64;
/// The virtual block that stands for all stripes of a table. No row number has it.
const ALL: u32 = u32::MAX - 1;
/// A transaction that excludes others from one stripe takes the lock on all stripes in this mode. It
/// conflicts with sharing all stripes, but not with excluding others from another stripe.
const ONE_OF_ALL: u32 = pg_sys::RowExclusiveLock;

/// A stripe that this transaction keeps in place.
struct Kept {
    entry: StripeEntry,
    /// Whether rows of it were deleted in bulk; None until it is asked. No other transaction can do so while
    /// the stripe is kept.
    has_bitmap: Option<bool>,
}

#[derive(Default)]
struct Held {
    transaction: u32,
    /// By storage id and first row number.
    stripes: BTreeMap<(u64, u64), Kept>,
    /// Locks taken one by one.
    locks: usize,
}

impl Held {
    fn of_row(&mut self, storage_id: u64, row: u64) -> Option<&mut Kept> {
        let (_, kept) = self.stripes.range_mut(..=(storage_id, row)).next_back()?;
        (kept.entry.storage_id == storage_id && kept.entry.covers(row)).then_some(kept)
    }
}

thread_local! {
    static HELD: RefCell<Held> = RefCell::new(Held::default());
}

/// The virtual block whose lock is that of the stripe which begins with this row.
fn block_of(first_row: u64) -> u32 {
    tid::block_of(tid::cold_tid(first_row))
}

fn is_locked(rel: Open, first_row: u64) -> bool {
    // Nobody else moves a temporary table's stripes.
    rel.is_temporary()
        || server_locks::holds_page_lock(rel.oid(), block_of(first_row), pg_sys::ShareLock)
        || server_locks::holds_page_lock(rel.oid(), ALL, pg_sys::ShareLock)
}

/// Keeps the stripe of `row` in place to the end of the transaction.
pub fn share(rel: Open, storage_id: u64, row: u64, cid: CommandId) -> Result<StripeEntry, Unchangeable> {
    let now = compat::local_transaction();
    let known = HELD.with_borrow_mut(|held| {
        if held.transaction != now {
            *held = Held { transaction: now, ..Held::default() };
        }
        held.of_row(storage_id, row).map(|kept| kept.entry.clone())
    });
    if let Some(entry) = known
        && is_locked(rel, entry.first_row)
    {
        return Ok(entry);
    }
    refuse_if_published(rel);
    // A stripe that was met before tells which lock it is. So the directory need not be looked at here,
    // only once the lock is held.
    let mut first_row = match places::first_row(storage_id, row) {
        Some(first_row) => first_row,
        None => entries::find_for_change(storage_id, row, cid)?.0.first_row,
    };
    loop {
        lock(rel, first_row);
        let (entry, settled) = entries::find_for_change(storage_id, row, cid)?;
        if entry.first_row == first_row {
            if settled {
                let kept = Kept { entry: entry.clone(), has_bitmap: None };
                HELD.with_borrow_mut(|held| held.stripes.insert((storage_id, first_row), kept));
            }
            return Ok(entry);
        }
        first_row = entry.first_row;
    }
}

/// Takes the shared lock of the stripe that begins with this row, unless this transaction has it.
fn lock(rel: Open, first_row: u64) {
    // SAFETY: page locks on an open relation; no content lock is held while this waits.
    unsafe {
        if is_locked(rel, first_row) {
            return;
        }
        let many = HELD.with_borrow_mut(|held| {
            held.locks += 1;
            held.locks > MOST
        });
        let block = if many { ALL } else { block_of(first_row) };
        if !pg_sys::ConditionalLockPage(rel.as_ptr(), block, pg_sys::ShareLock as i32) {
            // Before this backend waits it gives its claimed stripes back, so that nobody waits for them.
            delete_bitmap::write_all();
            pg_sys::LockPage(rel.as_ptr(), block, pg_sys::ShareLock as i32);
        }
    }
}

/// The stripe of a row, if this transaction keeps it in place and others have committed it. Does not look at
/// the directory.
pub fn kept(rel: Open, storage_id: u64, row: u64) -> Option<StripeEntry> {
    let now = compat::local_transaction();
    let known = HELD.with_borrow_mut(|held| {
        let of_row = if held.transaction == now { held.of_row(storage_id, row) } else { None };
        of_row.map(|kept| kept.entry.clone())
    });
    known.filter(|entry| is_locked(rel, entry.first_row))
}

/// Whether rows of a stripe that this transaction keeps in place were deleted in bulk. If so, the caller has
/// to ask about each row.
pub fn has_bitmap(entry: &StripeEntry) -> bool {
    let known = |held: &mut Held| held.of_row(entry.storage_id, entry.first_row)?.has_bitmap;
    HELD.with_borrow_mut(known).unwrap_or_else(|| {
        let found = delete_bitmap::touches(entry.storage_id, &(entry.first_row..entry.end_row()));
        HELD.with_borrow_mut(|held| {
            if let Some(kept) = held.of_row(entry.storage_id, entry.first_row) {
                kept.has_bitmap = Some(found);
            }
        });
        found
    })
}

/// Notes that this backend has deleted rows of the stripe in bulk.
pub fn note_change(entry: &StripeEntry) {
    HELD.with_borrow_mut(|held| {
        if let Some(kept) = held.of_row(entry.storage_id, entry.first_row) {
            kept.has_bitmap = Some(true);
        }
    });
}

/// Forgets all stripes. Called when a subtransaction is rolled back, and its locks with it.
pub fn forget() {
    HELD.with_borrow_mut(|held| held.stripes.clear());
}

/// Keeps all others from locking or changing rows of a stripe, until it is ended or its (sub)transaction is
/// rolled back.
#[derive(Clone, Copy)]
pub struct Exclusion {
    /// None for a temporary table, which nobody else uses.
    block: Option<u32>,
    owner: ResourceOwner,
}

/// Excludes all others from a stripe, if that is possible at once. Then no other running transaction has
/// locked or changed a row of it.
pub unsafe fn exclude(rel: Open, entry: &StripeEntry) -> Option<Exclusion> {
    // SAFETY: the locks belong to the subtransaction, as whatever runs in it may end before it does.
    unsafe {
        let owner = pg_sys::CurTransactionResourceOwner;
        if rel.is_temporary() {
            return Some(Exclusion { block: None, owner });
        }
        let block = block_of(entry.first_row);
        owned_by(owner, || {
            if !pg_sys::ConditionalLockPage(rel.as_ptr(), block, pg_sys::ExclusiveLock as i32) {
                return None;
            }
            if !pg_sys::ConditionalLockPage(rel.as_ptr(), ALL, ONE_OF_ALL as i32) {
                pg_sys::UnlockPage(rel.as_ptr(), block, pg_sys::ExclusiveLock as i32);
                return None;
            }
            Some(Exclusion { block: Some(block), owner })
        })
    }
}

impl Exclusion {
    /// Lets others in again.
    pub unsafe fn end(&self, rel: Open) {
        // SAFETY: rel is the table that was given to `exclude`; the owner lives as long as the
        // subtransaction.
        unsafe {
            if let Some(block) = self.block {
                owned_by(self.owner, || {
                    pg_sys::UnlockPage(rel.as_ptr(), ALL, ONE_OF_ALL as i32);
                    pg_sys::UnlockPage(rel.as_ptr(), block, pg_sys::ExclusiveLock as i32);
                });
            }
        }
    }

    /// Whether somebody waits for the stripe.
    pub unsafe fn has_waiters(&self, table: pg_sys::Oid) -> bool {
        // SAFETY: both locks are held.
        unsafe {
            self.block.is_some_and(|block| {
                server_locks::page_lock_has_waiters(table, block, pg_sys::ExclusiveLock)
                    || server_locks::page_lock_has_waiters(table, ALL, ONE_OF_ALL)
            })
        }
    }
}

/// Takes or releases locks on behalf of `owner`. An ERROR's abort sets the present owner anew.
unsafe fn owned_by<T>(owner: ResourceOwner, what: impl FnOnce() -> T) -> T {
    // SAFETY: the owner is one that the server keeps.
    unsafe {
        let before = pg_sys::CurrentResourceOwner;
        pg_sys::CurrentResourceOwner = owner;
        let result = what();
        pg_sys::CurrentResourceOwner = before;
        result
    }
}

/// Raises an ERROR if rows in stripes of the table must not be changed, for one of two reasons:
/// - Logical decoding reads hot rows only, so published tables have no others. The exception is a table that
///   was published while another transaction put rows into stripes, as neither saw the other.
/// - Changes of `engine.row_proxy` are logged like those of any table, and a publication of all tables would
///   publish them. So temporary and unlogged tables must not get proxies then.
fn refuse_if_published(rel: Open) {
    // SAFETY: catalog look-ups, of which the relation cache keeps the first.
    unsafe {
        let permanent = pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char;
        let (detail, hint) = if published::is_published(rel) {
            (
                "The table was published while another transaction put rows into stripes, which logical decoding does not read.",
                "engine.unpack(table) turns them into heap rows; the table is then not compressed, as long as it is published.",
            )
        } else if (*rel.form()).relpersistence != permanent && !pg_sys::GetAllTablesPublications().is_null() {
            (
                "There is a publication FOR ALL TABLES, which would publish the changes of engine.row_proxy.",
                "Drop the publication, or publish tables by name.",
            )
        } else {
            return;
        };
        error::not_supported(
            format!("cannot change or lock rows in stripes of table {}", rel.quoted_name()),
            detail,
            hint,
        );
    }
}
