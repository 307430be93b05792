//! Locking and burying proxies.
//!
//! Called by `table_am::change::cold_change` with the stripe locked (protocol point 3). The live proxy
//! (`make`) stays pinned from look-up to lock, so that it cannot be pruned in between.
//!
//! FOR KEY SHARE locks and updates that leave the key alone do not wait for each other. So a transaction that
//! buries a row leaves others' FOR KEY SHARE locks on the tombstone, and learns whose they are. A transaction
//! that takes such a lock learns of the update.
//!
//! Invariant: RowExclusiveLock on the catalog is kept to the end of the transaction, so that nobody rebuilds
//! or rewrites it while its tuples carry locks.

use pgrx::pg_sys::{
    self, Buffer, CommandId, HeapTupleData, ItemPointerData, LockTupleMode, LockWaitPolicy, TM_FailureData,
    TM_Result, TransactionId,
};

use super::Proxy;
use super::make::{Found, find_or_make, raw_inserter};
use crate::compat;
use crate::host::guarded_run::{self, together};
use crate::host::relation::Open;
use crate::host::{buffer, error};
use crate::storage::catalog::generation;
use crate::storage::catalog::indexes::Indexes;
use crate::storage::catalog::side_table::SideTable;
use crate::storage::change::multixact;
use crate::storage::directory::age::{self, Age};
use crate::storage::file::tid;

/// A live proxy. Its page is pinned until it is released or the statement fails.
pub struct Pinned {
    pub(super) storage_id: u64,
    pub(super) row: u64,
    pub(super) place: ItemPointerData,
    pub(super) buffer: Buffer,
}

impl Pinned {
    /// Lets go of the page.
    pub fn release(self) {
        // SAFETY: pinned by who made this.
        unsafe { pg_sys::ReleaseBuffer(self.buffer) }
    }
}

/// What came of asking for a lock.
pub enum Outcome {
    /// The row is locked.
    Locked(Pinned),
    /// The row is not locked, for this reason. If it has been changed, `ctid` is the TID of its successor.
    Failed(TM_Result::Type, TM_FailureData),
}

/// An UPDATE of a row that leaves its key alone. The proxy does not show that its transaction was rolled
/// back.
#[derive(Clone, Copy)]
pub struct Replaced {
    /// The hot version that has taken the row's place.
    pub successor: ItemPointerData,
    /// The transaction that has inserted it.
    pub by: TransactionId,
}

impl Replaced {
    fn is(&self, other: &Self) -> bool {
        tid::same(self.successor, other.successor) && self.by == other.by
    }
}

/// The update of the row that FOR KEY SHARE does not wait for, if there is one. The proxy is pinned.
unsafe fn replacement(table: Open, proxy: &Pinned) -> Option<Replaced> {
    // SAFETY: the live proxy's line pointer is in use as long as its page is pinned. The tombstone may be
    // pruned, if its writer was rolled back.
    unsafe {
        buffer::lock_shared(proxy.buffer);
        let page = buffer::page(proxy.buffer);
        let header = pg_sys::PageGetItem(page, pg_sys::PageGetItemId(page, proxy.place.ip_posid))
            .cast::<pg_sys::HeapTupleHeaderData>();
        let updated = u32::from((*header).t_infomask2) & pg_sys::HEAP_KEYS_UPDATED == 0
            && u32::from((*header).t_infomask) & pg_sys::HEAP_XMAX_INVALID == 0
            && !pg_sys::HeapTupleHeaderIsOnlyLocked(header);
        let place = (*header).t_ctid;
        buffer::unlock(proxy.buffer);
        if !updated {
            return None;
        }
        let mut tuple = HeapTupleData { t_self: place, ..HeapTupleData::default() };
        let mut pin: Buffer = 0;
        let any = &raw mut pg_sys::SnapshotAnyData;
        if !pg_sys::heap_fetch(table.as_ptr(), any, &raw mut tuple, &raw mut pin, false) {
            return None;
        }
        let (found, by) = (Proxy::of(&raw mut tuple), raw_inserter(&raw mut tuple));
        pg_sys::ReleaseBuffer(pin);
        let is_it = (found.storage_id, found.row) == (proxy.storage_id, proxy.row);
        (is_it && found.dead && !tid::is_cold(found.successor))
            .then_some(Replaced { successor: found.successor, by })
    }
}

/// Locks a cold row as `heap_lock_tuple` locks a hot one. If it would have to wait and `wait` is `Skip`, the
/// outcome is WouldBlock. `end` is the end of the row's stripe.
///
/// A row that was updated and kept its key can still be locked FOR KEY SHARE. `follow` then locks its
/// successor, too, and says whether it could.
pub unsafe fn lock(
    storage_id: u64,
    row: u64,
    end: u64,
    cid: CommandId,
    mode: LockTupleMode::Type,
    wait: LockWaitPolicy::Type,
    follow: impl Fn(Replaced) -> TM_Result::Type,
) -> Outcome {
    // SAFETY: the live proxy's page is pinned, so its line pointer is in use.
    unsafe {
        let table = SideTable::RowProxy.open(pg_sys::RowExclusiveLock);
        let proxy = match find_or_make(Open::of(table), storage_id, row, end, cid) {
            Found::Live(proxy) => proxy,
            Found::Buried(tombstone, by) => {
                pg_sys::table_close(table, pg_sys::NoLock as i32);
                return replaced(tombstone, by);
            }
            Found::Nothing => error::internal("the proxy just made is not there"),
        };
        // Locks the newer versions first, as heap does. So nothing is locked of a row that cannot be locked
        // as a whole.
        let mut followed = None;
        let mut follow_once = || follow_new(Open::of(table), &proxy, mode, &mut followed, &follow);
        if let Some(failed) = follow_once() {
            let failed = released(proxy, failed);
            pg_sys::table_close(table, pg_sys::NoLock as i32);
            return failed;
        }
        let mut tuple = HeapTupleData { t_self: proxy.place, ..HeapTupleData::default() };
        let (mut failure, mut pin): (_, Buffer) = (TM_FailureData::default(), 0);
        let (locked, page, why) = (&raw mut tuple, &raw mut pin, &raw mut failure);
        let result = together(|| {
            let result = guarded_run::heap_lock_tuple(table, locked, cid, mode, wait, false, page, why);
            guarded_run::ReleaseBuffer(*page);
            result
        });
        let outcome = match result {
            // A transaction that has updated the row meanwhile does not know of this lock.
            TM_Result::TM_Ok => match follow_once() {
                None => Outcome::Locked(proxy),
                Some(failed) => released(proxy, failed),
            },
            _ => missed(Open::of(table), proxy, result, failure),
        };
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        outcome
    }
}

/// Lets go of a proxy that was not locked after all.
fn released(proxy: Pinned, outcome: Outcome) -> Outcome {
    proxy.release();
    outcome
}

/// Has `follow` lock what has taken the row's place, if that is to be locked and was not `followed` before.
/// Some: why it could not be.
unsafe fn follow_new(
    table: Open,
    proxy: &Pinned,
    mode: LockTupleMode::Type,
    followed: &mut Option<Replaced>,
    follow: &impl Fn(Replaced) -> TM_Result::Type,
) -> Option<Outcome> {
    if mode != LockTupleMode::LockTupleKeyShare {
        return None;
    }
    // SAFETY: the proxy's page is pinned.
    let new = unsafe { replacement(table, proxy) }?;
    if followed.is_some_and(|before| before.is(&new)) {
        return None;
    }
    *followed = Some(new);
    let result = follow(new);
    (result != TM_Result::TM_Ok).then(|| {
        let (ctid, xmax, cmax) = (new.successor, new.by, pg_sys::InvalidCommandId);
        Outcome::Failed(result, TM_FailureData { ctid, xmax, cmax, traversed: false })
    })
}

/// What the server says of a row that it has not locked, in the words of the row's tombstone if it has one.
unsafe fn missed(table: Open, proxy: Pinned, result: TM_Result::Type, failure: TM_FailureData) -> Outcome {
    let is_dead =
        matches!(result, TM_Result::TM_Updated | TM_Result::TM_Deleted | TM_Result::TM_SelfModified);
    let tombstone = is_dead.then(|| fetch(table, failure.ctid));
    proxy.release();
    let Some((tombstone, by)) = tombstone else { return Outcome::Failed(result, failure) };
    // The tombstone is a copy.
    match replaced(tombstone, by) {
        Outcome::Failed(what, so) => {
            let own = result == TM_Result::TM_SelfModified;
            let failure = TM_FailureData { xmax: failure.xmax, cmax: failure.cmax, ..so };
            Outcome::Failed(if own { result } else { what }, failure)
        }
        locked @ Outcome::Locked(_) => locked,
    }
}

/// What a tombstone means for a transaction that wanted to lock its row.
fn replaced(tombstone: Proxy, by: TransactionId) -> Outcome {
    let is_own = tid::same(tid::cold_tid(tombstone.row), tombstone.successor);
    let result = if is_own { TM_Result::TM_Deleted } else { TM_Result::TM_Updated };
    let failure = TM_FailureData {
        ctid: tombstone.successor,
        xmax: by,
        cmax: pg_sys::InvalidCommandId,
        traversed: false,
    };
    Outcome::Failed(result, failure)
}

/// The tombstone at a place where the server says that there is one.
fn fetch(table: Open, place: ItemPointerData) -> (Proxy, TransactionId) {
    // SAFETY: heap_fetch pins the page it returns the tuple of.
    unsafe {
        let mut tuple = HeapTupleData { t_self: place, ..HeapTupleData::default() };
        let mut pin: Buffer = 0;
        let any = &raw mut pg_sys::SnapshotAnyData;
        if !pg_sys::heap_fetch(table.as_ptr(), any, &raw mut tuple, &raw mut pin, false) {
            error::internal("a tombstone is not there");
        }
        let found = (Proxy::of(&raw mut tuple), raw_inserter(&raw mut tuple));
        pg_sys::ReleaseBuffer(pin);
        found
    }
}

/// Buries a locked row: it is dead for commands after `cid`, and for snapshots that see this transaction.
/// `successor` has taken its place. Returns the transactions that have also locked the row. Their locks are
/// FOR KEY SHARE, as this transaction's lock excludes any other.
pub unsafe fn bury(proxy: Pinned, successor: ItemPointerData, cid: CommandId) -> Vec<TransactionId> {
    // SAFETY: this transaction holds a lock of the row that lets no other update it, so the update neither
    // waits nor fails.
    unsafe {
        let table = SideTable::RowProxy.open(pg_sys::RowExclusiveLock);
        let tombstone = Proxy { successor, dead: true, ..Proxy::live(proxy.storage_id, proxy.row) };
        let tuple = tombstone.form(Open::of(table));
        let mut failure = TM_FailureData::default();
        let mut mode = LockTupleMode::LockTupleExclusive;
        let mut place = proxy.place;
        let result = compat::heap_update(
            table,
            &raw mut place,
            tuple,
            cid,
            std::ptr::null_mut(),
            true,
            &raw mut failure,
            &raw mut mode,
        );
        if result != TM_Result::TM_Ok {
            error::internal(format!("a locked row could not be changed (state {result})"));
        }
        if u32::from((*(*tuple).t_data).t_infomask2) & pg_sys::HEAP_ONLY_TUPLE == 0 {
            let indexes = Indexes::open(SideTable::RowProxy, Open::of(table));
            indexes.enter(&tombstone.key(), (*tuple).t_self);
            indexes.close();
        }
        generation::changed(proxy.storage_id);
        // The lockers that the server has carried over to the tombstone.
        let mut lockers = multixact::holders((*tuple).t_data);
        lockers.retain(|locker| {
            !pg_sys::TransactionIdIsCurrentTransactionId(locker.xid)
                && pg_sys::TransactionIdIsInProgress(locker.xid)
        });
        pg_sys::pfree(tuple.cast());
        proxy.release();
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        lockers.into_iter().map(|locker| locker.xid).collect()
    }
}

/// Writes tombstones for rows of a new file. `Age` says for which snapshots each row is dead. Others do not
/// know the file's storage id until this transaction commits. The rows' successors are not known any more: a
/// transaction that needs one gets an error.
pub unsafe fn insert_buried(storage_id: u64, rows: &[(u64, Age)], cid: CommandId) {
    // SAFETY: as `directory::insert`.
    unsafe {
        if rows.is_empty() {
            return;
        }
        let table = SideTable::RowProxy.open(pg_sys::RowExclusiveLock);
        let indexes = Indexes::open(SideTable::RowProxy, Open::of(table));
        let mut stamps = Vec::new();
        for &(row, age) in rows {
            pgrx::check_for_interrupts!();
            let tombstone =
                Proxy { successor: super::OTHER_PARTITION, dead: true, ..Proxy::live(storage_id, row) };
            let tuple = tombstone.form(Open::of(table));
            indexes.insert(tuple, &tombstone.key(), age.command(cid), age.insert_options());
            if let Age::Since(inserter) = age {
                stamps.push(((*tuple).t_self, inserter));
            }
            pg_sys::pfree(tuple.cast());
        }
        age::set_inserters(Open::of(table), stamps);
        indexes.close();
        pg_sys::table_close(table, pg_sys::NoLock as i32);
    }
}
