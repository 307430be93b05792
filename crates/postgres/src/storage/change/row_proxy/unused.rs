//! Takes away live proxies that nobody needs any more: those of rows that were locked once, and those that
//! were made ahead.
//!
//! Called by VACUUM. A live proxy that is neither locked nor updated says nothing. So it may be removed at
//! any time, except while a transaction is about to lock it. Two things exclude that:
//! - Transactions that are about to lock a proxy share its stripe. So VACUUM excludes others from the stripe,
//!   if it can at once.
//! - Pins of the proxy's page keep its line pointer. So VACUUM locks the page for cleanup, if it can.
//!
//! VACUUM must not change rows as a transaction, because others' snapshots leave it out. So it makes the line
//! pointer a dead one, as pruning does, and the catalog's own vacuum does the rest.
//!
//! Invariants: no tombstone is touched here, and no proxy that a running transaction has locked. A page that
//! says that all is visible has no dead line pointers.

use std::ops::Range;
use stripe::RowNumbers;

use pgrx::pg_sys::{self, Buffer, BufferAccessStrategy, ItemPointerData};

use super::{Proxy, live_on_page};
use crate::host::heap_tuple::is_changed;
use crate::host::relation::Open;
use crate::host::wal;
use crate::host::{buffer, critical};
use crate::storage::catalog::side_table::{Compare, SideTable};
use crate::storage::change::{multixact, stripe_lock};
use crate::storage::directory::{self, entries};
use crate::storage::file::{tid, visibility_bits};

/// The most proxies that are collected before they are taken away.
const MOST: usize = 16_384;
/// After this many pages it looks whether somebody waits for the stripe.
const LOOK: usize = 32;

/// Microseconds between two tries to get a page.
const MOMENTS: [std::ffi::c_long; 4] = [100, 1000, 3000, 10_000];

/// Where a live proxy is.
type Place = (u64, ItemPointerData);

/// Takes away the unused proxies of a table, and returns how many these were.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock.
pub unsafe fn remove_unused(rel: Open, storage_id: u64, strategy: BufferAccessStrategy) -> u64 {
    // SAFETY: the lock is promised; relations are closed here, or by the server's abort.
    unsafe {
        let Some(oids) = SideTable::RowProxy.oids_if_present() else { return 0 };
        let table = Open::of(pg_sys::table_open(oids.table, pg_sys::RowExclusiveLock as i32));
        let mut removed = 0;
        if table.block_count() > 0 {
            let mut sweep = Sweep { table, storage_id, strategy, map: 0 };
            for entry in entries::visible_without_summaries(storage_id, &raw mut pg_sys::SnapshotSelfData) {
                let mut rows = entry.first_row..entry.end_row();
                while let Some(places) = sweep.unused(&mut rows) {
                    let Some(exclusion) = stripe_lock::exclude(rel, &entry) else { break };
                    removed += sweep.remove(places, || exclusion.has_waiters(rel.oid()));
                    exclusion.end(rel);
                }
            }
            // Row numbers that no version of the directory has need no exclusion, as nobody comes by them.
            let numbers = directory::numbers_in_use(rel);
            for (start, end) in numbers.iter().flat_map(RowNumbers::gone) {
                let mut rows = start..end;
                while let Some(places) = sweep.unused(&mut rows) {
                    removed += sweep.remove(places, || false);
                }
            }
            sweep.end(removed);
        }
        pg_sys::table_close(table.as_ptr(), pg_sys::NoLock as i32);
        removed
    }
}

struct Sweep<'a> {
    table: Open<'a>,
    storage_id: u64,
    strategy: BufferAccessStrategy,
    /// A page of the visibility map.
    map: Buffer,
}

impl<'a> Sweep<'a> {
    /// The next live proxies of these rows that seem unused, in the order of pages. Makes `rows` begin after
    /// them.
    unsafe fn unused(&self, rows: &mut Range<u64>) -> Option<Vec<Place>> {
        let mut places: Vec<Place> = Vec::new();
        if rows.is_empty() || places.try_reserve(MOST).is_err() {
            return None;
        }
        let mut next = rows.end;
        // SAFETY: see `SideTable::walk`. Whoever has locked a proxy is asked about with its page locked.
        unsafe {
            SideTable::RowProxy.walk(
                self.storage_id,
                Some((Compare::AtLeast, rows.start)),
                false,
                |cursor| {
                    pgrx::check_for_interrupts!();
                    let proxy = Proxy::at(cursor);
                    if proxy.row >= rows.end {
                        return false;
                    }
                    if places.len() == MOST {
                        next = proxy.row;
                        return false;
                    }
                    if !proxy.dead && !is_changed((*cursor.tuple()).t_data) {
                        places.push((proxy.row, cursor.place()));
                    }
                    true
                },
            );
        }
        rows.start = next;
        places.sort_unstable_by_key(|(_, at)| (tid::block_of(*at), at.ip_posid));
        (!places.is_empty()).then_some(places)
    }

    /// Takes away the proxies at these places, page by page, until `stop` returns true.
    unsafe fn remove(&mut self, places: Vec<Place>, stop: impl Fn() -> bool) -> u64 {
        let mut removed = 0;
        for (page, places) in
            places.chunk_by(|(_, one), (_, next)| tid::block_of(*one) == tid::block_of(*next)).enumerate()
        {
            pgrx::check_for_interrupts!();
            if page % LOOK == LOOK - 1 && stop() {
                break;
            }
            // SAFETY: the caller keeps others from these rows.
            removed += unsafe { self.remove_from_page(places) };
        }
        removed
    }

    unsafe fn remove_from_page(&mut self, places: &[Place]) -> u64 {
        let Some(&(_, first)) = places.first() else { return 0 };
        let block = tid::block_of(first);
        // SAFETY: nothing points into the page once it is locked for cleanup. What may raise an ERROR comes
        // before the critical sections.
        unsafe {
            pg_sys::visibilitymap_pin(self.table.as_ptr(), block, &raw mut self.map);
            let buf = buffer::read(self.table, block, self.strategy);
            if !lock_for_cleanup(buf) {
                pg_sys::ReleaseBuffer(buf);
                return 0;
            }
            let page = buffer::page(buf);
            let mut dead: Vec<u16> = places
                .iter()
                .filter(|(row, at)| self.is_unused(page, *row, at.ip_posid))
                .map(|(_, at)| at.ip_posid)
                .collect();
            if !dead.is_empty() {
                visibility_bits::clear(self.table, block, buf, self.map);
                let logged = self.table.needs_wal();
                critical::start();
                wal::make_dead(self.table, buf, &mut dead, logged);
                critical::end();
            }
            let room = pg_sys::PageGetHeapFreeSpace(page);
            buffer::unlock_release(buf);
            if !dead.is_empty() {
                pg_sys::RecordPageWithFreeSpace(self.table.as_ptr(), block, room);
            }
            dead.len() as u64
        }
    }

    /// Whether the row's live proxy is at this place of a page and nobody needs it.
    unsafe fn is_unused(&self, page: pg_sys::Page, row: u64, offset: u16) -> bool {
        // SAFETY: the page is locked.
        unsafe {
            let Some(header) = live_on_page(page, offset, self.storage_id, row) else { return false };
            u32::from((*header).t_infomask2) & pg_sys::HEAP_ONLY_TUPLE == 0
                && !is_changed(header)
                && !multixact::holders(header)
                    .iter()
                    .any(|holder| pg_sys::TransactionIdIsInProgress(holder.xid))
        }
    }

    unsafe fn end(self, removed: u64) {
        // SAFETY: the table is open.
        unsafe {
            if self.map != 0 {
                pg_sys::ReleaseBuffer(self.map);
            }
            if removed > 0 {
                pg_sys::FreeSpaceMapVacuum(self.table.as_ptr());
            }
            // Counts dead rows, so that the catalog's own vacuum knows that there is something to do.
            for _ in 0..removed {
                pg_sys::pgstat_count_heap_delete(self.table.as_ptr());
            }
        }
    }
}

/// Locks a page for cleanup. Waits only for pins of a moment, as a reader's or the checkpointer's.
///
/// # Safety
/// The buffer is pinned.
unsafe fn lock_for_cleanup(buf: Buffer) -> bool {
    // SAFETY: pinned by the caller.
    unsafe {
        pg_sys::ConditionalLockBufferForCleanup(buf)
            || MOMENTS.iter().any(|&moment| {
                pg_sys::pg_usleep(moment);
                pg_sys::ConditionalLockBufferForCleanup(buf)
            })
    }
}
