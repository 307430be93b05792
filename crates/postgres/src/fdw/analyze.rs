//! ANALYZE of foreign tables over column files: rows at random places of all that count (`sample`).

use std::ffi::c_int;
use std::rc::Rc;

use files::column::TableStripe;
use pgrx::pg_guard;
use pgrx::pg_sys::{self, BlockNumber, HeapTuple, Relation};

use super::sample::{Sample, places};
use crate::convert::ColumnType;
use crate::host::error;
use crate::host::relation::Open;
use crate::storage::column_file;
use crate::storage::column_file::open::Rows;
use crate::storage::column_file::others::{Bytes, OthersFile};
use crate::storage::directory::{self, entries};
use crate::storage::read::stripe_on_pages;
use crate::table_am::read::cold_rows;

/// `AnalyzeForeignTable`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn analyze(
    rel: Relation,
    sample: *mut pg_sys::AcquireSampleRowsFunc,
    pages: *mut BlockNumber,
) -> bool {
    // SAFETY: the server's own places; the relation is open.
    unsafe {
        let snapshot = pg_sys::GetActiveSnapshot();
        *sample = Some(sample_rows);
        *pages = match column_file::open::of(Open::of(rel)) {
            None => 0,
            Some(Rows::Own(file)) => {
                let stripes = entries::visible_without_summaries(file.owner.storage_id, snapshot);
                stripes.iter().map(|stripe| stripe.run.block_count).sum()
            }
            Some(Rows::Others(file)) => file.pages(),
        };
        true
    }
}

/// Puts up to `wanted` rows into `rows`.
#[pg_guard]
unsafe extern "C-unwind" fn sample_rows(
    rel: Relation,
    _level: c_int,
    rows: *mut HeapTuple,
    wanted: c_int,
    live: *mut f64,
    dead: *mut f64,
) -> c_int {
    // SAFETY: the server's own places, with room for so many rows; the relation is open.
    unsafe {
        let rel = Open::of(rel);
        (*live, *dead) = (0.0, 0.0);
        let file = match column_file::open::of(rel) {
            None => return 0,
            Some(Rows::Own(file)) => file,
            Some(Rows::Others(file)) => return sample_others(rel, file, rows, wanted, live),
        };
        let snapshot = pg_sys::GetActiveSnapshot();
        let stripes = directory::visible(file.owner.storage_id, snapshot);
        let all: u64 = stripes.iter().map(|entry| u64::from(entry.row_count)).sum();
        *live = all as f64;
        let kinds = ColumnType::of_all(rel.descriptor());
        let mut sample = Sample::new(rel, rows, places(all, u64::try_from(wanted).unwrap_or(0)));
        for entry in &stripes {
            let places = sample.places_in_next(entry.row_count.into());
            if places.is_empty() {
                continue;
            }
            let read = stripe_on_pages::open_in_file(&file, entry).and_then(|open| {
                cold_rows::all_fit(&kinds, &open.reader)?;
                sample.take(&open.reader, &file.stripe(entry)?, &places)
            });
            read.unwrap_or_else(|problem| error::raise_stripe(rel, entry.first_row, problem));
        }
        sample.taken()
    }
}

/// As `sample_rows`, of a file that the table did not write.
unsafe fn sample_others(
    rel: Open,
    file: OthersFile,
    rows: *mut HeapTuple,
    wanted: c_int,
    live: *mut f64,
) -> c_int {
    let (all, columns, file) = (file.rows(), file.columns_of(rel), Rc::new(file));
    // SAFETY: the promise of `sample_rows`.
    let mut sample = unsafe {
        *live = all as f64;
        Sample::new(rel, rows, places(all, u64::try_from(wanted).unwrap_or(0)))
    };
    for stripe in &file.stripes {
        let first_row = sample.before();
        let places = sample.places_in_next(stripe.rows.into());
        if places.is_empty() {
            continue;
        }
        let bytes = Bytes { file: Rc::clone(&file), range: stripe.bytes.clone() };
        let read = TableStripe::open(stripe, &columns, &bytes);
        let read = read.and_then(|open| sample.take(&open, &bytes, &places));
        read.unwrap_or_else(|problem| error::raise_stripe(rel, first_row, problem));
    }
    sample.taken()
}
