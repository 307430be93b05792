//! Tells a session that makes a replication slot which decodes every table that some tables have rows in
//! stripes.
//!
//! In SQL, functions of the server make slots. The hook for functions that are about to be executed calls
//! [`expect`], which notes the slots that are there. At the end of each query of that transaction a WARNING
//! tells of the new ones. A walsender makes slots without a query. The packing worker of the database writes
//! to the log about these, once a slot.
//!
//! Invariant: this file may say something, but it never keeps a slot from being made.

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_sys::{self, Oid, QueryDesc};

use super::publication;
use crate::compat;
use crate::host::hooks::Chain;
use crate::host::relation::Open;
use crate::host::replication_slots;
use crate::host::replication_slots::DecodingSlot;
use crate::host::shared_memory::Shared;
use crate::host::unguarded::{self, guarded};
use crate::options;
use crate::storage::decoding;
use crate::table_am::maintain::vacuum_counts;

/// A transaction that may make slots, and the slots that were there before.
struct Expecting {
    transaction: u32,
    known: Vec<DecodingSlot>,
}

static NEXT: Chain<pg_sys::ExecutorFinish_hook_type> = Chain::new();

thread_local! {
    static EXPECTING: RefCell<Option<Expecting>> = const { RefCell::new(None) };
    static IS_EXPECTING: Cell<bool> = const { Cell::new(false) };
}

/// Slots that the log has told of, by hash. 0: none.
struct Logged([AtomicU64; 64]);

static LOGGED: Shared<Logged> = Shared::new(c"colonnade slots logged");

/// Puts the hook in place, and asks for the shared memory.
///
/// # Safety
/// Call it once, from `_PG_init`, while libraries are preloaded.
pub unsafe fn install() {
    // SAFETY: the caller's promise; all bytes zero are a `Logged`.
    unsafe {
        LOGGED.register();
        NEXT.put_in_front(&raw mut pg_sys::ExecutorFinish_hook, Some(finish));
    }
}

/// Whether a function of the server's makes logical replication slots.
pub fn makes_slots(function: Oid) -> bool {
    [
        pg_sys::F_PG_CREATE_LOGICAL_REPLICATION_SLOT,
        pg_sys::F_PG_COPY_LOGICAL_REPLICATION_SLOT_NAME_NAME,
        pg_sys::F_PG_COPY_LOGICAL_REPLICATION_SLOT_NAME_NAME_BOOL,
        pg_sys::F_PG_COPY_LOGICAL_REPLICATION_SLOT_NAME_NAME_BOOL_NAME,
    ]
    .contains(&function.to_u32())
}

/// Notes the slots that are there, because a function that makes slots is about to be executed.
pub unsafe fn expect() {
    let transaction = compat::local_transaction();
    let known = EXPECTING.with_borrow(|now| now.as_ref().is_some_and(|now| now.transaction == transaction));
    if !known {
        let known = replication_slots::decoding_slots(usize::MAX);
        EXPECTING.set(Some(Expecting { transaction, known }));
        IS_EXPECTING.set(true);
    }
}

unsafe extern "C-unwind" fn finish(query: *mut QueryDesc) {
    // SAFETY: the chain is called as the server would call it, from a frame without destructors.
    unsafe {
        let next = NEXT.next().unwrap_or(unguarded::standard_ExecutorFinish);
        next(query);
        if IS_EXPECTING.get() {
            guarded(|| tell());
        }
    }
}

unsafe fn tell() {
    // SAFETY: a query has just run, in a transaction with a snapshot.
    unsafe {
        let Some(mut expecting) = EXPECTING.take() else { return };
        if expecting.transaction != compat::local_transaction() {
            IS_EXPECTING.set(false);
            return;
        }
        let slots = replication_slots::decoding_slots(usize::MAX);
        let new: Vec<_> = slots.iter().filter(|slot| !expecting.known.contains(slot)).cloned().collect();
        expecting.known = slots;
        EXPECTING.set(Some(expecting));
        if !new.is_empty() {
            let tables = tables_with_stripes();
            new.iter().for_each(|slot| decoding::tell_of_slot(slot, &tables, false));
        }
    }
}

/// Writes to the log about slots of this database that it has not told of yet.
pub unsafe fn log_slots() {
    // SAFETY: in a transaction with a snapshot.
    unsafe {
        let Some(Logged(places)) = LOGGED.get() else { return };
        let mut new = replication_slots::decoding_slots(places.len());
        new.retain(|slot| {
            let mut hasher = DefaultHasher::new();
            (pg_sys::MyDatabaseId.to_u32(), &slot.name, &slot.plugin).hash(&mut hasher);
            let hash = hasher.finish().max(1);
            let place = places.get(hash as usize % places.len());
            place.is_some_and(|place| place.swap(hash, Ordering::Relaxed) != hash)
        });
        if !new.is_empty() {
            let tables = tables_with_stripes();
            new.iter().for_each(|slot| decoding::tell_of_slot(slot, &tables, true));
        }
    }
}

/// Names of the tables that can be decoded and have rows in stripes. A table that somebody has locked
/// exclusively is left out.
unsafe fn tables_with_stripes() -> Vec<String> {
    let lock = pg_sys::AccessShareLock as i32;
    let mut found = Vec::new();
    // SAFETY: each table is locked before it is opened.
    unsafe {
        for table in publication::all_tables() {
            if !pg_sys::ConditionalLockRelationOid(table, lock) {
                continue;
            }
            let rel = pg_sys::try_relation_open(table, pg_sys::NoLock as i32);
            if rel.is_null() {
                pg_sys::UnlockRelationOid(table, lock);
                continue;
            }
            if options::is_our_relation(Open::of(rel))
                && decoding::is_logged(Open::of(rel))
                && vacuum_counts::cold_row_count(Open::of(rel)) > 0.0
            {
                found.push(Open::of(rel).quoted_name());
            }
            pg_sys::relation_close(rel, lock);
        }
    }
    found.sort();
    found
}
