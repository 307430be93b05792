//! VACUUM FULL and CLUSTER.
//!
//! Hot rows are copied by heap's own rewrite, with all their versions, from a heap-typed twin of the table (in which
//! stripe pages look empty). Stripes are copied byte for byte under their old row numbers: a row number means something
//! within one storage id only, and the new file has a new one. Stripes that are older than a column with a stored
//! default are loaded anew, because the server forgets such defaults after a rewrite, and so are those with dead rows, without the
//! rows that no snapshot has any more; CLUSTER by a btree index loads all of them anew, sorted. A stripe's directory row keeps the age that it had in the old file, so that snapshots older than the
//! rewrite find in the new file what they would have found in the old one: the new storage id cannot be reached before
//! the commit, and after a rollback nobody ever uses it. Invariant: rows of different ages never share a stripe.

use std::collections::BTreeMap;

use pgrx::pg_sys::{self, MultiXactId, Relation, TransactionId};

use super::cluster_sort::IndexSort;
use super::cold_rows::ColdRows;
use super::delegate::heap_guarded;
use super::rewrite::{Aged, ColdHistory, Part, bury_anew};
use super::{own_writes, shim};
use crate::host::{carried, error};
use crate::storage::directory::{self, StripeEntry};
use crate::storage::directory_age::Age;
use crate::storage::horizon::Horizon;
use crate::storage::metapage;
use crate::storage::open_stripe;
use crate::storage::open_stripes::{LoadOrder, Loader};
use crate::storage::pages::{self, PageOwner};

/// `relation_copy_for_cluster`.
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
        carried::guarded(|| {
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
            *tuples += copy_stripes(old, new, heap_index, oldest_xmin);
        })
    }
}

/// Copies every stripe that is there now, in the order of `index` if there is one; returns the rows. Every snapshot sees
/// what was committed before `oldest_xmin`.
unsafe fn copy_stripes(old: Relation, new: Relation, index: Relation, oldest_xmin: TransactionId) -> f64 {
    // SAFETY: both relations are open and locked.
    unsafe {
        let Some((_, next_row)) = metapage::read(old) else { return 0.0 };
        // What the server has given up for `old_snapshot_threshold` meets an ERROR in heap pages; here it does not.
        let seen = pg_sys::GetOldestNonRemovableTransactionId(old);
        let horizon = Horizon::of_server(pg_sys::TransactionIdOlder(oldest_xmin, seen));
        // Heap's rewrite has copied what movers have deleted.
        let mut history = ColdHistory::of(old, &horizon, false);
        let command = pg_sys::GetCurrentCommandId(true);
        let new_id = metapage::ensure(new);
        if next_row > 0 {
            metapage::reserve_rows(new, next_row);
        }
        let mut count = 0.0;
        let mut anew: BTreeMap<Age, Vec<usize>> = BTreeMap::new();
        for at in 0..history.stripes.len() {
            let (living, is_whole) = history.living(at);
            count += f64::from(living);
            let Aged { entry, born, .. } = &history.stripes[at];
            if !index.is_null() || !is_whole || lacks_default(old, entry) {
                anew.entry(*born).or_default().push(at);
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
            directory::insert(&copy, command, *born);
            pgrx::check_for_interrupts!();
        }
        for (&born, stripes) in &anew {
            let loader = Loader::new(new, LoadOrder::AsGiven, command, born);
            reload(old, new, index, &mut history, stripes, loader);
            // Rows that some snapshot may still see die again, in the new file.
            bury_anew(&mut history, old, new, stripes, born, command);
        }
        count
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

/// Loads the living rows of stripes.
unsafe fn reload(
    old: Relation,
    new: Relation,
    index: Relation,
    history: &mut ColdHistory,
    stripes: &[usize],
    mut loader: Loader,
) {
    // SAFETY: the slot has the row type of both relations.
    unsafe {
        let mut sort = (!index.is_null()).then(|| IndexSort::new(old, index));
        let mut rows = ColdRows::new(old, std::ptr::null_mut());
        let slot = pg_sys::table_slot_create(old, std::ptr::null_mut());
        for &at in stripes {
            history.each(at, Part::Living, &mut rows, slot, |_, _| match &mut sort {
                Some(sort) => sort.put(slot),
                None => loader.push(new, &[slot]),
            });
        }
        if let Some(sort) = sort {
            sort.drain(|slot| loader.push(new, &[slot]));
        }
        loader.finish(new);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
    }
}
