//! The stripe lock (protocol point 3): whoever locks or changes cold rows keeps their stripe where it is.
//!
//! A shared lock on the stripe's first virtual block, held to the end of the transaction, after which the
//! stripe is looked up once more. Who deletes rows in bulk or moves stripes takes it exclusively (`exclude`),
//! only if it is to be had at once. A transaction that comes by more than `MOST` stripes takes one lock that
//! stands for all of a table's instead, so that the lock table is never exhausted; who excludes others takes
//! that one, too, in a mode that keeps out who shares it. Invariants: a stripe remembered here is used only
//! while the lock that keeps it is seen to be held; nobody waits while it excludes others.

use std::cell::RefCell;
use std::collections::BTreeMap;

use pgrx::pg_sys::{self, CommandId, ResourceOwner};

use super::delete_bitmap;
use crate::compat;
use crate::host::error;
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::entries::Unchangeable;
use crate::storage::directory::{entries, places};
use crate::storage::file::tid;
use crate::storage::published;

/// Stripes that a transaction locks one by one.
const MOST: usize = 64;
/// Virtual block that stands for all stripes of a table; no row number has it.
const ALL: u32 = u32::MAX - 1;
/// Whoever excludes others from one stripe takes this mode of the lock on all: it keeps out who shares them
/// all, but not who excludes others from another stripe.
const ONE_OF_ALL: u32 = pg_sys::RowExclusiveLock;

/// A stripe that this transaction keeps in place.
struct Kept {
    entry: StripeEntry,
    /// Whether rows of it were deleted in bulk, once somebody has asked: nobody else can while it is kept.
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
        || compat::holds_page_lock(rel.oid(), block_of(first_row), pg_sys::ShareLock)
        || compat::holds_page_lock(rel.oid(), ALL, pg_sys::ShareLock)
}

/// Keeps the stripe of `row` in place to the end of the transaction.
pub fn share(rel: Open, storage_id: u64, row: u64, cid: CommandId) -> Result<StripeEntry, Unchangeable> {
    // SAFETY: MyProc is this backend's own entry.
    unsafe {
        let now = (*pg_sys::MyProc).lxid;
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
        // Which lock it is a stripe met before tells without a look at the directory, which is to follow
        // anyway.
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
            // Who waits keeps others waiting for nothing it has not got to keep.
            delete_bitmap::write_all();
            pg_sys::LockPage(rel.as_ptr(), block, pg_sys::ShareLock as i32);
        }
    }
}

/// The stripe of a row, where this transaction keeps it in place and others have committed it: without a look
/// at the directory.
pub fn kept(rel: Open, storage_id: u64, row: u64) -> Option<StripeEntry> {
    // SAFETY: MyProc is this backend's own entry.
    unsafe {
        let now = (*pg_sys::MyProc).lxid;
        let known = HELD.with_borrow_mut(|held| {
            let of_row = if held.transaction == now { held.of_row(storage_id, row) } else { None };
            of_row.map(|kept| kept.entry.clone())
        });
        known.filter(|entry| is_locked(rel, entry.first_row))
    }
}

/// Whether rows of a stripe that this transaction keeps in place were deleted in bulk, so that one has to ask
/// about each.
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

/// This backend has deleted rows of the stripe in bulk.
pub fn note_change(entry: &StripeEntry) {
    HELD.with_borrow_mut(|held| {
        if let Some(kept) = held.of_row(entry.storage_id, entry.first_row) {
            kept.has_bitmap = Some(true);
        }
    });
}

/// A subtransaction has been rolled back, and its locks with it.
pub fn forget() {
    HELD.with_borrow_mut(|held| held.stripes.clear());
}

/// All others are kept from locking or changing rows of a stripe, until this is ended or its (sub)transaction
/// rolled back.
#[derive(Clone, Copy)]
pub struct Exclusion {
    /// None: of a temporary table, which nobody else comes by.
    block: Option<u32>,
    owner: ResourceOwner,
}

/// Excludes all others from a stripe, if that can be had at once: nobody else has locked or changed a row of
/// it in a transaction that still runs.
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
                compat::page_lock_has_waiters(table, block, pg_sys::ExclusiveLock)
                    || compat::page_lock_has_waiters(table, ALL, ONE_OF_ALL)
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

/// Logical decoding reads hot rows only, so what is published has no others, but where somebody has published
/// it while another transaction, which neither sees, put rows into stripes. And changes of `engine.row_proxy`
/// are logged like those of any table: a publication of all tables would publish them, so temporary and
/// unlogged tables must not get proxies either.
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
