//! VACUUM FULL and CLUSTER.
//!
//! Hot rows are copied by heap's own rewrite, with all their versions, from a heap-typed twin of the table (in which
//! stripe pages look empty). Stripes are copied byte for byte under their old row numbers: a row number means something
//! within one storage id only, and the new file has a new one. Stripes that are older than a column with a stored
//! default are loaded anew, because the server forgets such defaults after a rewrite. The directory row of a stripe that
//! every snapshot sees is frozen in the new file, so that snapshots older than the rewrite find its rows there: the new
//! storage id cannot be reached before the commit, and after a rollback nobody ever uses it. Other directory rows of the
//! new file are this transaction's: of stripes that were written while an older transaction ran, that one finds nothing.
//! Only hot rows get into an index's order: sorting everything is what `engine.colcompress_merge` does.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, MultiXactId, Relation, TransactionId};

use super::cold_rows::ColdRows;
use super::delegate::heap_guarded;
use super::{own_writes, shim};
use crate::host::error;
use crate::storage::directory::{self, StripeEntry};
use crate::storage::directory_scan;
use crate::storage::metapage;
use crate::storage::open_stripe;
use crate::storage::open_stripes::{LoadOrder, Loader};
use crate::storage::pages::{self, PageOwner};

/// `relation_copy_for_cluster`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn copy_for_cluster(
    old: Relation,
    new: Relation,
    index: Relation,
    _sort: bool,
    oldest_xmin: TransactionId,
    xid_cutoff: *mut TransactionId,
    multi_cutoff: *mut MultiXactId,
    tuples: *mut f64,
    vacuumed: *mut f64,
    recently_dead: *mut f64,
) {
    // SAFETY: as the server calls it, with AccessExclusiveLock on both.
    unsafe {
        own_writes::flush(old);
        metapage::ensure(new);
        // Heap cannot follow an index that holds cold TIDs; a btree's order can be had by sorting.
        let sortable = !index.is_null() && (*(*index).rd_rel).relam == pg_sys::BTREE_AM_OID;
        let heap_index = if sortable { index } else { std::ptr::null_mut() };
        heap_guarded!(relation_copy_for_cluster(
            shim::of(old),
            new,
            heap_index,
            sortable,
            oldest_xmin,
            xid_cutoff,
            multi_cutoff,
            tuples,
            vacuumed,
            recently_dead
        ));
        *tuples += copy_stripes(old, new, oldest_xmin);
    }
}

/// Copies every stripe that is there now; returns the rows. Every snapshot sees what was committed before `oldest_xmin`.
unsafe fn copy_stripes(old: Relation, new: Relation, oldest_xmin: TransactionId) -> f64 {
    // SAFETY: both relations are open and locked.
    unsafe {
        let Some((storage_id, next_row)) = metapage::read(old) else { return 0.0 };
        let stripes = directory_scan::visible_by_age(storage_id, oldest_xmin);
        let command = pg_sys::GetCurrentCommandId(true);
        let new_id = metapage::ensure(new);
        if next_row > 0 {
            metapage::reserve_rows(new, next_row);
        }
        let mut rows = 0.0;
        let (mut outdated_old, mut outdated_young) = (Vec::new(), Vec::new());
        for (entry, everybody_sees) in &stripes {
            rows += f64::from(entry.row_count);
            if lacks_default(old, entry) {
                if *everybody_sees {
                    outdated_old.push(entry)
                } else {
                    outdated_young.push(entry)
                }
                continue;
            }
            let mut bytes = Vec::new();
            let range = 0..entry.byte_length;
            let strategy = std::ptr::null_mut();
            if let Err(problem) =
                pages::read_range(old, entry.run, entry.expected(), range, strategy, &mut bytes)
            {
                error::raise_stripe(old, entry.first_row, problem);
            }
            let run = pages::write_run(new, &bytes, PageOwner::current(new_id, entry.first_row));
            let copy = StripeEntry { storage_id: new_id, run, ..entry.clone() };
            directory::insert(&copy, command, *everybody_sees);
            pgrx::check_for_interrupts!();
        }
        if !outdated_old.is_empty() {
            reload(old, new, &outdated_old, Loader::of_old_rows(new, LoadOrder::AsGiven, command));
        }
        if !outdated_young.is_empty() {
            reload(old, new, &outdated_young, Loader::new(new, LoadOrder::AsGiven, command));
        }
        rows
    }
}

/// Whether the stripe lacks a column whose value in old rows the row type remembers.
unsafe fn lacks_default(rel: Relation, entry: &StripeEntry) -> bool {
    // SAFETY: rel is open and so is its row type.
    unsafe {
        let stripe = match open_stripe::open(rel, entry) {
            Ok(stripe) => stripe,
            Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
        };
        let desc = (*rel).rd_att;
        let count = usize::try_from((*desc).natts).unwrap_or(0);
        let columns = (*desc).attrs.as_slice(count).iter().skip(stripe.reader.column_count());
        columns.into_iter().any(|attribute| attribute.atthasmissing && !attribute.attisdropped)
    }
}

unsafe fn reload(old: Relation, new: Relation, stripes: &[&StripeEntry], mut loader: Loader) {
    // SAFETY: the slot has the row type of both relations.
    unsafe {
        let mut rows = ColdRows::new(old, std::ptr::null_mut());
        let slot = pg_sys::table_slot_create(old, std::ptr::null_mut());
        for entry in stripes {
            for position in 0..entry.row_count {
                rows.fetch(entry, position, slot);
                loader.push(new, &[slot]);
            }
            pgrx::check_for_interrupts!();
        }
        loader.finish(new);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
    }
}
