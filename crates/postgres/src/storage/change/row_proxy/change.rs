//! Locking and burying proxies.
//!
//! Called by `table_am::change::cold_change` with the stripe locked (point 3). The live proxy (`make`) stays
//! pinned from look-up to lock, so that it cannot be pruned in between. Who buries a row leaves FOR KEY SHARE
//! locks of others on the tombstone and learns whose they are; who takes such a lock learns of the update
//! that it does not wait for. Invariant: RowExclusiveLock on the catalog is kept to the end of the
//! transaction, so that nobody rebuilds or rewrites it while its tuples carry locks.

use pgrx::pg_sys::{
    self, Buffer, CommandId, HeapTupleData, ItemPointerData, LockTupleMode, LockWaitPolicy, TM_FailureData,
    TM_Result, TransactionId,
};

use super::Proxy;
use super::make::{Found, find_or_make, raw_inserter};
use crate::host::relation::Open;
use crate::host::short_calls::{self as raw, together};
use crate::host::{buffer, error};
use crate::storage::catalog::indexes::Indexes;
use crate::storage::catalog::side_table::SideTable;
use crate::storage::change::multixact;
use crate::storage::directory::age::{self, Age};
use crate::storage::file::tid;

/// A live proxy, its page pinned until it is given up or the statement fails.
pub struct Pinned {
    pub(super) storage_id: u64,
    pub(super) row: u64,
    pub(super) place: ItemPointerData,
    pub(super) buffer: Buffer,
}

impl Pinned {
    /// Lets go of the page.
    pub unsafe fn release(self) {
        // SAFETY: pinned by who made this.
        unsafe { pg_sys::ReleaseBuffer(self.buffer) }
    }
}

/// What came of asking for a lock.
pub enum Outcome {
    /// The row is locked.
    Locked(Pinned),
    /// It is not, for this reason; where it has been changed, `ctid` is the TID of what has taken its place.
    Failed(TM_Result::Type, TM_FailureData),
}

/// An UPDATE of a row that leaves its key alone, by a transaction that has not rolled back as far as the
/// proxy shows.
#[derive(Clone, Copy)]
pub struct Replaced {
    /// The hot version that has taken the row's place.
    pub successor: ItemPointerData,
    /// Who has inserted it.
    pub by: TransactionId,
}

impl Replaced {
    fn is(&self, other: &Self) -> bool {
        tid::block_of(self.successor) == tid::block_of(other.successor)
            && self.successor.ip_posid == other.successor.ip_posid
            && self.by == other.by
    }
}

/// What an update of the row, if there is one that FOR KEY SHARE does not wait for, has put in its place. The
/// proxy is pinned.
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

/// Locks a cold row as `heap_lock_tuple` locks a hot one; a wait that is not wanted ends in WouldBlock
/// (`Skip`). FOR KEY SHARE is taken of a row, too, that has been updated but for its key: `follow` locks what
/// has taken its place, and says whether it could. `end` is the end of the row's stripe.
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
        // As heap does: the newer versions first, so that a row that cannot be had is not locked.
        let mut followed = None;
        let mut follow_once = || follow_new(Open::of(table), &proxy, mode, &mut followed, &follow);
        if let Some(failed) = follow_once() {
            proxy.release();
            pg_sys::table_close(table, pg_sys::NoLock as i32);
            return failed;
        }
        let mut tuple = HeapTupleData { t_self: proxy.place, ..HeapTupleData::default() };
        let (mut failure, mut pin): (_, Buffer) = (TM_FailureData::default(), 0);
        let (locked, page, why) = (&raw mut tuple, &raw mut pin, &raw mut failure);
        let result = together(|| {
            let result = raw::heap_lock_tuple(table, locked, cid, mode, wait, false, page, why);
            raw::ReleaseBuffer(*page);
            result
        });
        let outcome = match result {
            // Who has updated the row meanwhile does not know of this lock.
            TM_Result::TM_Ok => match follow_once() {
                None => Outcome::Locked(proxy),
                Some(failed) => {
                    proxy.release();
                    failed
                }
            },
            _ => missed(Open::of(table), proxy, result, failure),
        };
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        outcome
    }
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
    // SAFETY: pinned until here.
    unsafe { proxy.release() };
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

/// What a tombstone means for who wanted to lock its row.
fn replaced(tombstone: Proxy, by: TransactionId) -> Outcome {
    let own = tid::cold_tid(tombstone.row);
    let same = tid::block_of(own) == tid::block_of(tombstone.successor)
        && own.ip_posid == tombstone.successor.ip_posid;
    let result = if same { TM_Result::TM_Deleted } else { TM_Result::TM_Updated };
    let failure = TM_FailureData {
        ctid: tombstone.successor,
        xmax: by,
        cmax: pg_sys::InvalidCommandId,
        traversed: false,
    };
    Outcome::Failed(result, failure)
}

/// The tombstone at a place where the server says there is one.
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

/// Says that a locked row is dead, to commands after `cid` and whoever sees this transaction. `successor` has
/// taken its place. Returns who else has locked the row: FOR KEY SHARE, as this transaction holds a lock that
/// excludes any other.
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
        let result = pg_sys::heap_update(
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
        // What the server has carried over to the tombstone.
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

/// Writes tombstones of rows of a new file, dead to those whom `Age` says. The file's storage id is unknown
/// to others until this transaction commits. Where the rows' successors are nobody can tell any more: who has
/// to know gets an error.
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
