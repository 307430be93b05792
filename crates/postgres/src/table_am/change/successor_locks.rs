//! FOR KEY SHARE locks on the hot versions that follow a cold row.
//!
//! An UPDATE that leaves the key alone does not wait for FOR KEY SHARE locks, and such a lock does not wait
//! for the UPDATE. So each of these locks has to be on the new version, too: otherwise a DELETE of the new
//! version would not wait for it.
//!
//! Heap copies xmax to the new version, and later lockers follow the chain of versions (README.tuplock of the
//! server). Its functions begin at a tuple of the same table, and a proxy is none. So this file has its own:
//! - `carry`: the updater carries the locks on the proxy over to the new version
//! - `follow`: a locker that finds the proxy updated follows to the new version
//!
//! `cold_change` and `bulk_change` call them.
//!
//! Why no lock is lost: `heap_update` of the proxy copies the lockers to the tombstone under the page's lock.
//! - A transaction that locked the proxy before is in that copy. Its lock is carried before anybody else can
//!   see the new version.
//! - A transaction that locks the proxy later looks whether the proxy was updated once its own lock is on it.
//!
//! One hole is heap's own: if the new tuple does not fit the page, `heap_update` unlocks the page for a
//! moment. It forgets a transaction that locks the tuple meanwhile. To avoid it, half of each page of proxies
//! is left free for tombstones.
//!
//! Invariants: while this waits, it locks and pins nothing but the caller's pin of the proxy. What is written
//! is what heap's redo of a locked version restores.

use pgrx::pg_sys::{
    self, Buffer, HeapTupleData, HeapTupleHeader, ItemPointerData, MultiXactStatus, Relation, TM_Result,
    TransactionId,
};

use crate::host::heap_tuple::updater;
use crate::host::relation::Open;
use crate::host::wal;
use crate::host::{buffer, critical};
use crate::storage::change::{delete_bitmap, multixact};
use crate::storage::file::tid;

/// Puts others' FOR KEY SHARE locks on a version that this transaction has just inserted.
pub(super) unsafe fn carry(rel: Open, at: ItemPointerData, lockers: &[TransactionId]) {
    if lockers.is_empty() {
        return;
    }
    // SAFETY: the version is this transaction's own and cannot be pruned. Nobody else changes it, so there is
    // nobody to wait for.
    unsafe {
        if let Some(version) = Version::fetch(rel, at) {
            version.lock();
            version.add(lockers);
            version.release();
        }
    }
}

/// What stands in the way of a lock.
enum Conflict {
    None,
    /// This transaction has locked or changed the version itself.
    Own,
    /// A transaction that is still running, to be waited for.
    Wait(TransactionId),
    /// A transaction that has changed the key or deleted the row.
    Gone,
}

/// Locks the version at `at`, which `by` has inserted, and those after it FOR KEY SHARE for this transaction.
/// It waits for a transaction that is changing the key or deleting a version, whatever the policy is, as heap
/// does.
pub(super) unsafe fn follow(rel: Open, mut at: ItemPointerData, mut by: TransactionId) -> TM_Result::Type {
    // SAFETY: pins and locks are given up before this waits and before it returns; the server's abort does so
    // on an ERROR.
    unsafe {
        let locker = pg_sys::GetCurrentTransactionId();
        pg_sys::MultiXactIdSetOldestMember();
        loop {
            pgrx::check_for_interrupts!();
            // If there is no such version, its inserter was rolled back.
            let Some(version) = Version::fetch(rel, at) else { return TM_Result::TM_Ok };
            version.lock();
            let header = version.header();
            if (*header).t_choice.t_heap.t_xmin != by || pg_sys::TransactionIdDidAbort(by) {
                version.release();
                return TM_Result::TM_Ok;
            }
            match version.conflict() {
                Conflict::None => version.add(&[locker]),
                Conflict::Own => {}
                Conflict::Wait(whom) => {
                    version.release();
                    delete_bitmap::write_all();
                    pg_sys::XactLockTableWait(
                        whom,
                        rel.as_ptr(),
                        &raw mut at,
                        pg_sys::XLTW_Oper::XLTW_LockUpdated,
                    );
                    continue;
                }
                Conflict::Gone => {
                    let last = tid::same((*header).t_ctid, at);
                    version.release();
                    return if last { TM_Result::TM_Deleted } else { TM_Result::TM_Updated };
                }
            }
            let next = version.next();
            version.release();
            let Some(next) = next else { return TM_Result::TM_Ok };
            (at, by) = next;
        }
    }
}

/// A version of a row, its page pinned.
struct Version {
    rel: Relation,
    tuple: HeapTupleData,
    pin: Buffer,
    map: std::cell::Cell<Buffer>,
}

impl Version {
    /// The tuple at a place, or None if there is none.
    unsafe fn fetch(rel: Open, at: ItemPointerData) -> Option<Self> {
        // SAFETY: the page is pinned for as long as the version is kept.
        unsafe {
            let mut tuple = HeapTupleData { t_self: at, ..HeapTupleData::default() };
            let mut pin: Buffer = 0;
            let any = &raw mut pg_sys::SnapshotAnyData;
            pg_sys::heap_fetch(rel.as_ptr(), any, &raw mut tuple, &raw mut pin, false).then(|| Self {
                rel: rel.as_ptr(),
                tuple,
                pin,
                map: std::cell::Cell::new(0),
            })
        }
    }

    fn header(&self) -> HeapTupleHeader {
        self.tuple.t_data
    }

    /// Where the version is that has replaced this one as a hot row, and who has inserted that. The page is
    /// locked.
    unsafe fn next(&self) -> Option<(ItemPointerData, TransactionId)> {
        // SAFETY: pinned.
        unsafe {
            let header = self.header();
            let next = (*header).t_ctid;
            let bits = u32::from((*header).t_infomask);
            let is_last = bits & pg_sys::HEAP_XMAX_INVALID != 0
                || tid::same(next, self.tuple.t_self)
                || tid::is_cold(next)
                || pg_sys::HeapTupleHeaderIsOnlyLocked(header);
            (!is_last).then(|| (next, updater(header)))
        }
    }

    unsafe fn is_all_visible(&self) -> bool {
        // SAFETY: pinned.
        unsafe {
            let page = buffer::page(self.pin).cast::<pg_sys::PageHeaderData>();
            u32::from((*page).pd_flags) & pg_sys::PD_ALL_VISIBLE != 0
        }
    }

    /// Takes the page's exclusive lock. If the page's bit in the visibility map has to be cleared, the map's
    /// page is pinned as well.
    unsafe fn lock(&self) {
        // SAFETY: pinned; a page of the map is never read while the lock is held.
        unsafe {
            loop {
                if self.is_all_visible() {
                    let mut map = self.map.get();
                    pg_sys::visibilitymap_pin(self.rel, tid::block_of(self.tuple.t_self), &raw mut map);
                    self.map.set(map);
                }
                buffer::lock_exclusive(self.pin);
                if self.map.get() != 0 || !self.is_all_visible() {
                    return;
                }
                buffer::unlock(self.pin);
            }
        }
    }

    unsafe fn release(self) {
        // SAFETY: locked and pinned.
        unsafe {
            buffer::unlock_release(self.pin);
            if self.map.get() != 0 {
                pg_sys::ReleaseBuffer(self.map.get());
            }
        }
    }

    /// Which transaction stands in the way of FOR KEY SHARE. The page is locked.
    unsafe fn conflict(&self) -> Conflict {
        // SAFETY: as above. "Running" is asked before "committed", as everywhere in the server.
        unsafe {
            for member in multixact::holders(self.header()) {
                if pg_sys::TransactionIdIsCurrentTransactionId(member.xid) {
                    return Conflict::Own;
                }
                let strongest = matches!(
                    member.status,
                    MultiXactStatus::MultiXactStatusForUpdate | MultiXactStatus::MultiXactStatusUpdate
                );
                if !strongest {
                    continue;
                }
                if pg_sys::TransactionIdIsInProgress(member.xid) {
                    return Conflict::Wait(member.xid);
                }
                if member.status == MultiXactStatus::MultiXactStatusUpdate
                    && pg_sys::TransactionIdDidCommit(member.xid)
                {
                    return Conflict::Gone;
                }
            }
            Conflict::None
        }
    }

    /// Adds FOR KEY SHARE locks to what the tuple says. The page is locked.
    unsafe fn add(&self, lockers: &[TransactionId]) {
        // SAFETY: what may raise an ERROR comes before the critical section; inside are stores and the
        // server's logging only.
        unsafe {
            let header = self.header();
            let Some(xmax) = multixact::with_key_share(header, lockers) else { return };
            let map = self.map.get();
            let cleared = self.is_all_visible()
                && pg_sys::visibilitymap_clear(
                    self.rel,
                    tid::block_of(self.tuple.t_self),
                    map,
                    pg_sys::VISIBILITYMAP_ALL_FROZEN as u8,
                );
            critical::start();
            (*header).t_choice.t_heap.t_xmax = xmax.xid;
            (*header).t_infomask &= !(pg_sys::HEAP_XMAX_BITS as u16);
            (*header).t_infomask |= xmax.infomask;
            (*header).t_infomask2 &= !(pg_sys::HEAP_KEYS_UPDATED as u16);
            (*header).t_infomask2 |= xmax.infomask2;
            pg_sys::MarkBufferDirty(self.pin);
            wal::log_version_locked(Open::of(self.rel), self.pin, &self.tuple, cleared);
            critical::end();
        }
    }
}
