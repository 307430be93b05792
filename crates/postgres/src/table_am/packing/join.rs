//! One batch of joining: writes some stripes anew, without their dead rows and sorted by the table's option.
//!
//! A batch has one of three aims (`Aim`): some stripes become as few full ones, one stripe becomes a sorted
//! one, or some stripes become ones that do not overlap. Called by `super::batch` when there are no hot rows
//! to pack. The steps:
//! 1. The new stripes are written, and get their entries in indexes that are not unique. Meanwhile others
//!    read and change the old stripes.
//! 2. The mover excludes all others from the old stripes, as far as it gets them at once (protocol point 3 of
//!    `docs/internals/concurrency.md`).
//! 3. A row is buried in its new stripe if it died meanwhile, or if others could not be excluded from its old
//!    stripe.
//! 4. The rows that are left get their entries in unique indexes and are noted as moved. The new stripes
//!    enter the directory with the same command as the old ones leave it.
//!
//! So writers wait only for the last two steps, and go on at the new place. Entries in unique indexes must
//! not be made earlier. Every UPDATE of such a row would then wait for the mover at the unique check, and
//! would keep the stripe from it. A stripe without a living row is just taken out.
//!
//! Invariants: nothing here waits for another transaction. Every row of a stripe that leaves the directory is
//! dead or moved.

use pgrx::pg_sys::{self, CommandId, ItemPointerData, TransactionId};

use super::index_entries::Which;
use super::order::sorted;
use super::relocate::{enter, write};
use super::rows::Rows;
use super::statistics::{self, Sum};
use super::stripes::{self, Chosen};
use super::{Step, Wanted, arrival_order, obstacle, overlapping, settings, stop_after, unsorted};
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::host::table_counts;
use crate::options::{self, SortKey};
use crate::storage::change::row_proxy::Tombstones;
use crate::storage::change::{delete_bitmap, gone_rows, row_move, stripe_lock};
use crate::storage::directory;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::age::Age;
use crate::storage::file::{metapage, tid};
use crate::storage::space::free;

/// How often a mover tries to exclude others from a stripe that somebody is at work on, and the microseconds
/// between two tries. Writers of single rows are soon done.
const TRIES: usize = 10;
const PAUSE: std::ffi::c_long = 2000;

/// In what way the new stripes are better.
#[derive(Clone, Copy)]
enum Aim {
    /// They are fewer, or have no dead rows.
    Fewer,
    /// Each is sorted.
    Sorted,
    /// They do not overlap.
    Apart,
}

/// Joins stripes if that is worth while, at least as many small ones as are wanted. Otherwise it sorts one
/// stripe, or sorts some over each other if at least that many overlap. Returns how many of their rows it has
/// been through.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock, and the transaction has an active snapshot.
pub(super) unsafe fn batch(rel: Open, wanted: Wanted) -> usize {
    // SAFETY: the lock is promised.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return 0 };
        let options = options::table_options(rel);
        let oldest_xmin = rel.oldest_xmin();
        row_move::forget(storage_id, oldest_xmin);
        gone_rows::forget(rel);
        let limit = options.stripe_row_limit.max(1);
        let mut keys = options.orderby;
        let (chosen, aim) = match choose(rel, storage_id, limit, wanted, &keys, oldest_xmin) {
            Ok(chosen) => chosen,
            Err(marked) => return marked,
        };
        if chosen.is_empty() {
            return 0;
        }
        statistics::tell(&format!("joining {} stripes of {}", chosen.len(), rel.quoted_name()));
        stop_after(Step::Chosen);
        let mut source = Rows::new(rel, chosen.iter().map(|stripe| &stripe.entry));
        let live = live_rows(rel, storage_id, &chosen);
        if keys.is_empty() {
            keys.extend(growing_key(rel, &mut source, &live));
        }
        let rows = sorted(rel, &mut source, &keys, live.concat());
        enter(rel, &mut source, Which::All, rows.iter().map(|&at| (at, None)));
        let command = pg_sys::GetCurrentCommandId(true);
        directory::prepare();
        let written = write_all(rel, &mut source, &rows, limit as usize, &keys, command);
        if !is_reached(aim, rel, &chosen, &written, &keys, wanted.min_fill) {
            // The old stripes stay: the new ones are no better, and the next batch would write the same ones
            // again.
            return give_back(rel, &written);
        }
        let numbers = written.iter().flat_map(|entry| entry.first_row..entry.end_row());
        enter(rel, &mut source, Which::Plain, rows.iter().copied().zip(numbers.map(Some)));
        stop_after(Step::Written);
        let count = replace(rel, storage_id, &chosen, &mut source, &rows, &written, command);
        stop_after(Step::Deleted);
        count
    }
}

/// The stripes to work on, and what for. Err: one of them was in order and is marked so now; its rows.
unsafe fn choose(
    rel: Open,
    storage_id: u64,
    limit: u32,
    wanted: Wanted,
    keys: &[SortKey],
    oldest_xmin: TransactionId,
) -> Result<(Vec<Chosen>, Aim), usize> {
    // SAFETY: as `batch`.
    unsafe {
        // Read once for all three questions. Nobody moves rows meanwhile; deaths are looked at again.
        let mut all = stripes::seen_by_all(rel, storage_id, oldest_xmin);
        let small = stripes::choose(rel, &all, limit, wanted);
        if !small.is_empty() || keys.is_empty() {
            return Ok((stripes::only(all, &small), Aim::Fewer));
        }
        if let Some(at) = unsorted::choose(rel, &all, keys, oldest_xmin) {
            let chosen = all.swap_remove(at);
            let entry = &chosen.entry;
            if unsorted::is_in_order(rel, entry, keys) {
                let command = pg_sys::GetCurrentCommandId(true);
                let is_marked = unsorted::mark(rel, entry, keys, command);
                return Err(if is_marked { entry.row_count as usize } else { 0 });
            }
            return Ok((vec![chosen], Aim::Sorted));
        }
        // All that do, where a user has asked for it.
        let fewest = if wanted.stripes == 1 { 1 } else { settings::stripes() };
        let overlapping = overlapping::choose(rel, &all, keys, limit, fewest);
        let mut chosen = stripes::only(all, &overlapping);
        chosen.sort_by_key(|stripe| stripe.entry.first_row);
        Ok((chosen, Aim::Apart))
    }
}

/// The column that the rows are to be sorted by where no option says so.
fn growing_key(rel: Open, source: &mut Rows, live: &[Vec<ItemPointerData>]) -> Option<SortKey> {
    let samples: Vec<_> = live.iter().map(|rows| arrival_order::spread(rows, live.len())).collect();
    let samples: Vec<_> = samples.iter().map(Vec::as_slice).collect();
    arrival_order::key(rel, source, &samples)
}

/// Writes the rows as stripes of at most `limit` rows.
unsafe fn write_all(
    rel: Open,
    source: &mut Rows,
    rows: &[ItemPointerData],
    limit: usize,
    keys: &[SortKey],
    command: CommandId,
) -> Vec<StripeEntry> {
    let mut written = Vec::new();
    let mut rest = rows;
    while !rest.is_empty() {
        let part = rest.get(..limit).unwrap_or(rest);
        // SAFETY: as `batch`.
        let entry = unsafe { write(rel, source, part, keys, command) };
        rest = rest.get(entry.row_count as usize..).unwrap_or_default();
        written.push(entry);
    }
    written
}

/// Whether the stripes written are what the batch was for.
fn is_reached(
    aim: Aim,
    rel: Open,
    chosen: &[Chosen],
    written: &[StripeEntry],
    keys: &[SortKey],
    min_fill: f64,
) -> bool {
    match aim {
        Aim::Sorted => true,
        Aim::Apart => overlapping::are_in_order(rel, written, keys),
        // The estimate of their bytes may have been wrong.
        Aim::Fewer => written.len() < chosen.len() || chosen.iter().any(|stripe| stripe.is_worn(min_fill)),
    }
}

/// Takes out the stripes of which every row is dead, and returns how many these are. It writes nothing if
/// there is none.
pub(super) unsafe fn take_out_dead(rel: Open) -> usize {
    // SAFETY: as `batch`.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return 0 };
        let oldest_xmin = rel.oldest_xmin();
        gone_rows::forget(rel);
        let mut chosen = stripes::seen_by_all(rel, storage_id, oldest_xmin);
        chosen.retain(Chosen::is_dead);
        if !chosen.is_empty() {
            row_move::forget(storage_id, oldest_xmin);
            let mut source = Rows::new(rel, []);
            let command = pg_sys::GetCurrentCommandId(true);
            directory::prepare();
            replace(rel, storage_id, &chosen, &mut source, &[], &[], command);
        }
        chosen.len()
    }
}

/// For each of these stripes, its rows that are not dead by now.
fn live_rows(rel: Open, storage_id: u64, stripes: &[Chosen]) -> Vec<Vec<ItemPointerData>> {
    // SAFETY: the snapshot is a constant of the server's.
    let mut tombstones = unsafe { Tombstones::of_scan(rel, storage_id, &raw mut pg_sys::SnapshotSelfData) };
    let mut live_of = |entry: &StripeEntry| {
        let dead = tombstones.among(entry.first_row..entry.end_row());
        let live = (entry.first_row..entry.end_row()).filter(|row| dead.binary_search(row).is_err());
        live.map(tid::cold_tid).collect()
    };
    stripes.iter().map(|stripe| live_of(&stripe.entry)).collect()
}

/// Excludes all others from some stripes, to the end of the transaction. Says for each stripe whether this
/// one got it.
fn exclude(rel: Open, stripes: &[Chosen]) -> Vec<bool> {
    let mut had = vec![false; stripes.len()];
    // SAFETY: it sleeps for a time that does not depend on others.
    unsafe {
        for pause in (0..TRIES).map(|at| at > 0) {
            if had.iter().all(|&had| had) {
                break;
            }
            if pause {
                pg_sys::pg_usleep(PAUSE);
            }
            for (had, stripe) in had.iter_mut().zip(stripes) {
                *had = *had || stripe_lock::exclude(rel, &stripe.entry).is_some();
            }
        }
    }
    had
}

/// Counts what `replace` has done.
fn count(rel: Open, gone: &[&Chosen], written: &[StripeEntry], moved: usize) {
    let stripes = gone.len() as u64;
    let done = if written.is_empty() {
        vec![(Sum::StripesTakenOut, stripes)]
    } else {
        vec![
            (Sum::RowsRewritten, moved as u64),
            (Sum::StripesReplaced, stripes),
            (Sum::StripesRewritten, written.len() as u64),
            (Sum::RewrittenBytesBefore, gone.iter().map(|stripe| stripe.entry.byte_length).sum()),
            (Sum::RewrittenBytesAfter, written.iter().map(|entry| entry.byte_length).sum()),
        ]
    };
    statistics::count(rel, &done)
}

/// Frees the pages of new stripes that are not used. They are this transaction's, and nobody else knows of
/// them.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock.
unsafe fn give_back(rel: Open, written: &[StripeEntry]) -> usize {
    // SAFETY: the lock is promised.
    unsafe {
        for entry in written {
            free::give_back(rel, entry);
        }
    }
    0
}

/// The rows that are still in stripes that go, each with its new number; and the numbers of the others.
fn left_and_stale(
    rows: &[ItemPointerData],
    written: &[StripeEntry],
    gone: &[&Chosen],
    dead: &[u64],
) -> (Vec<(ItemPointerData, u64)>, Vec<u64>) {
    let is_left = |at: ItemPointerData| {
        tid::row_of(at).is_some_and(|row| {
            let after = gone.partition_point(|stripe| stripe.entry.first_row <= row);
            after.checked_sub(1).is_some_and(|at| gone[at].entry.covers(row))
                && dead.binary_search(&row).is_err()
        })
    };
    let numbers = written.iter().flat_map(|entry| entry.first_row..entry.end_row());
    let (mut moves, mut stale) = (Vec::new(), Vec::new());
    for (&at, number) in rows.iter().zip(numbers) {
        if is_left(at) { moves.push((at, number)) } else { stale.push(number) }
    }
    (moves, stale)
}

/// Replaces the chosen stripes by the written ones, as far as others can be excluded from them. `rows` says
/// where the rows of the written stripes were. Returns how many rows of the chosen stripes this concerns.
unsafe fn replace(
    rel: Open,
    storage_id: u64,
    chosen: &[Chosen],
    source: &mut Rows,
    rows: &[ItemPointerData],
    written: &[StripeEntry],
    command: CommandId,
) -> usize {
    // SAFETY: who has locked or changed a row of an excluded stripe has ended.
    unsafe {
        let had = exclude(rel, chosen);
        let gone: Vec<&Chosen> =
            chosen.iter().zip(had).filter_map(|(stripe, had)| had.then_some(stripe)).collect();
        if gone.is_empty() {
            return give_back(rel, written);
        }
        let mut tombstones = Tombstones::of_scan(rel, storage_id, &raw mut pg_sys::SnapshotSelfData);
        // Dead rows are read stripe by stripe, because `rows` go to and fro between stripes. The stripes
        // ascend, so the list ascends.
        let mut dead: Vec<u64> = Vec::new();
        for Chosen { entry, .. } in &gone {
            dead.extend(tombstones.among(entry.first_row..entry.end_row()));
        }
        let (moves, stale) = left_and_stale(rows, written, &gone, &dead);
        enter(rel, source, Which::Unique, moves.iter().map(|&(at, number)| (at, Some(number))));
        obstacle::refuse_if_decoded(rel);
        let moved = moves.len();
        row_move::record(storage_id, moves, command);
        for entry in written {
            // Each stripe gets bits of its own, because what is noted of its rows goes when the stripe goes
            // (`gone_rows`).
            let of_it: Vec<u64> = stale.iter().copied().filter(|&row| entry.covers(row)).collect();
            delete_bitmap::bury(storage_id, &of_it, command);
            directory::complete(entry, command, Age::New);
        }
        directory::remove(storage_id, gone.iter().map(|stripe| stripe.place).collect());
        // This must come after the old stripes have left the directory: see `moved::lives_on`.
        predicate_locks::transfer_predicate_locks(rel);
        // VACUUM has work now: it takes away the index entries of the rows' old numbers.
        table_counts::add_dead(rel, moved);
        count(rel, &gone, written, moved);
        gone.iter().map(|stripe| stripe.entry.row_count as usize).sum()
    }
}
