//! Finding live proxies, and making them where there are none.
//!
//! Called by `change::lock` with the stripe locked (protocol point 3). A transaction that makes proxies holds
//! a lock on their block of 256 row numbers, only for as long as it makes them. So a second maker finds the
//! first one's proxies.
//!
//! Some transactions lock one row after the other (FOR UPDATE of a table, foreign keys of a load). For them
//! the proxies of the rows ahead are made or looked up as well, more of them each time. A proxy that nobody
//! locks says nothing, and VACUUM takes it away.
//!
//! Invariants: the place of a proxy is a hint: the tuple there is looked at before it is used. Proxies are
//! made only for rows of a stripe that this transaction keeps in place.

use std::cell::RefCell;
use std::ops::Range;

use pgrx::pg_sys::{self, CommandId, HeapTuple, ItemPointerData, TransactionId};

use super::{Pinned, Proxy, live_on_page};
use crate::compat;
use crate::host::guarded_run::{self, together};
use crate::host::relation::Open;
use crate::host::{buffer, error};
use crate::storage::catalog::indexes::Indexes;
use crate::storage::catalog::side_table::{Compare, SideTable};
use crate::storage::file::tid;

/// Rows whose proxies are made under one lock.
const BLOCK: u64 = 256;
/// After this many rows were locked one after the other, proxies of further rows are made.
const RUN: u64 = 8;
/// A run goes on if at most this many rows are left out.
const GAP: u64 = 1;
/// How many storage ids have their runs remembered.
const MOST: usize = 4;

/// What was found of a row's proxy.
pub(super) enum Found {
    Nothing,
    Live(Pinned),
    /// The live proxy is pruned, so every snapshot that matters sees the tombstone.
    Buried(Proxy, TransactionId),
}

/// How this transaction goes through the rows of a storage id.
#[derive(Default)]
struct Run {
    storage_id: u64,
    /// The row after the one that was asked for last.
    next: u64,
    /// How many rows were asked for one after the other.
    length: u64,
    /// Whether the last row had a proxy already.
    had_proxy: bool,
    /// Where live proxies are, ascending by row.
    places: Vec<(u64, ItemPointerData)>,
}

#[derive(Default)]
struct Runs {
    transaction: u32,
    runs: Vec<Run>,
}

thread_local! {
    static RUNS: RefCell<Runs> = RefCell::new(Runs::default());
}

/// Forgets all places. Called when a subtransaction is rolled back, as the lock that keeps the catalog's file
/// may be gone with it.
pub fn forget() {
    RUNS.with_borrow_mut(|runs| runs.runs.clear());
}

/// What is known of a row that is asked for.
struct Hint {
    place: Option<ItemPointerData>,
    /// How many rows before it were asked for one after the other.
    run: u64,
    had_proxy: bool,
}

/// Calls `what` with the run of a storage id.
fn with_run<T>(storage_id: u64, what: impl FnOnce(&mut Run) -> T) -> T {
    // SAFETY: MyProc is this backend's own entry.
    let now = compat::local_transaction();
    RUNS.with_borrow_mut(|all| {
        if all.transaction != now {
            *all = Runs { transaction: now, ..Runs::default() };
        }
        let known = all.runs.iter().position(|run| run.storage_id == storage_id);
        let at = known.unwrap_or_else(|| {
            if all.runs.len() == MOST {
                all.runs.remove(0);
            }
            all.runs.push(Run { storage_id, ..Run::default() });
            all.runs.len() - 1
        });
        what(&mut all.runs[at])
    })
}

/// Where this transaction found the row's live proxy last.
pub(super) fn known_place(storage_id: u64, row: u64) -> Option<ItemPointerData> {
    // SAFETY: MyProc is this backend's own entry.
    let now = compat::local_transaction();
    RUNS.with_borrow(|all| {
        let run = all.runs.iter().find(|run| all.transaction == now && run.storage_id == storage_id)?;
        let at = run.places.binary_search_by_key(&row, |&(row, _)| row).ok()?;
        Some(run.places[at].1)
    })
}

fn ask(storage_id: u64, row: u64) -> Hint {
    let (run, had_proxy) = with_run(storage_id, |run| {
        let follows = row.checked_sub(run.next).is_some_and(|gap| gap <= GAP);
        run.length = if follows { run.length + 1 } else { 0 };
        run.next = row + 1;
        (run.length, run.had_proxy)
    });
    Hint { place: known_place(storage_id, row), run, had_proxy }
}

/// Finds the row's proxy, or makes it. It may also make proxies of later rows, up to `end`, the end of the
/// row's stripe. The catalog is open, and locked for writing to the end of the transaction.
pub(super) unsafe fn find_or_make(table: Open, storage_id: u64, row: u64, end: u64, cid: CommandId) -> Found {
    // SAFETY: the lock on the rows is a page lock on the catalog, where nobody else takes page locks; nothing
    // waits under it but for pages.
    unsafe {
        let hint = ask(storage_id, row);
        if let Some(pinned) = hint.place.and_then(|place| at_place(table, storage_id, row, place)) {
            return Found::Live(pinned);
        }
        let index =
            Open::of(pg_sys::index_open(SideTable::RowProxy.oids().index, pg_sys::RowExclusiveLock as i32));
        if hint.run < RUN && hint.had_proxy {
            let found = find(table, index, storage_id, row);
            if !matches!(found, Found::Nothing) {
                note(&found);
                pg_sys::index_close(index.as_ptr(), pg_sys::NoLock as i32);
                return found;
            }
        }
        let block = (storage_id ^ (row / BLOCK).rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        pg_sys::LockPage(table.as_ptr(), block as u32, pg_sys::ExclusiveLock as i32);
        let mut found = Found::Nothing;
        if hint.run >= RUN {
            let ahead = row.saturating_add(hint.run * 2).min(end).min((row / BLOCK + 1) * BLOCK);
            found = make_run(table, index, storage_id, row..ahead, cid);
        }
        if matches!(found, Found::Nothing) {
            found = find(table, index, storage_id, row);
        }
        let had_proxy = !matches!(found, Found::Nothing);
        with_run(storage_id, |run| run.had_proxy = had_proxy);
        if !had_proxy {
            let indexes = Indexes::open(SideTable::RowProxy, table);
            found = Found::Live(make(table, &indexes, storage_id, row, cid));
            indexes.close();
        }
        pg_sys::UnlockPage(table.as_ptr(), block as u32, pg_sys::ExclusiveLock as i32);
        pg_sys::index_close(index.as_ptr(), pg_sys::NoLock as i32);
        if hint.run < RUN {
            note(&found);
        }
        found
    }
}

/// `make_all`, where the first of the rows is the one that is wanted.
unsafe fn make_run(table: Open, index: Open, storage_id: u64, rows: Range<u64>, cid: CommandId) -> Found {
    let row = rows.start;
    // SAFETY: the caller holds the lock on the rows' block.
    unsafe {
        let places = make_all(table, index, storage_id, rows, cid);
        let first = places.first().filter(|(first, _)| *first == row).map(|(_, place)| *place);
        with_run(storage_id, |run| run.places = places);
        let pinned = first.and_then(|place| at_place(table, storage_id, row, place));
        pinned.map_or(Found::Nothing, Found::Live)
    }
}

/// Remembers where a single row's live proxy is. A statement that changes the row asks for each unique index
/// whether the row is still there.
fn note(found: &Found) {
    if let Found::Live(proxy) = found {
        with_run(proxy.storage_id, |run| {
            run.places.clear();
            run.places.push((proxy.row, proxy.place));
        });
    }
}

unsafe fn find(table: Open, index: Open, storage_id: u64, row: u64) -> Found {
    let mut found = Found::Nothing;
    // SAFETY: see `SideTable::walk`. The buffer is pinned once more before the cursor lets go of it.
    unsafe {
        let limits = [(Compare::Equal, row)];
        SideTable::walk_opened(table, index, storage_id, &limits, false, |cursor| {
            let proxy = Proxy::at(cursor);
            if proxy.dead {
                if !cursor.was_rolled_back() {
                    found = Found::Buried(proxy, raw_inserter(cursor.tuple()));
                }
                return true;
            }
            pg_sys::IncrBufferRefCount(cursor.buffer());
            let place = cursor.place();
            found = Found::Live(Pinned { storage_id, row, place, buffer: cursor.buffer() });
            false
        });
    }
    found
}

/// The transaction id in the tuple, even if it is frozen. It is compared with that of the successor, which
/// was written with it.
pub(super) unsafe fn raw_inserter(tuple: HeapTuple) -> TransactionId {
    // SAFETY: the tuple is pinned.
    unsafe { (*(*tuple).t_data).t_choice.t_heap.t_xmin }
}

/// The row's live proxy, if it still is at the place where it was.
unsafe fn at_place(table: Open, storage_id: u64, row: u64, place: ItemPointerData) -> Option<Pinned> {
    // SAFETY: the lock that this transaction has on the catalog keeps its file, so the block is there. Once
    // the page is pinned and the tuple was seen under the page's lock, it is not pruned.
    let pin = unsafe {
        together(|| {
            let (fork, mode) = (pg_sys::ForkNumber::MAIN_FORKNUM, pg_sys::ReadBufferMode::RBM_NORMAL);
            let pin = guarded_run::ReadBufferExtended(
                table.as_ptr(),
                fork,
                tid::block_of(place),
                mode,
                std::ptr::null_mut(),
            );
            guarded_run::LockBuffer(pin, pg_sys::BUFFER_LOCK_SHARE as i32);
            let is_it = live_on_page(buffer::page(pin), place.ip_posid, storage_id, row).is_some();
            guarded_run::LockBuffer(pin, pg_sys::BUFFER_LOCK_UNLOCK as i32);
            if !is_it {
                guarded_run::ReleaseBuffer(pin);
            }
            is_it.then_some(pin)
        })
    };
    pin.map(|buffer| Pinned { storage_id, row, place, buffer })
}

const OPTIONS: u32 = pg_sys::HEAP_INSERT_FROZEN;

/// Makes the row's proxy. The caller holds the lock on its block, and has found none.
unsafe fn make(table: Open, indexes: &Indexes, storage_id: u64, row: u64, cid: CommandId) -> Pinned {
    // SAFETY: a cancel must not come between tuple and index entry; an ERROR lets interrupts in again.
    unsafe {
        let proxy = Proxy::live(storage_id, row);
        let tuple = proxy.form(table);
        pg_sys::InterruptHoldoffCount += 1;
        indexes.insert_uncounted(tuple, &proxy.key(), cid, OPTIONS);
        let place = (*tuple).t_self;
        let buffer = buffer::read(table, tid::block_of(place), std::ptr::null_mut());
        pg_sys::InterruptHoldoffCount -= 1;
        pg_sys::pfree(tuple.cast());
        Pinned { storage_id, row, place, buffer }
    }
}

/// Makes proxies for those of these rows that have none. Returns where all live ones are, ascending. The
/// caller holds the lock on their block.
unsafe fn make_all(
    table: Open,
    index: Open,
    storage_id: u64,
    rows: Range<u64>,
    cid: CommandId,
) -> Vec<(u64, ItemPointerData)> {
    let mut places = Vec::new();
    let mut known = Vec::new();
    let wanted = (rows.end - rows.start) as usize;
    if places.try_reserve(wanted).is_err() || known.try_reserve(wanted).is_err() {
        error::raise_plain(vector::Error::OutOfMemory { bytes: wanted * 24 });
    }
    known.resize(wanted, false);
    // SAFETY: see `SideTable::walk`; slots live until they are dropped, or the server's abort.
    unsafe {
        let limits = [(Compare::AtLeast, rows.start)];
        SideTable::walk_opened(table, index, storage_id, &limits, false, |cursor| {
            let proxy = Proxy::at(cursor);
            if proxy.row >= rows.end {
                return false;
            }
            let at = (proxy.row - rows.start) as usize;
            if !proxy.dead {
                places.push((proxy.row, cursor.place()));
                known[at] = true;
            } else if !cursor.was_rolled_back() {
                known[at] = true;
            }
            true
        });
        let missing = || known.iter().zip(rows.clone()).filter_map(|(known, row)| (!known).then_some(row));
        let indexes = Indexes::open(SideTable::RowProxy, table);
        // Insertions of many rows always write what logical decoding needs, so they are not used if it is on.
        if pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL as i32 {
            for row in missing() {
                let made = make(table, &indexes, storage_id, row, cid);
                places.push((row, made.place));
                made.release();
            }
        } else {
            insert_all(table, &indexes, storage_id, missing(), cid, &mut places);
        }
        indexes.close();
    }
    places.sort_unstable_by_key(|&(row, _)| row);
    places
}

/// Inserts proxies of these rows and notes where they are.
unsafe fn insert_all(
    table: Open,
    indexes: &Indexes,
    storage_id: u64,
    rows: impl Iterator<Item = u64>,
    cid: CommandId,
    places: &mut Vec<(u64, ItemPointerData)>,
) {
    // SAFETY: the slots own their tuples. Interrupts: as `make`.
    unsafe {
        // The slots get a copy of the row type. With the catalog's own, the resource owner would note each
        // slot.
        let desc = pg_sys::CreateTupleDescCopy(table.descriptor());
        let made: Vec<(Proxy, *mut pg_sys::TupleTableSlot)> = rows
            .map(|row| {
                let proxy = Proxy::live(storage_id, row);
                let slot = pg_sys::MakeSingleTupleTableSlot(desc, &raw const pg_sys::TTSOpsHeapTuple);
                pg_sys::ExecStoreHeapTuple(proxy.form(table), slot, true);
                (proxy, slot)
            })
            .collect();
        if made.is_empty() {
            pg_sys::FreeTupleDesc(desc);
            return;
        }
        let mut slots: Vec<_> = made.iter().map(|(_, slot)| *slot).collect();
        let none = std::ptr::null_mut();
        pg_sys::InterruptHoldoffCount += 1;
        pg_sys::heap_multi_insert(
            table.as_ptr(),
            slots.as_mut_ptr(),
            slots.len() as i32,
            cid,
            OPTIONS as i32,
            none,
        );
        for (proxy, slot) in &made {
            let place = (**slot).tts_tid;
            indexes.enter(&proxy.key(), place);
            places.push((proxy.row, place));
            pg_sys::ExecDropSingleTupleTableSlot(*slot);
        }
        pg_sys::InterruptHoldoffCount -= 1;
        pg_sys::FreeTupleDesc(desc);
    }
}
