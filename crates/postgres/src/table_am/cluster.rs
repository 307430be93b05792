//! VACUUM FULL and CLUSTER.
//!
//! Hot rows are copied by heap's own rewrite, with all their versions, from a heap-typed twin of the table (in which
//! stripe pages look empty). Stripes are copied byte for byte under their old row numbers: a row number means something
//! within one storage id only, and the new file has a new one. Stripes that are older than a column with a stored
//! default are loaded anew, because the server forgets such defaults after a rewrite, and so are those with dead rows, without the
//! rows that no snapshot has any more; CLUSTER by a btree index loads all of them anew, sorted. A stripe's directory row keeps the age that it had in the old file, so that snapshots older than the
//! rewrite find in the new file what they would have found in the old one: the new storage id cannot be reached before
//! the commit, and after a rollback nobody ever uses it. Invariant: rows of different ages never share a stripe.

use pgrx::pg_sys::{self, MultiXactId, Relation, TransactionId};

use super::cluster_sort::IndexSort;
use super::cold_rows::ColdRows;
use super::delegate::heap_guarded;
use super::{own_writes, shim};
use crate::host::{carried, error};
use crate::storage::directory::{self, StripeEntry};
use crate::storage::directory_age::{self, Age};
use crate::storage::directory_scan;
use crate::storage::metapage;
use crate::storage::open_stripe;
use crate::storage::open_stripes::{LoadOrder, Loader};
use crate::storage::pages::{self, PageOwner};
use crate::storage::row_proxy;

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
        let Some((storage_id, next_row)) = metapage::read(old) else { return 0.0 };
        let look = || {
            let mut stripes = directory_scan::visible_by_age(storage_id, oldest_xmin);
            let mut buried = row_proxy::buried(storage_id, oldest_xmin);
            // Rows of a stripe that was replaced while older snapshots are in use have died then, those that had not before.
            for (entry, is_live) in directory_scan::not_dead(storage_id, oldest_xmin) {
                if !is_live {
                    let (born, died) =
                        (Age::of(entry.inserter, oldest_xmin), Age::of(entry.replaced_by, oldest_xmin));
                    buried.extend((entry.first_row..entry.end_row()).map(|row| (row, died)));
                    stripes.push((entry, born));
                }
            }
            // Rows of a stripe are looked up, and rows that die again are numbered, in the order of both lists.
            stripes.sort_by_key(|(entry, _)| entry.first_row);
            buried.sort_by_key(|(row, _)| *row);
            buried.dedup_by_key(|(row, _)| *row);
            (stripes, buried)
        };
        let (mut stripes, mut buried) = look();
        let stripe_ages = stripes.iter().map(|(_, age)| age);
        if stripe_ages.chain(buried.iter().map(|(_, age)| age)).any(|age| matches!(age, Age::Since(_))) {
            directory_age::hold_horizon();
            (stripes, buried) = look();
        }
        let command = pg_sys::GetCurrentCommandId(true);
        let new_id = metapage::ensure(new);
        if next_row > 0 {
            metapage::reserve_rows(new, next_row);
        }
        let mut anew: Vec<(Age, Vec<&StripeEntry>)> = Vec::new();
        for (entry, age) in &stripes {
            if !index.is_null() || lacks_default(old, entry) || !buried_in(&buried, entry).is_empty() {
                match anew.iter_mut().find(|(of, _)| of == age) {
                    Some((_, group)) => group.push(entry),
                    None => anew.push((*age, vec![entry])),
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
            directory::insert(&copy, command, *age);
            pgrx::check_for_interrupts!();
        }
        for (age, group) in &anew {
            let loader = || Loader::new(new, LoadOrder::AsGiven, command, *age);
            reload(old, new, index, group, &|row| !is_buried(&buried, row), loader());
            // Rows that some snapshot may still see die again, in the new file.
            let dying: Vec<(u64, Age)> = group
                .iter()
                .flat_map(|entry| buried_in(&buried, entry))
                .filter(|(_, age)| *age != Age::Everybody)
                .copied()
                .collect();
            if dying.is_empty() {
                continue;
            }
            let first = metapage::read(new).map_or(0, |(_, next_row)| next_row);
            let copied =
                reload(old, new, std::ptr::null_mut(), group, &|row| is_buried(&dying, row), loader());
            if copied != dying.len() {
                error::internal("rows that die again are not those that were copied");
            }
            let tombstones: Vec<_> = dying.iter().zip(first..).map(|((_, age), row)| (row, *age)).collect();
            row_proxy::insert_buried(new_id, &tombstones, command);
        }
        let live = |entry: &StripeEntry| f64::from(entry.row_count) - buried_in(&buried, entry).len() as f64;
        stripes.iter().map(|(entry, _)| live(entry)).sum()
    }
}

/// The dead rows of a stripe.
fn buried_in<'a>(buried: &'a [(u64, Age)], entry: &StripeEntry) -> &'a [(u64, Age)] {
    let from = buried.partition_point(|(row, _)| *row < entry.first_row);
    let to = buried.partition_point(|(row, _)| *row < entry.end_row());
    buried.get(from..to).unwrap_or_default()
}

fn is_buried(buried: &[(u64, Age)], row: u64) -> bool {
    buried.binary_search_by_key(&row, |(row, _)| *row).is_ok()
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

/// Loads the wanted rows of stripes and returns their number.
unsafe fn reload(
    old: Relation,
    new: Relation,
    index: Relation,
    stripes: &[&StripeEntry],
    is_wanted: &dyn Fn(u64) -> bool,
    mut loader: Loader,
) -> usize {
    // SAFETY: the slot has the row type of both relations.
    unsafe {
        let mut sort = (!index.is_null()).then(|| IndexSort::new(old, index));
        let mut rows = ColdRows::new(old, std::ptr::null_mut());
        let slot = pg_sys::table_slot_create(old, std::ptr::null_mut());
        let mut count = 0;
        for entry in stripes {
            for position in 0..entry.row_count {
                if !is_wanted(entry.first_row + u64::from(position)) {
                    continue;
                }
                rows.fetch(entry, position, slot);
                count += 1;
                match &mut sort {
                    Some(sort) => sort.put(slot),
                    None => loader.push(new, &[slot]),
                }
            }
            pgrx::check_for_interrupts!();
        }
        if let Some(sort) = sort {
            sort.drain(|slot| loader.push(new, &[slot]));
        }
        loader.finish(new);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        count
    }
}
