//! One batch of merging: some stripes into as few full ones, or one into one that is sorted, or some into
//! ones that do not overlap, sorted by the table's option, without their dead rows.
//!
//! The new stripes are written first, while others read and change the old ones. Then the old ones are taken
//! from all others, those that are to be had at once (protocol point 3): a row that has died meanwhile, or
//! whose stripe could not be had, is buried in its new stripe. What is left gets its entries in unique
//! indexes and is noted as moved, and the new stripes enter the directory with the same command as the old
//! ones leave it. So writers wait only for these last steps, and go on at the new place. (Those made earlier
//! would have every UPDATE of such a row wait for the mover at the unique check, and keep the stripe from it;
//! other indexes have theirs by then.) A stripe of which nothing is left alive is just taken out. Invariants:
//! nothing here waits for another transaction; of a stripe that leaves the directory every row is dead, or
//! moved.

use pgrx::pg_sys::{self, CommandId, ItemPointerData, TransactionId};

use super::index_entries::Which;
use super::order::sorted;
use super::relocate::{enter, write};
use super::rows::Rows;
use super::statistics::{self, Sum};
use super::stripes::{self, Chosen};
use super::{Step, arrival_order, obstacle, overlapping, settings, stop_after, unsorted};
use crate::compat;
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

/// Tries to get hold of a stripe that somebody is at work on, and the microseconds between two of them:
/// writers of single rows are soon done.
const TRIES: usize = 10;
const PAUSE: std::ffi::c_long = 2000;

/// What the new stripes are better in.
#[derive(Clone, Copy)]
enum Aim {
    /// They are fewer, or have no dead rows.
    Fewer,
    /// Each is sorted.
    Sorted,
    /// They do not overlap.
    Apart,
}

/// Joins stripes that it is worth while to, `fewest` small ones at least, or sorts one, or some over each
/// other where so many overlap; returns how many of their rows it has been through.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock, and the transaction has an active snapshot.
pub(super) unsafe fn batch(rel: Open, fewest: usize) -> usize {
    // SAFETY: the lock is promised.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return 0 };
        let options = options::table_options(rel);
        let oldest_xmin = rel.oldest_xmin();
        row_move::forget(storage_id, oldest_xmin);
        gone_rows::forget(rel);
        let limit = options.stripe_row_limit.max(1);
        let mut keys = options.orderby;
        let (chosen, aim) = match choose(rel, storage_id, limit, fewest, &keys, oldest_xmin) {
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
        if !is_reached(aim, rel, &chosen, &written, &keys) {
            // Nothing changes, or the next batch would do the same.
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
    fewest: usize,
    keys: &[SortKey],
    oldest_xmin: TransactionId,
) -> Result<(Vec<Chosen>, Aim), usize> {
    // SAFETY: as `batch`.
    unsafe {
        let small = stripes::choose(rel, storage_id, limit, fewest, oldest_xmin);
        if !small.is_empty() || keys.is_empty() {
            return Ok((small, Aim::Fewer));
        }
        if let Some(chosen) = unsorted::choose(rel, storage_id, keys, oldest_xmin) {
            let entry = &chosen.entry;
            if unsorted::is_in_order(rel, entry, keys) {
                let command = pg_sys::GetCurrentCommandId(true);
                let is_marked = unsorted::mark(rel, entry, keys, command);
                return Err(if is_marked { entry.row_count as usize } else { 0 });
            }
            return Ok((vec![chosen], Aim::Sorted));
        }
        // All that do, where a user has asked for it.
        let fewest = if fewest == 1 { fewest } else { settings::stripes() };
        Ok((overlapping::choose(rel, storage_id, keys, limit, fewest, oldest_xmin), Aim::Apart))
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
fn is_reached(aim: Aim, rel: Open, chosen: &[Chosen], written: &[StripeEntry], keys: &[SortKey]) -> bool {
    match aim {
        Aim::Sorted => true,
        Aim::Apart => overlapping::are_in_order(rel, written, keys),
        // The estimate of their bytes may have been wrong.
        Aim::Fewer => written.len() < chosen.len() || chosen.iter().any(Chosen::is_worn),
    }
}

/// Takes out the stripes of which every row is dead; returns how many there are. Where there is none it has
/// written nothing.
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

/// The rows of some stripes that are not dead by now, those of each.
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

/// Excludes all others from some stripes, to the end of the transaction; which of them were to be had, in the
/// order given.
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

/// Frees the pages of stripes that are not to be. They are this transaction's, and nobody has heard of them.
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

/// Puts the stripes written, of rows that were at `rows`, into the place of those chosen, as far as these can
/// be had; returns how many rows of theirs that concerns.
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
        // One stripe after the other, as `rows` go to and fro between them; ascending, as they are.
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
            // Each stripe's own: what is noted of its rows goes when it goes (`gone_rows`).
            let of_it: Vec<u64> = stale.iter().copied().filter(|&row| entry.covers(row)).collect();
            delete_bitmap::bury(storage_id, &of_it, command);
            directory::complete(entry, command, Age::New);
        }
        directory::remove(storage_id, gone.iter().map(|stripe| stripe.place).collect());
        // After the old stripes are gone: see `moved::lives_on`.
        compat::transfer_predicate_locks(rel);
        // What VACUUM has to do: take the entries of their old numbers away.
        table_counts::add_dead(rel, moved);
        count(rel, &gone, written, moved);
        gone.iter().map(|stripe| stripe.entry.row_count as usize).sum()
    }
}
