//! The stripe lock (protocol point 3): whoever locks or changes cold rows keeps their stripe where it is.
//!
//! A shared lock on the stripe's first virtual block, held to the end of the transaction, after which the stripe is looked up once more.
//! Movers of stripes take it exclusively, only if they get it at once. A transaction that comes by more than `MOST` stripes
//! takes one lock that stands for all of a table's instead, so that the lock table is never exhausted; movers take that one,
//! too. Invariant: a stripe remembered here is used only while the lock that keeps it is seen to be held.

use std::cell::RefCell;

use pgrx::pg_sys::{self, CommandId, Relation, TM_Result};

use super::directory::StripeEntry;
use super::directory_scan;
use crate::compat;
use crate::host::{error, relation};
use crate::table_am::tid;

/// Stripes that a transaction locks one by one.
const MOST: usize = 64;
/// Virtual block that stands for all stripes of a table; no row number has it.
const ALL: u32 = u32::MAX - 1;

struct Held {
    transaction: u32,
    stripes: Vec<StripeEntry>,
    /// Locks taken one by one.
    locks: usize,
}

thread_local! {
    static HELD: RefCell<Held> = const { RefCell::new(Held { transaction: 0, stripes: Vec::new(), locks: 0 }) };
}

fn block_of(entry: &StripeEntry) -> u32 {
    tid::block_of(tid::cold_tid(entry.first_row))
}

unsafe fn is_locked(rel: Relation, entry: &StripeEntry) -> bool {
    // SAFETY: rel is open. Nobody else moves a temporary table's stripes.
    unsafe {
        relation::is_temporary(rel)
            || compat::holds_page_lock((*rel).rd_id, block_of(entry), pg_sys::ShareLock)
            || compat::holds_page_lock((*rel).rd_id, ALL, pg_sys::ShareLock)
    }
}

/// Keeps the stripe of `row` in place to the end of the transaction. Fails as a heap tuple would: Invisible to command `cid`; Deleted
/// when there is no such stripe.
pub unsafe fn share(
    rel: Relation,
    storage_id: u64,
    row: u64,
    cid: CommandId,
) -> Result<StripeEntry, TM_Result::Type> {
    // SAFETY: rel is open; MyProc is this backend's own entry.
    unsafe {
        let now = (*pg_sys::MyProc).lxid;
        let known = HELD.with_borrow_mut(|held| {
            if held.transaction != now {
                *held = Held { transaction: now, stripes: Vec::new(), locks: 0 };
            }
            let of_row = |entry: &&StripeEntry| entry.storage_id == storage_id && entry.covers(row);
            held.stripes.iter().rev().find(of_row).cloned()
        });
        if let Some(entry) = known
            && is_locked(rel, &entry)
        {
            return Ok(entry);
        }
        refuse_if_published(rel);
        let Some((entry, _)) = directory_scan::find_for_change(storage_id, row, cid)? else {
            return Err(TM_Result::TM_Deleted);
        };
        if !is_locked(rel, &entry) {
            let many = HELD.with_borrow_mut(|held| {
                held.locks += 1;
                held.locks > MOST
            });
            let block = if many { ALL } else { block_of(&entry) };
            pg_sys::LockPage(rel, block, pg_sys::ShareLock as i32);
        }
        let Some((entry, settled)) = directory_scan::find_for_change(storage_id, row, cid)? else {
            return Err(TM_Result::TM_Deleted);
        };
        if settled {
            HELD.with_borrow_mut(|held| {
                let is_other = |known: &StripeEntry| {
                    known.storage_id != storage_id || known.first_row != entry.first_row
                };
                held.stripes.retain(is_other);
                held.stripes.push(entry.clone());
            });
        }
        Ok(entry)
    }
}

/// Changes of `engine.row_proxy` are logged like those of any table. A publication of all tables would publish them: permanent tables have
/// no cold rows then, but those of other tables must not get proxies either.
unsafe fn refuse_if_published(rel: Relation) {
    // SAFETY: rel is open; a catalog look-up.
    unsafe {
        let permanent = pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char;
        if (*(*rel).rd_rel).relpersistence != permanent && !pg_sys::GetAllTablesPublications().is_null() {
            error::not_supported(
                format!("cannot change or lock rows in stripes of table {}", relation::quoted_name(rel)),
                "There is a publication FOR ALL TABLES, which would publish the changes of engine.row_proxy.",
                "Drop the publication, or publish tables by name.",
            );
        }
    }
}
