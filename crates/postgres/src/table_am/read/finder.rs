//! Finding rows of stripes by TID, one after the other, under a snapshot.
//!
//! Used by fetches of an index scan and by bitmap scans. What was found for one row serves the next ones: the
//! stripes that the snapshot sees, and which rows are dead for it.
//!
//! Invariant: what is remembered belongs to one MVCC snapshot. Whether a snapshot is another one, its fields
//! say.

use pgrx::pg_sys::{self, ItemPointer, Snapshot, TupleTableSlot};

use super::locate::{Located, locate};
use super::moved;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::change::row_proxy::{self, Tombstones};
use crate::storage::directory::{StripeEntry, entries};

/// Up to this many proxies are read at once, instead of looking up single rows in any order.
const FEW: usize = 64;
/// For so many rows the backend's memory is asked whether they may be dead. From then on it costs no more to
/// read all tombstones, if they are few.
const SEVERAL: u32 = 64;

/// After so many rows without a stripe the whole directory is read. Each costs walks over its index, and all
/// entries of an index may be of stripes that a mover has replaced, until the next VACUUM.
const MISSES: u32 = 64;

/// Finds rows.
#[derive(Default)]
pub struct Finder {
    known: Known,
    dead: Dead,
    /// The stripe found last for a snapshot of another kind, which may see others from call to call.
    last: Option<StripeEntry>,
}

/// What was found.
pub enum Found<'a> {
    /// The row is there, in this stripe.
    There(&'a StripeEntry),
    /// The row counts as there, and the slot is filled already. Only for snapshots that judge by now.
    Answered,
    /// No such row for the snapshot.
    Nowhere,
}

impl Finder {
    /// A finder for rows that ascend, so that it pays to look up tombstones of many rows at once.
    pub fn of_ascending_rows() -> Self {
        Self { dead: Dead { ascending: true, ..Dead::default() }, ..Self::default() }
    }

    /// Finds row number `row`, whose TID is given. A serializable reader leaves its predicate lock.
    ///
    /// # Safety
    /// The snapshot is live; the slot is one of the table's, or null for an MVCC snapshot.
    pub unsafe fn find(
        &mut self,
        rel: Open,
        tid: ItemPointer,
        row: u64,
        snapshot: Snapshot,
        slot: *mut TupleTableSlot,
    ) -> Found<'_> {
        // SAFETY: the caller's promise.
        unsafe {
            let seen = Seen::of(snapshot);
            if let Some(seen) = seen {
                self.known.turn_to(seen);
            }
            let entry = match seen.and_then(|_| self.known.find(row)) {
                Some(at) => self.known.stripes.get(at),
                None if seen.is_some() && self.known.are_all => return Found::Nowhere,
                None => match (locate(rel, row, snapshot, slot), seen) {
                    (Located::Stored(entry), Some(_)) => self.known.remember(entry),
                    (Located::Stored(entry), None) => Some(&*self.last.insert(entry)),
                    (Located::Answered, _) => return Found::Answered,
                    (Located::Nowhere, None) => return Found::Nowhere,
                    (Located::Nowhere, Some(_)) => {
                        self.known.miss(rel, snapshot);
                        return Found::Nowhere;
                    }
                },
            };
            let Some(entry) = entry else { return Found::Nowhere };
            predicate_locks::predicate_lock_tid(rel, tid, snapshot, pg_sys::InvalidTransactionId);
            let there = self.dead.is_there(rel, entry.storage_id, row, snapshot, seen)
                && moved::is_cold_there(rel, entry, row, snapshot);
            if there { Found::There(entry) } else { Found::Nowhere }
        }
    }
}

/// Stripes found so far.
#[derive(Default)]
struct Known {
    /// Ordered by their rows.
    stripes: Vec<StripeEntry>,
    /// The snapshot that sees them.
    to: Option<Seen>,
    /// Rows of no stripe that were asked for.
    misses: u32,
    /// The snapshot sees no others.
    are_all: bool,
}

/// What is known of dead rows.
#[derive(Default)]
struct Dead {
    /// All dead rows, and the snapshot to which they are dead. The inner None means that they are too many to
    /// be kept.
    all: Option<(Seen, Option<Tombstones>)>,
    /// How many rows were asked for so far.
    asked: u32,
    /// They ascend.
    ascending: bool,
}

impl Known {
    /// Where in `stripes` the stripe of a row is, if it was found before.
    fn find(&self, row: u64) -> Option<usize> {
        let at = self.stripes.partition_point(|entry| entry.first_row <= row).checked_sub(1)?;
        self.stripes.get(at)?.covers(row).then_some(at)
    }

    /// Remembers a stripe that the snapshot sees, and returns it. The stripes of one snapshot do not overlap.
    fn remember(&mut self, entry: StripeEntry) -> Option<&StripeEntry> {
        let at = self.stripes.partition_point(|known| known.first_row <= entry.first_row);
        self.stripes.insert(at, entry);
        self.stripes.get(at)
    }

    /// Notes that the snapshot sees no stripe with a row.
    ///
    /// # Safety
    /// The snapshot is live.
    unsafe fn miss(&mut self, rel: Open, snapshot: Snapshot) {
        self.misses += 1;
        // A serializable reader conflicts with the writers of the rows that it misses, and with no others.
        if self.misses >= MISSES && !predicate_locks::is_serializable() {
            // SAFETY: the caller's promise.
            self.stripes = unsafe { entries::survey(rel, snapshot, false) }.visible;
            self.are_all = true;
        }
    }

    /// Forgets what another snapshot sees.
    fn turn_to(&mut self, seen: Seen) {
        if self.to != Some(seen) {
            *self = Self { to: Some(seen), ..Self::default() };
        }
    }
}

impl Dead {
    /// Whether a row of a visible stripe is alive for the snapshot.
    ///
    /// # Safety
    /// The snapshot is live.
    unsafe fn is_there(
        &mut self,
        rel: Open,
        storage_id: u64,
        row: u64,
        snapshot: Snapshot,
        seen: Option<Seen>,
    ) -> bool {
        // SAFETY: the snapshot is live. What an MVCC snapshot sees of the proxies does not change, unless an
        // earlier command of this transaction is suspended and goes on (docs/limitations.md).
        unsafe {
            let Some(seen) = seen.filter(|_| !predicate_locks::is_serializable()) else {
                return row_proxy::is_there(rel, storage_id, row, snapshot);
            };
            if self.all.as_ref().is_none_or(|(when, _)| *when != seen) {
                self.asked = self.asked.saturating_add(1);
                if self.asked == 1 {
                    return row_proxy::is_there(rel, storage_id, row, snapshot);
                }
                if self.asked < SEVERAL && row_proxy::is_certainly_alive(storage_id, row) {
                    return true;
                }
                let all = match self.ascending {
                    true => Some(Tombstones::of_scan(rel, storage_id, snapshot)),
                    false => row_proxy::tombstones(rel, storage_id, snapshot, FEW),
                };
                self.all = Some((seen, all));
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
    /// The identity of a snapshot. None for snapshots whose answer may change from call to call.
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
