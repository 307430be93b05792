//! Rows by the entries of an index.
//!
//! Hot TIDs go straight to heap. A unique check calls while it holds the lock of an index page. The answer
//! then comes from the catalogs alone, and the row's values are not read (protocol point 6).

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, IndexFetchHeapData, IndexFetchTableData, ItemPointer, MemoryContext, Relation, Snapshot,
    TupleTableSlot,
};

use crate::compat;
use crate::host::heap_am::{heap_direct, heap_guarded};
use crate::host::memory;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::change::delete_bitmap;
use crate::storage::change::row_proxy;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::entries;
use crate::storage::file::{metapage, tid};
use crate::table_am::read::cold_fetch::ColdFetch;
use crate::table_am::read::finder::{Finder, Found};
use crate::table_am::read::locate::{Located, holds_page_lock, judges_by_now, locate};
use crate::table_am::read::{cold_rows, moved, own_writes};

/// Our state of an index scan's fetches; begins with heap's.
#[repr(C)]
struct Fetch {
    heap: IndexFetchHeapData,
    context: MemoryContext,
    /// Made with the first cold row, in a memory context of its own that ends with the fetch. A statement may
    /// begin a fetch for each of its rows (ON CONFLICT).
    cold: *mut Cold,
    own: MemoryContext,
}

#[derive(Default)]
struct Cold {
    rows: Option<ColdFetch>,
    finder: Finder,
}

/// `index_fetch_begin`.
#[pg_guard]
pub unsafe extern "C-unwind" fn index_fetch_begin(rel: Relation) -> *mut IndexFetchTableData {
    // SAFETY: palloc0'd memory; heap's part is initialised as heap does (no buffer, this relation).
    unsafe {
        let rel = Open::of(rel);
        own_writes::flush(rel);
        let fetch = pg_sys::palloc0(size_of::<Fetch>()).cast::<Fetch>();
        (*fetch).heap.xs_base.rel = rel.as_ptr();
        (*fetch).context = pg_sys::CurrentMemoryContext;
        fetch.cast()
    }
}

/// `index_fetch_tuple`: hot rows go straight through.
pub unsafe extern "C-unwind" fn index_fetch_tuple(
    scan: *mut IndexFetchTableData,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
    call_again: *mut bool,
    all_dead: *mut bool,
) -> bool {
    // SAFETY: this frame owns nothing.
    unsafe {
        if tid::is_cold(*tid) {
            return index_fetch_cold(scan, tid, snapshot, slot, call_again, all_dead);
        }
        if heap_direct!(index_fetch_tuple(scan, tid, snapshot, slot, call_again, all_dead)) {
            return moved::is_there(Open::of((*scan).rel), snapshot, slot);
        }
        follows_moves(snapshot) && index_fetch_moved(scan, tid, snapshot, slot)
    }
}

/// Whether the caller looks for a row as it is now, wherever it is: a replication worker that is going to
/// change it, or the check of an exclusion constraint. Such a caller may have read the page of the index
/// before a mover made the row's new entry, and may fetch the row after the mover's end. So if it finds
/// nothing at the old place, it looks at the new one. A caller that holds a lock on that page sees both
/// entries.
#[inline]
unsafe fn follows_moves(snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    unsafe { (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY && !holds_page_lock() }
}

/// Fetches a row from its present place, by the TID that it had as a hot row before it was packed.
#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn index_fetch_moved(
    scan: *mut IndexFetchTableData,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: heap's callback, which has just been called for this TID, with a copy of it that it may change;
    // it gives the versions of the row on the page one by one, in a slot that pins them.
    unsafe {
        let rel = (*scan).rel;
        let Some(storage_id) = metapage::storage_id(Open::of(rel)) else { return false };
        let any = &raw mut pg_sys::SnapshotAnyData;
        let (mut at, mut again, mut place) = (*tid, false, None);
        while heap_guarded!(index_fetch_tuple(
            scan,
            &raw mut at,
            any,
            slot,
            &raw mut again,
            std::ptr::null_mut()
        )) {
            let tuple = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
            place = moved::recent_place(storage_id, tuple);
            if place.is_some() || !again {
                break;
            }
        }
        pg_sys::ExecClearTuple(slot);
        place.is_some_and(|mut place| fetch_cold_now(scan, &raw mut place, snapshot, slot))
    }
}

/// Fetches a row by a TID that it has or once had in a stripe.
unsafe fn fetch_cold_now(
    scan: *mut IndexFetchTableData,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: as `index_fetch_cold`.
    unsafe {
        loop {
            if fetch_cold(scan, tid, snapshot, slot) {
                return true;
            }
            let found = metapage::storage_id(Open::of((*scan).rel)).zip(tid::row_of(*tid));
            let Some(place) = found.and_then(|(id, row)| moved::next_place(id, row)) else { return false };
            *tid = place;
        }
    }
}

/// Not inlined: its frame is large, and the callback is called for every row.
#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn index_fetch_cold(
    scan: *mut IndexFetchTableData,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
    call_again: *mut bool,
    all_dead: *mut bool,
) -> bool {
    // SAFETY: scan was made by index_fetch_begin.
    unsafe {
        *call_again = false;
        if !all_dead.is_null() {
            *all_dead = false;
        }
        if follows_moves(snapshot) {
            let mut at = *tid;
            return fetch_cold_now(scan, &raw mut at, snapshot, slot);
        }
        fetch_cold(scan, tid, snapshot, slot)
    }
}

/// What a fetch keeps of stripes, made when it meets the first row of one.
unsafe fn cold_of(fetch: *mut Fetch) -> *mut Cold {
    // SAFETY: the fetch was made by index_fetch_begin, and its context lives as long.
    unsafe {
        if (*fetch).cold.is_null() {
            (*fetch).own = memory::small_context((*fetch).context, c"rows of stripes by index");
            let before = pg_sys::MemoryContextSwitchTo((*fetch).own);
            (*fetch).cold = memory::leak_into_current_context(Cold::default());
            pg_sys::MemoryContextSwitchTo(before);
        }
        (*fetch).cold
    }
}

/// Fetches a row of a stripe, if it is there.
unsafe fn fetch_cold(
    scan: *mut IndexFetchTableData,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: scan was made by index_fetch_begin.
    unsafe {
        let rel = Open::of((*scan).rel);
        let Some(row) = tid::row_of(*tid) else { return false };
        if judges_by_now(snapshot) {
            if delete_bitmap::any() && is_marked(rel, row) {
                entries::clear_dirty(snapshot);
                return false;
            }
            if holds_page_lock() {
                return is_there_now(rel, tid, row, snapshot, slot);
            }
        }
        let Cold { rows, finder } = &mut *cold_of(scan.cast::<Fetch>());
        let entry = match finder.find(rel, tid, row, snapshot, slot) {
            Found::There(entry) => entry,
            Found::Answered => return true,
            Found::Nowhere => return false,
        };
        put(rel, rows, (entry, row), snapshot, slot);
        true
    }
}

/// Puts a row that is there into the slot: nothing but its presence, where the snapshot asks for no more.
unsafe fn put(
    rel: Open,
    rows: &mut Option<ColdFetch>,
    (entry, row): (&StripeEntry, u64),
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
) {
    // SAFETY: the slot is the fetch's, and the table is open until its end.
    unsafe {
        if wants_presence(snapshot) {
            cold_rows::store(rel, slot, row, pg_sys::InvalidTransactionId, |_, _| ());
            return;
        }
        let rows = rows.get_or_insert_with(|| ColdFetch::new(rel));
        match goes_on_with_row(snapshot) {
            true => rows.fetch_with_header(entry, row, slot),
            false => rows.fetch(entry, row, slot),
        }
        count_fetch(rel);
    }
}

/// Whether a row that a unique check asks about is there now. The check looks once, so nothing is remembered.
unsafe fn is_there_now(
    rel: Open,
    tid: ItemPointer,
    row: u64,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: as `index_fetch_cold`.
    unsafe {
        let entry = match locate(rel, row, snapshot, slot) {
            Located::Stored(entry) => entry,
            Located::Answered => return true,
            Located::Nowhere => return false,
        };
        predicate_locks::predicate_lock_tid(rel, tid, snapshot, pg_sys::InvalidTransactionId);
        let there = row_proxy::is_there(rel, entry.storage_id, row, snapshot)
            && moved::is_cold_there(rel, &entry, row, snapshot);
        if there {
            cold_rows::store(rel, slot, row, pg_sys::InvalidTransactionId, |_, _| ());
        }
        there
    }
}

/// `index_fetch_end`. A caller that goes on with the last row has a copy of it, by `goes_on_with_row` or its
/// own.
pub unsafe extern "C-unwind" fn index_fetch_end(scan: *mut IndexFetchTableData) {
    // SAFETY: the scan was made by index_fetch_begin; this frame owns nothing.
    unsafe {
        let own = (*scan.cast::<Fetch>()).own;
        heap_direct!(index_fetch_end(scan));
        if !own.is_null() {
            end_cold(own);
        }
    }
}

#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn end_cold(own: MemoryContext) {
    // SAFETY: nothing refers to what lives there any more.
    unsafe { pg_sys::MemoryContextDelete(own) }
}

/// Whether the caller only asks whether the row is there. The planner does so for the ends of an index.
unsafe fn wants_presence(snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    unsafe { (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_NON_VACUUMABLE }
}

/// Whether the caller ends the fetch before it looks at the row's values. The check of a deferred constraint
/// does so, and asks with this snapshot.
unsafe fn goes_on_with_row(snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    unsafe { (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_SELF }
}

/// Whether the running command has just killed the row. Then the unique check of its new version asks no
/// catalog.
fn is_marked(rel: Open, row: u64) -> bool {
    metapage::storage_id(rel).is_some_and(|id| delete_bitmap::marked_by(id, row).is_some())
}

/// Counts a row fetched through an index, as heap does for its rows.
fn count_fetch(rel: Open) {
    // SAFETY: see scan::count_row.
    unsafe {
        if let Some(counts) = (*rel.as_ptr()).pgstat_info.as_mut() {
            compat::count_fetched(counts);
        }
    }
}
