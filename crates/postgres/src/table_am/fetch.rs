//! Rows by TID: index fetches, row versions for triggers and rechecks, TID scans.
//!
//! Whether a cold row is there is asked of the directory and the proxies under the caller's own snapshot; a
//! SnapshotDirty thereby names the loader, or who is changing the row, to wait for. A unique check calls
//! while it holds the lock of an index page: the answer then comes from the two catalogs alone, the row's
//! values are not read (protocol point 6). Hot TIDs go straight to heap.

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, IndexFetchHeapData, IndexFetchTableData, ItemPointer, MemoryContext, Relation, Snapshot,
    TableScanDesc, TupleTableSlot,
};

use super::cold_fetch::ColdFetch;
use super::cold_rows;
use super::{moved, own_writes, row_versions};
use crate::compat;
use crate::host::heap_am::{heap_direct, heap_guarded};
use crate::host::memory;
use crate::storage::directory::{self, StripeEntry};
use crate::storage::row_proxy::{self, Tombstones};
use crate::storage::tid;
use crate::storage::{delete_bitmap, directory_scan, metapage, stripe_lock};

/// Our state of an index scan's fetches; begins with heap's.
#[repr(C)]
struct Fetch {
    heap: IndexFetchHeapData,
    context: MemoryContext,
    /// Made with the first cold row, in a context of its own, which ends with the fetch: a statement may
    /// begin one for each of its rows (ON CONFLICT).
    cold: *mut Cold,
    own: MemoryContext,
}

#[derive(Default)]
struct Cold {
    rows: Option<ColdFetch>,
    known: Known,
    dead: Dead,
}

/// Stripes found so far.
#[derive(Default)]
struct Known {
    /// By their rows.
    stripes: Vec<StripeEntry>,
    /// The snapshot that sees them.
    to: Option<Seen>,
}

/// Which rows are dead.
#[derive(Default)]
struct Dead {
    /// All dead rows, where they are few, and the snapshot they are dead to; None inside: they are many.
    all: Option<(Seen, Option<Tombstones>)>,
    /// Rows asked for so far.
    asked: u32,
}

/// So many proxies are read at once, to spare the look-ups of single rows.
const FEW: usize = 64;
/// From so many rows on: a look-up by primary key does without. Looking for all of them costs no more than
/// for those of one row, where they are few.
const SEVERAL: u32 = 2;

impl Known {
    /// The stripe of a row where it was found before.
    fn find(&self, row: u64, seen: Seen) -> Option<&StripeEntry> {
        if self.to != Some(seen) {
            return None;
        }
        let after = self.stripes.partition_point(|entry| entry.first_row <= row);
        self.stripes.get(after.checked_sub(1)?).filter(|entry| entry.covers(row))
    }

    /// Remembers a stripe that a snapshot sees, whose stripes do not overlap.
    fn remember(&mut self, entry: &StripeEntry, seen: Seen) {
        if self.to != Some(seen) {
            self.stripes.clear();
            self.to = Some(seen);
        }
        let at = self.stripes.partition_point(|known| known.first_row <= entry.first_row);
        self.stripes.insert(at, entry.clone());
    }
}

impl Dead {
    /// Whether a row of a visible stripe is there for the snapshot.
    unsafe fn is_there(
        &mut self,
        rel: Relation,
        storage_id: u64,
        row: u64,
        snapshot: Snapshot,
        seen: Option<Seen>,
    ) -> bool {
        // SAFETY: rel is open, the snapshot live. What an MVCC snapshot sees of the proxies does not change,
        // unless an earlier command of this transaction is suspended and goes on (docs/limitations.md).
        unsafe {
            let Some(seen) = seen.filter(|_| !compat::is_serializable()) else {
                return row_proxy::is_there(rel, storage_id, row, snapshot);
            };
            self.asked = self.asked.saturating_add(1);
            if self.asked < SEVERAL {
                return row_proxy::is_there(rel, storage_id, row, snapshot);
            }
            if self.all.as_ref().is_none_or(|(when, _)| *when != seen) {
                self.all = Some((seen, row_proxy::tombstones(rel, storage_id, snapshot, FEW)));
            }
            match &mut self.all {
                Some((_, Some(few))) => !few.contains(row),
                _ => row_proxy::is_there(rel, storage_id, row, snapshot),
            }
        }
    }
}

/// What tells one MVCC snapshot from another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    snapshot: Snapshot,
    xmin: u32,
    xmax: u32,
    cid: u32,
}

impl Seen {
    /// None for snapshots whose answer may change from call to call.
    unsafe fn of(snapshot: Snapshot) -> Option<Self> {
        // SAFETY: the snapshot is live for the call.
        unsafe {
            ((*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC).then(|| Self {
                snapshot,
                xmin: (*snapshot).xmin.into_inner(),
                xmax: (*snapshot).xmax.into_inner(),
                cid: (*snapshot).curcid,
            })
        }
    }
}

/// `index_fetch_begin`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn index_fetch_begin(rel: Relation) -> *mut IndexFetchTableData {
    // SAFETY: palloc0'd memory; heap's part is initialised as heap does (no buffer, this relation).
    unsafe {
        own_writes::flush(rel);
        let fetch = pg_sys::palloc0(size_of::<Fetch>()).cast::<Fetch>();
        (*fetch).heap.xs_base.rel = rel;
        (*fetch).context = pg_sys::CurrentMemoryContext;
        fetch.cast()
    }
}

/// `index_fetch_tuple`: hot rows go straight through.
pub(super) unsafe extern "C-unwind" fn index_fetch_tuple(
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
            return moved::is_there((*scan).rel, snapshot, slot);
        }
        follows_moves(snapshot) && index_fetch_moved(scan, tid, snapshot, slot)
    }
}

/// Whether the caller looks for a row as it is now, wherever it is: a replication worker that is going to
/// change it, or the check of an exclusion constraint. The page of the index that leads to the row may have
/// been read before a mover made the entry for its new place, and the row fetched after the mover's end; so
/// who finds nothing at the old place looks at the new one. Who holds a lock on that page sees both entries.
#[inline]
unsafe fn follows_moves(snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    unsafe { (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY && !holds_page_lock() }
}

/// Fetches a row by the TID of a hot one that has been packed, from where it is now.
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
        let Some(storage_id) = metapage::storage_id(rel) else { return false };
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

/// Fetches a row by a TID that it has, or has had, in a stripe.
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
            let found = metapage::storage_id((*scan).rel).zip(tid::row_of(*tid));
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

/// Fetches a row of a stripe, if it is there.
unsafe fn fetch_cold(
    scan: *mut IndexFetchTableData,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: scan was made by index_fetch_begin.
    unsafe {
        let rel = (*scan).rel;
        let Some(row) = tid::row_of(*tid) else { return false };
        if judges_by_now(snapshot) {
            if delete_bitmap::any() && is_marked(rel, row) {
                directory_scan::clear_dirty(snapshot);
                return false;
            }
            if holds_page_lock() {
                return is_there_now(rel, tid, row, snapshot, slot);
            }
        }
        let fetch = scan.cast::<Fetch>();
        if (*fetch).cold.is_null() {
            (*fetch).own = memory::small_context((*fetch).context, c"rows of stripes by index");
            let before = pg_sys::MemoryContextSwitchTo((*fetch).own);
            (*fetch).cold = memory::leak_into_current_context(Cold::default());
            pg_sys::MemoryContextSwitchTo(before);
        }
        let Cold { rows, known, dead } = &mut *(*fetch).cold;
        let seen = Seen::of(snapshot);
        let located;
        let entry = match seen.and_then(|seen| known.find(row, seen)) {
            Some(entry) => entry,
            None => match locate(rel, row, snapshot, slot) {
                Located::Stored(entry) => {
                    if let Some(seen) = seen {
                        known.remember(&entry, seen);
                    }
                    located = entry;
                    &located
                }
                Located::Answered => return true,
                Located::Nowhere => return false,
            },
        };
        compat::predicate_lock_tid(rel, tid, snapshot, pg_sys::InvalidTransactionId);
        if !dead.is_there(rel, entry.storage_id, row, snapshot, seen)
            || !moved::is_cold_there(rel, entry, row, snapshot)
        {
            return false;
        }
        if wants_presence(snapshot) {
            cold_rows::store(rel, slot, row, pg_sys::InvalidTransactionId, |_, _| ());
        } else {
            let rows = rows.get_or_insert_with(|| ColdFetch::new(rel));
            match goes_on_with_row(snapshot) {
                true => rows.fetch_with_header(entry, row, slot),
                false => rows.fetch(entry, row, slot),
            }
            count_fetch(rel);
        }
        true
    }
}

/// Whether a row that a unique check asks about is there now. The check looks once, so nothing is remembered.
unsafe fn is_there_now(
    rel: Relation,
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
        compat::predicate_lock_tid(rel, tid, snapshot, pg_sys::InvalidTransactionId);
        let there = row_proxy::is_there(rel, entry.storage_id, row, snapshot)
            && moved::is_cold_there(rel, &entry, row, snapshot);
        if there {
            cold_rows::store(rel, slot, row, pg_sys::InvalidTransactionId, |_, _| ());
        }
        there
    }
}

/// `index_fetch_end`. Whoever goes on with the last row has a copy of it (`goes_on_with_row`, or their own).
pub(super) unsafe extern "C-unwind" fn index_fetch_end(scan: *mut IndexFetchTableData) {
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

/// Whether the caller asks for nothing but whether the row is there: the planner, of the ends of an index.
unsafe fn wants_presence(snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    unsafe { (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_NON_VACUUMABLE }
}

/// Whether the caller ends the fetch before it looks at the row's values: the check of a deferred constraint,
/// which asks with this snapshot.
unsafe fn goes_on_with_row(snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    unsafe { (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_SELF }
}

/// Whether the running command has just killed the row: the unique check of its new version then asks no
/// catalog.
unsafe fn is_marked(rel: Relation, row: u64) -> bool {
    // SAFETY: rel is open.
    unsafe { metapage::storage_id(rel).is_some_and(|id| delete_bitmap::marked_by(id, row).is_some()) }
}

/// Whether the caller may hold a lock on an index page: a unique check, which wants to know whether the row
/// is there and nothing else.
unsafe fn holds_page_lock() -> bool {
    // SAFETY: a plain counter of the server; holding any LWLock raises it.
    unsafe { pg_sys::InterruptHoldoffCount > 0 }
}

/// Counts a row fetched through an index, as heap does for its rows.
unsafe fn count_fetch(rel: Relation) {
    // SAFETY: see scan::count_row.
    unsafe {
        let info = (*rel).pgstat_info;
        if !info.is_null() {
            (*info).t_counts.t_tuples_fetched += 1;
        }
    }
}

enum Located {
    /// In this stripe, visible.
    Stored(StripeEntry),
    /// Visible, and the slot is filled already.
    Answered,
    Nowhere,
}

/// Whether the snapshot is one that unique checks use: they ask about the row as it is now, and of a row that
/// is being inserted by this very command they ask whether it is still there.
unsafe fn judges_by_now(snapshot: Snapshot) -> bool {
    // SAFETY: the snapshot is live.
    let kind = unsafe { (*snapshot).snapshot_type };
    kind == pg_sys::SnapshotType::SNAPSHOT_DIRTY || kind == pg_sys::SnapshotType::SNAPSHOT_SELF
}

/// Finds the stripe of a cold row for a snapshot. The row may be dead.
unsafe fn locate(rel: Relation, row: u64, snapshot: Snapshot, slot: *mut TupleTableSlot) -> Located {
    // SAFETY: rel is open, the snapshot live.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return Located::Nowhere };
        if let Some(entry) = stripe_lock::kept(rel, storage_id, row)
            && is_seen(&entry, snapshot)
        {
            directory_scan::clear_dirty(snapshot);
            return Located::Stored(entry);
        }
        let mut found = directory::find(storage_id, row, snapshot);
        if found.as_ref().is_some_and(|entry| entry.reserved_only) && own_writes::flush(rel) {
            found = directory::find(storage_id, row, snapshot);
        }
        match found {
            Some(entry) if !entry.reserved_only => return Located::Stored(entry),
            Some(_) if judges_by_now(snapshot) => {
                // Somebody is loading this row: the snapshot says who, unless it is us. A number whose loader
                // is done and which no stripe has was never used.
                let loader = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY
                    && (*snapshot).xmin != pg_sys::InvalidTransactionId;
                if loader || directory_scan::is_ours(storage_id, row) {
                    cold_rows::store(rel, slot, row, pg_sys::InvalidTransactionId, |_, _| ());
                    return Located::Answered;
                }
                directory_scan::clear_dirty(snapshot);
            }
            _ => {}
        }
        if compat::serializable_reads(rel, snapshot) {
            directory_scan::report_missed(rel, storage_id, row, snapshot);
        }
        Located::Nowhere
    }
}

/// Whether a snapshot is sure to see a stripe that others have committed and that nobody can take away now.
unsafe fn is_seen(entry: &StripeEntry, snapshot: Snapshot) -> bool {
    use pg_sys::SnapshotType as T;
    // SAFETY: the snapshot is live; the invalid id precedes every other.
    unsafe {
        match (*snapshot).snapshot_type {
            T::SNAPSHOT_ANY | T::SNAPSHOT_SELF | T::SNAPSHOT_DIRTY => true,
            T::SNAPSHOT_MVCC => pg_sys::TransactionIdPrecedes(entry.inserter, (*snapshot).xmin),
            _ => false,
        }
    }
}

/// `tuple_fetch_row_version`: hot rows go straight through.
pub(super) unsafe extern "C-unwind" fn tuple_fetch_row_version(
    rel: Relation,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: this frame owns nothing.
    unsafe {
        if !tid::is_cold(*tid) {
            return heap_direct!(tuple_fetch_row_version(rel, tid, snapshot, slot))
                && moved::is_there(rel, snapshot, slot);
        }
        fetch_cold_version(rel, tid, snapshot, slot)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn fetch_cold_version(
    rel: Relation,
    tid: ItemPointer,
    snapshot: Snapshot,
    slot: *mut TupleTableSlot,
) -> bool {
    // SAFETY: as above. Foreign keys ask an old row whether its xmin is this transaction's; triggers get its
    // ctid from the header.
    unsafe {
        let Some(row) = tid::row_of(*tid) else { return false };
        let located = match locate(rel, row, snapshot, slot) {
            Located::Nowhere => moved::unseen(rel, row).map_or(Located::Nowhere, Located::Stored),
            located => located,
        };
        match located {
            Located::Stored(entry) => {
                compat::predicate_lock_tid(rel, tid, snapshot, pg_sys::InvalidTransactionId);
                if !row_proxy::is_there(rel, entry.storage_id, row, snapshot)
                    || !moved::is_cold_there(rel, &entry, row, snapshot)
                {
                    return false;
                }
                row_versions::fetch(rel, &entry, row, slot);
                true
            }
            Located::Answered => true,
            Located::Nowhere => false,
        }
    }
}

/// `tuple_tid_valid`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_tid_valid(scan: TableScanDesc, tid: ItemPointer) -> bool {
    // SAFETY: the scan is ours.
    unsafe {
        if tid::is_cold(*tid) {
            return tid::row_of(*tid).is_some();
        }
        heap_guarded!(tuple_tid_valid((*scan.cast::<super::scan::Scan>()).heap, tid))
    }
}

/// `tuple_get_latest_tid`: the last version that the scan's snapshot sees, wherever it has been moved.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_get_latest_tid(scan: TableScanDesc, tid: ItemPointer) {
    // SAFETY: the scan is ours.
    unsafe {
        latest_version(scan, tid);
        while let Some(place) = moved::place_for((*scan).rs_rd, *tid, (*scan).rs_snapshot) {
            *tid = place;
            latest_version(scan, tid);
        }
    }
}

unsafe fn latest_version(scan: TableScanDesc, tid: ItemPointer) {
    // SAFETY: the scan is ours.
    unsafe {
        if let Some((row, storage_id)) = tid::row_of(*tid).zip(metapage::storage_id((*scan).rs_rd))
            && let Some(successor) = row_proxy::latest(storage_id, row, (*scan).rs_snapshot)
            && tid::block_of(successor) < tid::COLD_BASE
        {
            *tid = successor;
        }
        if !tid::is_cold(*tid) {
            let inner = (*scan.cast::<super::scan::Scan>()).heap;
            (*inner).rs_snapshot = (*scan).rs_snapshot;
            heap_guarded!(tuple_get_latest_tid(inner, tid));
        }
    }
}

/// `tuple_satisfies_snapshot`.
pub(super) unsafe extern "C-unwind" fn tuple_satisfies_snapshot(
    rel: Relation,
    slot: *mut TupleTableSlot,
    snapshot: Snapshot,
) -> bool {
    // SAFETY: this frame owns nothing.
    unsafe {
        if !tid::is_cold((*slot).tts_tid) {
            return heap_direct!(tuple_satisfies_snapshot(rel, slot, snapshot));
        }
        cold_satisfies_snapshot(rel, slot, snapshot)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn cold_satisfies_snapshot(
    rel: Relation,
    slot: *mut TupleTableSlot,
    snapshot: Snapshot,
) -> bool {
    // SAFETY: as above.
    unsafe {
        let Some((row, storage_id)) = tid::row_of((*slot).tts_tid).zip(metapage::storage_id(rel)) else {
            return false;
        };
        let by_now = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_SELF;
        let seen = match directory::find(storage_id, row, snapshot) {
            Some(entry) if !entry.reserved_only || by_now => moved::is_cold_there(rel, &entry, row, snapshot),
            _ => moved::is_old_row(storage_id, row),
        };
        seen && row_proxy::is_there(rel, storage_id, row, snapshot)
    }
}
