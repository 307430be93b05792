//! The rows of stripes, and which snapshots see them.
//!
//! A row is born with its stripe, and dies by a tombstone or a bit.
//!
//! Rows of a stripe that packing has replaced are in other stripes now. The new file has each of them once,
//! at its new place. Every snapshot saw the rows that a mover has moved, so they count as seen by everybody,
//! and rows that the mover itself has buried were never there. Only rows that had died before their stripe
//! was replaced still belong to the old stripe.
//!
//! Both places could be kept, each for its snapshots. But a transaction may have changed a row at its new
//! place with a snapshot older than the mover. `engine.row_move` tells it so, and knows nothing of the new
//! file.
//!
//! Invariant: a row is among the living or the dying rows of exactly one stripe, or nobody sees it any more.

use pgrx::pg_sys::{self, CommandId, TupleTableSlot};

use crate::host::error;
use crate::host::relation::Open;
use crate::storage::change::row_proxy::{self, Tombstones};
use crate::storage::directory::StripeEntry;
use crate::storage::directory::age::{self, Age};
use crate::storage::directory::entries;
use crate::storage::directory::rewrite_horizon::Horizon;
use crate::storage::file::metapage;
use crate::storage::pending_rows::{LoadOrder, Loader};
use crate::table_am::read::cold_rows::ColdRows;

/// A stripe as a rewrite finds it.
pub struct Aged {
    /// Its row in the directory.
    pub entry: StripeEntry,
    /// Which snapshots see those of its rows that are not dead.
    pub born: Age,
    /// New snapshots do not find it in the directory any more, so it has no living rows.
    replaced: bool,
}

/// Which rows of a stripe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Rows that new snapshots see.
    Living,
    /// Rows that only older snapshots see.
    Dying,
}

/// The stripes of a file, and the births and deaths of their rows.
pub struct ColdHistory {
    /// The stripes by first row number. Empty if the file has none.
    pub stripes: Vec<Aged>,
    /// Row numbers of dead rows, ascending, and which snapshots see their deaths. Without rows that are dead
    /// to all.
    dying: Vec<(u64, Age)>,
    /// All rows that are dead by now.
    dead: Tombstones,
}

impl ColdHistory {
    /// Reads the history of a file. Directory rows are going to carry ids of its young transactions, so the
    /// catalogs' horizons are held until the end of the transaction.
    ///
    /// # Safety
    /// `old` is locked.
    pub unsafe fn of(old: Open, horizon: &Horizon) -> Self {
        // SAFETY: the lock is promised.
        unsafe {
            let history = Self::look(old, horizon);
            let ages = history.stripes.iter().map(|stripe| stripe.born);
            if ages.chain(history.dying.iter().map(|(_, age)| *age)).any(|age| matches!(age, Age::Since(_))) {
                age::hold_horizon();
                return Self::look(old, horizon);
            }
            history
        }
    }

    /// # Safety
    /// `old` is locked.
    unsafe fn look(old: Open, horizon: &Horizon) -> Self {
        // SAFETY: the lock is promised.
        unsafe {
            let mut found = Self { stripes: Vec::new(), dying: Vec::new(), dead: Tombstones::default() };
            let Some((storage_id, _)) = metapage::read(old) else { return found };
            found.dead = Tombstones::of_scan(old, storage_id, &raw mut pg_sys::SnapshotSelfData);
            found.dying = row_proxy::dying(storage_id, horizon);
            let visible = entries::visible_by_age(storage_id, horizon).into_iter();
            found.stripes.extend(visible.map(|(entry, born)| Aged { entry, born, replaced: false }));
            for (entry, is_live) in entries::not_dead(storage_id, horizon.oldest_xmin()) {
                if is_live || horizon.sees_all(entry.replaced_by) {
                    continue;
                }
                let born = horizon.age(entry.inserter, || 0);
                found.stripes.push(Aged { entry, born, replaced: true });
            }
            // Both lists are sorted, because rows of a stripe are looked up and rows that die again are
            // numbered in this order.
            found.stripes.sort_by_key(|stripe| stripe.entry.first_row);
            found.dying.sort_by_key(|(row, _)| *row);
            let stripes = &found.stripes;
            // Nobody sees a row whose death has the same age as its stripe.
            found.dying.retain(|&(row, died)| {
                let after = stripes.partition_point(|stripe| stripe.entry.first_row <= row);
                let stripe = after.checked_sub(1).and_then(|at| stripes.get(at));
                stripe.is_some_and(|stripe| stripe.entry.covers(row) && stripe.born != died)
            });
            let moved = found.stripes.iter_mut().filter(|stripe| stripe.entry.moved);
            moved.for_each(|stripe| stripe.born = Age::Everybody);
            found
        }
    }

    /// The dying rows of a stripe.
    pub fn dying_in(&self, entry: &StripeEntry) -> &[(u64, Age)] {
        let from = self.dying.partition_point(|(row, _)| *row < entry.first_row);
        let to = self.dying.partition_point(|(row, _)| *row < entry.end_row());
        self.dying.get(from..to).unwrap_or_default()
    }

    /// The living rows of a stripe, and whether those are all that it has.
    pub fn living(&mut self, at: usize) -> (u32, bool) {
        let Some(Aged { entry, replaced, .. }) = self.stripes.get(at) else { return (0, false) };
        if *replaced {
            return (0, false);
        }
        let dead = self.dead.among(entry.first_row..entry.end_row()).len();
        (entry.row_count.saturating_sub(u32::try_from(dead).unwrap_or(u32::MAX)), dead == 0)
    }

    /// Stores rows of a stripe into the slot one after the other. Calls `with` for each, with its number and
    /// the age of its death.
    pub unsafe fn each(
        &mut self,
        at: usize,
        part: Part,
        rows: &mut ColdRows,
        slot: *mut TupleTableSlot,
        mut with: impl FnMut(u64, Option<Age>),
    ) {
        let Some(Aged { entry, replaced, .. }) = self.stripes.get(at) else { return };
        let entry = entry.clone();
        // SAFETY: the slot has the table's row type, and the rows are those of the stripe.
        let mut give = |rows: &mut ColdRows, row: u64, died: Option<Age>| unsafe {
            rows.fetch(&entry, u32::try_from(row - entry.first_row).unwrap_or(u32::MAX), slot);
            with(row, died);
        };
        pgrx::check_for_interrupts!();
        if part == Part::Dying {
            self.dying_in(&entry).iter().for_each(|&(row, died)| give(rows, row, Some(died)));
            return;
        }
        if *replaced {
            return;
        }
        let dead = self.dead.among(entry.first_row..entry.end_row()).to_vec();
        let mut dead = dead.into_iter().peekable();
        for row in entry.first_row..entry.end_row() {
            if dead.next_if_eq(&row).is_none() {
                give(rows, row, None);
            }
        }
    }
}

/// Writes the dying rows of some stripes, which all have the age `born`, and buries them again in the new
/// file.
///
/// # Safety
/// Both relations are locked so that nobody else changes them.
pub unsafe fn bury_anew(
    history: &mut ColdHistory,
    old: Open,
    new: Open,
    stripes: &[usize],
    born: Age,
    command: CommandId,
) {
    // SAFETY: both are locked, as is promised; row numbers of the new file go up with each row, in the order
    // given.
    unsafe {
        let is_dying = |&&at: &&usize| {
            history.stripes.get(at).is_some_and(|stripe| !history.dying_in(&stripe.entry).is_empty())
        };
        let stripes: Vec<usize> = stripes.iter().filter(is_dying).copied().collect();
        if stripes.is_empty() {
            return;
        }
        let storage_id = metapage::ensure(new);
        let first = metapage::read(new).map_or(0, |(_, next_row)| next_row);
        let mut loader = Loader::new(new, LoadOrder::AsGiven, command, born);
        let mut rows = ColdRows::new(old, std::ptr::null_mut());
        let slot = pg_sys::table_slot_create(old.as_ptr(), std::ptr::null_mut());
        let mut ages = Vec::new();
        for at in stripes {
            history.each(at, Part::Dying, &mut rows, slot, |_, died| {
                loader.push(new, &[slot]);
                ages.extend(died);
            });
        }
        loader.finish(new);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        let end = metapage::read(new).map_or(0, |(_, next_row)| next_row);
        if end != first + ages.len() as u64 {
            error::internal("rows that die again are not those that were copied");
        }
        let tombstones: Vec<_> = (first..).zip(ages).collect();
        row_proxy::insert_buried(storage_id, &tombstones, command);
    }
}
