//! Rows of this backend that are not in the table yet: they stay in memory until their command ends or a
//! stripe is full.
//!
//! Who calls it:
//! - `table_am::change::insert` hands rows in.
//! - Every access to a table by this backend calls [`flush_relation`] first.
//! - The hooks in `statement` call [`finish_command`] at the end of a statement, before its AFTER triggers.
//! - `transaction` writes out what is left before a (sub)transaction commits, and discards it when one
//!   aborts.
//!
//! A set of rows belongs to one table and one command of one subtransaction. So rollback, and visibility to
//! later commands, come out as if each row had been written at once (protocol point 5 of
//! `docs/internals/concurrency.md`).
//!
//! Invariants: a set's rows are in memory or in the table, never both and never neither. No borrow of the
//! registry is held across a call that may come back here.

pub mod closed_rows;
mod destination;
mod header;
mod loader;
mod order;
mod set;
mod settings;
mod statement;
mod transaction;
mod write;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use pgrx::pg_sys::{self, CommandId, Oid, SubTransactionId};

use crate::host::relation::{Open, with_table};

pub use loader::{LoadOrder, Loader};
pub use order::Order;
pub use set::{PendingRows, Placement, STRIPE_BYTES};
pub use settings::{are_many, register_settings};
pub use statement::{known_snapshots, running_query};
pub use transaction::is_committing;
pub use write::write_pages;

/// Which command of which subtransaction wrote into which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// The table.
    pub table: Oid,
    /// The subtransaction that runs the command.
    pub subtransaction: SubTransactionId,
    /// The command id that its rows carry.
    pub command: CommandId,
}

thread_local! {
    // Boxed: `set_for` hands out pointers that must survive growth of the map.
    static SETS: RefCell<HashMap<Key, Box<PendingRows>>> = RefCell::new(HashMap::new());
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static TOTAL: Cell<usize> = const { Cell::new(0) };
    static LAST: Cell<Option<(Key, *mut PendingRows)>> = const { Cell::new(None) };
}

/// Installs hooks and transaction callbacks.
///
/// # Safety
/// Call it once, from `_PG_init`.
pub unsafe fn register() {
    // SAFETY: the caller's promise.
    unsafe {
        statement::register();
        transaction::register();
    }
}

/// True when some row of this backend may be in memory only. Cheap: meant for hot paths.
#[inline]
pub fn any() -> bool {
    COUNT.get() != 0
}

/// The set that rows of `command` into `rel` go to. None if they are to be ordinary hot rows and are not
/// counted. The pointer is valid until the next call into the server.
pub fn set_for(rel: Open, command: CommandId, options: i32) -> Option<*mut PendingRows> {
    // SAFETY: catalog look-ups happen before the registry is touched.
    unsafe {
        let key = Key { table: rel.oid(), subtransaction: pg_sys::GetCurrentSubTransactionId(), command };
        if let Some((last, set)) = LAST.get()
            && last == key
        {
            return Some(set);
        }
        let known = SETS.with_borrow_mut(|sets| sets.get_mut(&key).map(|set| &raw mut **set));
        let set = match known {
            Some(set) => set,
            None => {
                let (placement, system_columns) = destination::choose(rel, command)?;
                let set = Box::new(PendingRows::new(rel, key, placement, options, system_columns));
                SETS.with_borrow_mut(|sets| {
                    let set = &raw mut **sets.entry(key).or_insert(set);
                    COUNT.set(sets.len());
                    set
                })
            }
        };
        LAST.set(Some((key, set)));
        Some(set)
    }
}

fn keys(wanted: impl Fn(&Key) -> bool) -> Vec<Key> {
    SETS.with_borrow(|sets| {
        let mut keys: Vec<Key> = sets.keys().filter(|key| wanted(key)).copied().collect();
        keys.sort_unstable_by_key(|key| (key.command, key.subtransaction, u32::from(key.table)));
        keys
    })
}

fn pointer(key: &Key) -> Option<*mut PendingRows> {
    SETS.with_borrow_mut(|sets| sets.get_mut(key).map(|set| &raw mut **set))
}

fn forget(wanted: impl Fn(&Key) -> bool) {
    // The sets are dropped after the borrow has ended.
    let gone: Vec<Box<PendingRows>> = SETS.with_borrow_mut(|sets| {
        let keys: Vec<Key> = sets.keys().filter(|key| wanted(key)).copied().collect();
        let gone = keys.iter().filter_map(|key| sets.remove(key)).collect();
        COUNT.set(sets.len());
        gone
    });
    LAST.set(None);
    drop(gone);
}

/// Writes this backend's rows of `rel` to the table, so that a scan or fetch that starts now finds them. The
/// commands that inserted them may go on afterwards. Must not be called while a content lock is held.
pub unsafe fn flush_relation(rel: Open) {
    if !any() {
        return;
    }
    // SAFETY: sets stay where they are while they write.
    unsafe {
        let table = rel.oid();
        for key in keys(|key| key.table == table) {
            if let Some(set) = pointer(&key) {
                (*set).flush(rel);
            }
        }
    }
}

/// Writes all of this backend's rows to their tables, because other processes are about to look.
unsafe fn flush_all() {
    // SAFETY: the commands that filled the sets have locked their tables.
    unsafe {
        for key in keys(|_| true) {
            if let Some(set) = pointer(&key)
                && (*set).has_rows()
            {
                with_table(key.table, pg_sys::RowExclusiveLock, |rel| (*set).flush(rel));
            }
        }
    }
}

/// Ends the bulk load of this subtransaction into `rel`. It is the server's callback of that name, called by
/// CREATE TABLE AS, ALTER TABLE and REFRESH before the table may change its identity. COPY into many
/// partitions calls it again and again, so it does nothing then, and the end of the statement writes the
/// rows.
pub unsafe fn finish_bulk_insert(rel: Open) {
    if !any() || statement::in_copy() {
        return;
    }
    // SAFETY: a set stays where it is while it is written; the command has locked its table.
    unsafe {
        let (table, subtransaction) = (rel.oid(), pg_sys::GetCurrentSubTransactionId());
        let done = keys(|key| key.table == table && key.subtransaction == subtransaction);
        for key in &done {
            if let Some(set) = pointer(key) {
                (*set).finish(rel);
            }
        }
        forget(|key| done.contains(key));
    }
}

/// Writes and ends the sets that `wanted` accepts.
unsafe fn finish_where(wanted: impl Fn(&Key) -> bool) {
    if !any() {
        return;
    }
    let done = keys(wanted);
    if done.is_empty() {
        return;
    }
    for key in &done {
        let Some(set) = pointer(key) else { continue };
        // SAFETY: the command that filled the set has locked the table; a table that is gone cannot be
        // opened, and nobody misses its rows.
        unsafe {
            if !(*set).has_rows() {
                continue;
            }
            with_table(key.table, pg_sys::RowExclusiveLock, |rel| (*set).finish(rel));
        }
    }
    forget(|key| done.contains(key));
}

/// Ends the commands of the current subtransaction from command id `first` on, because their statement is
/// over.
unsafe fn finish_command(first: CommandId) {
    if !any() {
        return;
    }
    // SAFETY: inside a transaction.
    unsafe {
        let subtransaction = pg_sys::GetCurrentSubTransactionId();
        finish_where(|key| key.subtransaction == subtransaction && key.command >= first);
    }
}

/// True when unfinished stripes take more memory than they may.
#[inline]
pub fn over_limit() -> bool {
    TOTAL.get() > settings::load_memory_bytes()
}

/// Writes the largest sets until the memory of all sets is below the limit. `rel` is the table of the set
/// that grew.
pub unsafe fn relieve(rel: Open) {
    while over_limit() {
        let largest = SETS.with_borrow_mut(|sets| {
            sets.values_mut().max_by_key(|set| set.bytes()).map(|set| &raw mut **set)
        });
        let Some(set) = largest else { return };
        // SAFETY: the set stays where it is; its table is locked by the command that fills it.
        unsafe {
            if (*set).bytes() == 0 {
                return;
            }
            let table = (*set).key().table;
            if table == rel.oid() {
                (*set).spill(rel);
            } else {
                with_table(table, pg_sys::RowExclusiveLock, |other| (*set).spill(other));
            }
        }
    }
}

/// Notes that a set's memory has changed from `old` to `new` bytes.
fn adjust_total(old: usize, new: usize) {
    TOTAL.set((TOTAL.get() + new).saturating_sub(old));
}
