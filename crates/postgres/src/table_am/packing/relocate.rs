//! One batch of relocation: hot rows into one stripe.
//!
//! The stripe is made first, then its index entries. The hot tuples are deleted last, so that a writer that
//! meets the mover waits only for what is left of the deletions.
//!
//! A row that somebody has locked or changed meanwhile cannot be deleted without waiting. It stays hot, and
//! its copy in the stripe is buried in the same transaction. So nobody ever sees the copy.
//!
//! Invariant: nothing here waits for another transaction.

use pgrx::pg_sys::{self, BlockNumber, ItemPointerData, TM_FailureData, TM_Result};

use super::index_entries::{Entries, Which};
use super::order::sorted;
use super::rows::Rows;
use super::statistics::{self, Sum};
use super::{Step, arrival_order, choose_hot_rows, obstacle, stop_after};
use crate::convert::{ColumnType, ColumnWriter};
use crate::host::heap_am::heap_guarded;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::host::table_counts;
use crate::options::{self, SortKey};
use crate::storage::change::{row_move, row_proxy};
use crate::storage::directory::StripeEntry;
use crate::storage::directory::age::Age;
use crate::storage::directory::{self, sort_marks};
use crate::storage::file::{metapage, tid};
use crate::storage::pending_rows;

/// Moves up to a stripe of rows from block `from` on, unless there are fewer than `fewest`. Sets `from` to
/// where the next batch begins. Returns how many rows it has been through; others may have taken some or all
/// of them meanwhile.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock, and the transaction has an active snapshot.
pub(super) unsafe fn batch(rel: Open, from: &mut BlockNumber, fewest: usize) -> usize {
    // SAFETY: the lock is promised.
    unsafe {
        let storage_id = metapage::ensure(rel);
        let options = options::table_options(rel);
        let oldest_xmin = rel.oldest_xmin();
        row_move::forget(storage_id, oldest_xmin);
        let limit = usize::try_from(options.stripe_row_limit).unwrap_or(usize::MAX).max(1);
        let chosen = choose_hot_rows::choose(rel, storage_id, from, limit, oldest_xmin);
        let (bytes, found) = (chosen.bytes, chosen.rows.len());
        let is_enough = found > 0 && found >= fewest.min(limit);
        statistics::find_waiting(if is_enough { 0 } else { found }, chosen.young, chosen.locked);
        if !is_enough {
            return 0;
        }
        let chosen = chosen.rows;
        stop_after(Step::Chosen);
        let mut source = Rows::new(rel, []);
        let keys = keys_of(rel, &mut source, options.orderby, &chosen);
        let rows = sorted(rel, &mut source, &keys, chosen);
        // Only computes the entries, so that functions of the owner's that fail do so before anything is
        // written. Pages that a failed batch has written stay until the next VACUUM.
        enter(rel, &mut source, Which::All, rows.iter().map(|&at| (at, None)));
        let command = pg_sys::GetCurrentCommandId(true);
        directory::prepare();
        let entry = write(rel, &mut source, &rows, &keys, command);
        directory::complete(&entry, command, Age::New);
        let first = entry.first_row;
        let (rows, left) = rows.split_at(entry.row_count as usize);
        if let Some(block) = left.iter().map(|&at| tid::block_of(at)).min() {
            *from = block;
        }
        enter(rel, &mut source, Which::All, rows.iter().zip(first..).map(|(&at, number)| (at, Some(number))));
        obstacle::refuse_if_decoded(rel);
        stop_after(Step::Written);
        let moved = delete(rel, storage_id, rows, first, command);
        let before = (bytes as u64).saturating_mul(moved as u64) / found as u64;
        count(rel, moved, before, entry.byte_length);
        stop_after(Step::Deleted);
        rows.len()
    }
}

/// What rows are sorted by: what the table's option says, or else a column that grows.
fn keys_of(rel: Open, source: &mut Rows, mut keys: Vec<SortKey>, rows: &[ItemPointerData]) -> Vec<SortKey> {
    if keys.is_empty() {
        keys.extend(arrival_order::key(rel, source, &arrival_order::neighbours(rows)));
    }
    keys
}

/// Counts what a batch has done, in rows and bytes.
fn count(rel: Open, moved: usize, before: u64, after: u64) {
    let done = [
        (Sum::RowsPacked, moved as u64),
        (Sum::StripesWritten, 1),
        (Sum::PackedBytesBefore, before),
        (Sum::PackedBytesAfter, after),
    ];
    statistics::count(rel, &done);
}

/// Makes the index entries of rows that are written, each with its new number. Without numbers it only
/// computes the entries, to see that they can be made.
pub(super) unsafe fn enter(
    rel: Open,
    source: &mut Rows,
    which: Which,
    rows: impl Iterator<Item = (ItemPointerData, Option<u64>)>,
) {
    // SAFETY: as `write`.
    unsafe {
        let slot = pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut());
        let mut entries = Entries::new(rel, which, slot);
        let (is_empty, may_fail) = (entries.is_empty(), entries.may_fail());
        // Without numbers none of the rows has one.
        for (at, number) in rows.take_while(|(_, number)| !is_empty && (number.is_some() || may_fail)) {
            pgrx::check_for_interrupts!();
            source.fetch(at, slot);
            match number {
                Some(number) => entries.add(tid::cold_tid(number)),
                None => entries.compute(),
            }
        }
        entries.finish();
        pg_sys::ExecDropSingleTupleTableSlot(slot);
    }
}

/// Zero-based places of the columns that were dropped.
fn dropped_columns(rel: Open) -> Vec<usize> {
    let places = rel.columns().iter().enumerate();
    places.filter_map(|(at, attribute)| attribute.attisdropped.then_some(at)).collect()
}

/// Writes rows of the table, which are sorted by `keys`, as one stripe, as many as fit. The caller puts the
/// stripe into the directory.
pub(super) unsafe fn write(
    rel: Open,
    source: &mut Rows,
    rows: &[ItemPointerData],
    keys: &[SortKey],
    command: pg_sys::CommandId,
) -> StripeEntry {
    // SAFETY: the rows stay where they are (`rows`); the slot is the table's.
    unsafe {
        let first = directory::reserve(rel, u32::try_from(rows.len()).unwrap_or(u32::MAX), command);
        let slot = pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut());
        let desc = rel.descriptor();
        let dropped = dropped_columns(rel);
        let mut columns: Vec<ColumnWriter> =
            ColumnType::of_all(desc).into_iter().map(ColumnWriter::new).collect();
        let mut count = 0;
        for &at in rows {
            if count % 1024 == 0 {
                pgrx::check_for_interrupts!();
            }
            // Asked after each row, because values that are stored out of line take many times what the heap
            // page shows.
            if columns.iter().map(ColumnWriter::bytes).sum::<usize>() >= pending_rows::STRIPE_BYTES {
                break;
            }
            source.fetch(at, slot);
            pg_sys::slot_getallattrs(slot);
            for &column in &dropped {
                *(*slot).tts_isnull.add(column) = true;
            }
            for (index, column) in columns.iter_mut().enumerate() {
                column.push(&[slot], index);
            }
            count += 1;
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        let columns: Vec<_> = columns.iter_mut().map(ColumnWriter::take).collect();
        let rows = u32::try_from(count).unwrap_or(u32::MAX);
        let entry = pending_rows::write_pages(rel, rows, &columns, Some(first));
        // The statistics have counted these rows already.
        table_counts::take_back_insertions(rel, rows);
        sort_marks::put(rel, StripeEntry { moved: true, ..entry }, &sort_marks::of(rel, keys))
    }
}

/// Notes where the rows are now and deletes the hot tuples, and returns how many it deleted. The copies of
/// rows that cannot be deleted at once are buried.
unsafe fn delete(
    rel: Open,
    storage_id: u64,
    rows: &[ItemPointerData],
    first: u64,
    command: pg_sys::CommandId,
) -> usize {
    // SAFETY: heap's callback with a row that was live a moment ago.
    unsafe {
        row_move::record(storage_id, rows.iter().copied().zip(first..).collect(), command);
        let snapshot = pg_sys::GetActiveSnapshot();
        let mut stayed = Vec::new();
        for (&at, number) in rows.iter().zip(first..) {
            pgrx::check_for_interrupts!();
            let mut at = at;
            let mut failure = TM_FailureData::default();
            let result = heap_guarded!(tuple_delete(
                rel.as_ptr(),
                &raw mut at,
                command,
                snapshot,
                std::ptr::null_mut(),
                false,
                &raw mut failure,
                false
            ));
            if result != TM_Result::TM_Ok {
                stayed.push((number, Age::New));
            }
        }
        row_proxy::insert_buried(storage_id, &stayed, command);
        predicate_locks::transfer_predicate_locks(rel);
        let moved = rows.len() - stayed.len();
        table_counts::take_back_deletions(rel, moved);
        table_counts::add_dead(rel, moved);
        moved
    }
}
