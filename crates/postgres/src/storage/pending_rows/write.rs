//! Writes finished columns into the table: as a stripe, or row by row into the heap.
//!
//! Called by `set` when a stripe is full or a command is over, and by the rewriting commands for the stripes
//! that they make. Crate `stripe` encodes a stripe, and `storage::file::pages` puts it on pages. Its
//! directory row comes last and carries the command id of the rows.
//!
//! Invariant: nothing refers to pages that are not all written.

use std::ops::Range;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, CommandId, TupleTableSlot};
use stripe::{EncodedStripe, StripeOptions};
use vector::Vector;

use super::closed_rows::ClosedRows;
use crate::convert::{ColumnReader, ColumnType};
use crate::host::relation::Open;
use crate::host::{error, heap_am, memory};
use crate::options::{self, Compression, foreign};
use crate::storage::column_file::load;
use crate::storage::directory::age::Age;
use crate::storage::directory::sort_marks;
use crate::storage::directory::{self, StripeEntry};
use crate::storage::encoding;
use crate::storage::file::codecs::ServerCodecs;
use crate::storage::file::metapage;
use crate::storage::file::pages::PageOwner;
use crate::storage::space::runs;

/// How many rows are given to the heap, or to a sort, at a time.
const BATCH_ROWS: usize = 500;

/// Writes finished columns as one stripe, which is seen as `age` says. Waits for its worker if it has one.
///
/// # Safety
/// `rel` is locked with at least RowExclusiveLock.
pub(super) unsafe fn write_stripe(rel: Open, stripe: &mut ClosedRows, command: CommandId, age: Age) {
    let Ok(rows) = u32::try_from(stripe.rows) else { error::internal("stripe has too many rows") };
    // SAFETY: the lock is promised.
    unsafe {
        let worker = stripe.encoding.take();
        let encoded = encoding::finish(worker, rows, &stripe.columns, stripe_options(rel));
        let entry = put_pages(rel, encoded, stripe.first_row);
        directory::complete(&sort_marks::put(rel, entry, &stripe.marks), command, age);
    }
}

/// Writes the pages of one stripe of `rel` with `row_count` rows. The stripe is there once the caller has put
/// it into the directory. `columns` has one flat vector for each attribute of the table, dropped ones
/// included. Row numbers start at `first_row` (reserved before), or are taken from the table's counter.
///
/// # Safety
/// `rel` is locked with at least RowExclusiveLock.
pub unsafe fn write_pages(
    rel: Open,
    row_count: u32,
    columns: &[Vector],
    first_row: Option<u64>,
) -> StripeEntry {
    // SAFETY: the lock is promised.
    unsafe {
        let encoded = encoding::finish(None, row_count, columns, stripe_options(rel));
        put_pages(rel, encoded, first_row)
    }
}

/// How stripes are to be written by the options of `rel`.
pub(super) fn stripe_options(rel: Open) -> StripeOptions<'static> {
    let table = options::table_options(rel);
    StripeOptions {
        layout: table.layout,
        chunk_rows: table.chunk_group_row_limit,
        codec: match table.compression {
            Compression::None => encodings::Codec::None,
            Compression::Pglz => encodings::Codec::Pglz,
            Compression::Lz4 => encodings::Codec::Lz4,
            Compression::Zstd => encodings::Codec::Zstd,
        },
        level: table.compression_level,
        codecs: &ServerCodecs,
        ..StripeOptions::default()
    }
}

/// Puts an encoded stripe on pages, or into the file of a foreign table.
///
/// # Safety
/// `rel` is locked with at least RowExclusiveLock.
unsafe fn put_pages(rel: Open, encoded: EncodedStripe, first_row: Option<u64>) -> StripeEntry {
    // SAFETY: the lock is promised; the run is complete before the directory names it.
    unsafe {
        pgrx::check_for_interrupts!();
        if foreign::is_column_file(rel) {
            return load::put(rel, encoded);
        }
        let row_count = encoded.row_count;
        let storage_id = metapage::ensure(rel);
        let first_row = match first_row {
            Some(first_row) => first_row,
            None => metapage::reserve_rows(rel, u64::from(row_count)),
        };
        let owner = PageOwner::current(storage_id, first_row);
        let run = runs::write_run(rel, &encoded.bytes, owner);
        pg_sys::pgstat_count_heap_insert(rel.as_ptr(), i64::from(row_count));
        StripeEntry::stored(storage_id, first_row, run, encoded)
    }
}

/// Puts finished columns into the heap, row by row.
///
/// # Safety
/// `rel` is locked with at least RowExclusiveLock.
pub(super) unsafe fn write_hot(rel: Open, stripe: &ClosedRows, command: CommandId, options: i32) {
    // SAFETY: the lock is promised; heap gets filled slots of the table's row type.
    unsafe {
        metapage::ensure(rel);
        let Some(insert) = heap_am::heap().multi_insert else { return };
        for_each_slot(rel, stripe, |slots| {
            let mut slots = slots.to_vec();
            let count = slots.len() as i32;
            pg_guard_ffi_boundary(|| {
                insert(rel.as_ptr(), slots.as_mut_ptr(), count, command, options, std::ptr::null_mut());
            });
        });
    }
}

/// Puts some of the finished rows into slots, by way of room for as many values and nulls.
unsafe fn fill(
    slots: &[*mut TupleTableSlot],
    stripe: &ClosedRows,
    rows: Range<usize>,
    readers: &mut [ColumnReader],
    (values, nulls): (&mut [pg_sys::Datum], &mut [bool]),
) {
    // SAFETY: the slots have as many columns as the table, and so have the rows.
    unsafe {
        for &slot in slots {
            pg_sys::ExecClearTuple(slot);
        }
        for (index, (reader, column)) in readers.iter_mut().zip(stripe.columns.iter()).enumerate() {
            reader.datums_in(column, rows.clone(), values, nulls);
            for ((&slot, value), null) in slots.iter().zip(values.iter()).zip(nulls.iter()) {
                *(*slot).tts_values.add(index) = *value;
                *(*slot).tts_isnull.add(index) = *null;
            }
        }
        for &slot in slots {
            pg_sys::ExecStoreVirtualTuple(slot);
        }
    }
}

/// Calls `each` with the finished rows, a batch at a time. The slots are valid until `each` returns.
pub(super) unsafe fn for_each_slot(
    rel: Open,
    stripe: &ClosedRows,
    mut each: impl FnMut(&[*mut TupleTableSlot]),
) {
    // SAFETY: slots and what `each` allocates live in a context of their own that is emptied after each
    // batch.
    unsafe {
        let batch = stripe.rows.min(BATCH_ROWS);
        let descriptor = rel.descriptor();
        let slots: Vec<_> = (0..batch)
            .map(|_| pg_sys::MakeSingleTupleTableSlot(descriptor, &raw const pg_sys::TTSOpsVirtual))
            .collect();
        let mut readers: Vec<_> = ColumnType::of_all(descriptor).into_iter().map(ColumnReader::new).collect();
        let context = memory::reset_often(c"colonnade rows");
        let old = pg_sys::MemoryContextSwitchTo(context);
        let mut values = vec![pg_sys::Datum::null(); batch];
        let mut nulls = vec![true; batch];
        let mut start = 0;
        while start < stripe.rows {
            let end = (start + batch).min(stripe.rows);
            let filled = slots.get(..end - start).unwrap_or(&slots);
            fill(filled, stripe, start..end, &mut readers, (&mut values, &mut nulls));
            each(filled);
            for &slot in filled {
                pg_sys::ExecClearTuple(slot);
            }
            readers.iter_mut().for_each(ColumnReader::reset);
            pg_sys::MemoryContextReset(context);
            pgrx::check_for_interrupts!();
            start = end;
        }
        pg_sys::MemoryContextSwitchTo(old);
        pg_sys::MemoryContextDelete(context);
        for slot in slots {
            pg_sys::ExecDropSingleTupleTableSlot(slot);
        }
    }
}
