//! VACUUM FULL and CLUSTER.
//!
//! Heap's own rewrite copies hot rows with all their versions, except those that packing has moved
//! (`rewrite/hot`).
//!
//! Stripes are copied byte for byte under their old row numbers. A row number means something within one
//! storage id only, and the new file has a new one. Three kinds of stripes are loaded anew instead:
//! - stripes that are older than a column with a stored default, because the server forgets such defaults
//!   after a rewrite
//! - stripes with dead rows, without the rows that no snapshot sees any more
//! - all stripes, sorted, if CLUSTER goes by a btree index
//!
//! A stripe's directory row keeps the age that it had in the old file. So snapshots older than the rewrite
//! find in the new file what they would have found in the old one. Nobody can reach the new storage id before
//! the commit, and nobody ever uses it after a rollback.
//!
//! Invariant: rows of different ages never share a stripe.

use std::collections::BTreeMap;

use pgrx::pg_sys::{self, HeapTupleData, MultiXactId, Relation, TransactionId};

use super::cluster_sort::IndexSort;
use super::{Aged, ColdHistory, Fate, HotRows, Part, bury_anew};
use crate::compat;
use crate::host::heap_rewrite::{HeapRewrite, RewriteLimits};
use crate::host::memory;
use crate::host::relation::Open;
use crate::host::{error, full_errors};
use crate::storage::directory::age::Age;
use crate::storage::directory::rewrite_horizon::Horizon;
use crate::storage::directory::{self, StripeEntry};
use crate::storage::file::pages::{self, PageOwner};
use crate::storage::file::{metapage, tid};
use crate::storage::pending_rows::{LoadOrder, Loader};
use crate::storage::read::stripe_on_pages;
use crate::storage::space::runs;
use crate::table_am::read::cold_rows::ColdRows;
use crate::table_am::read::own_writes;

/// `relation_copy_for_cluster`.
#[allow(clippy::too_many_arguments, reason = "the server's signature")]
pub unsafe extern "C-unwind" fn copy_for_cluster(
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
        let old = Open::of(old);
        let new = Open::of(new);
        let index = (!index.is_null()).then(|| Open::of(index));
        full_errors::guarded(|| {
            own_writes::flush(old);
            metapage::ensure(new);
            let server = Horizon::of_server(oldest_xmin);
            // A snapshot that the server has given up (`old_snapshot_threshold`) gets an ERROR from heap
            // pages, but none from stripes. So stripes keep what such snapshots may see.
            let seen = old.oldest_xmin();
            let exact = Horizon::of_server(pg_sys::TransactionIdOlder(oldest_xmin, seen));
            // Heap cannot follow an index that holds cold TIDs. For a btree, sorting gives its order.
            let index = index.filter(|index| index.access_method() == pg_sys::BTREE_AM_OID);
            let limits = RewriteLimits { oldest_xmin, freeze: *xid_cutoff, freeze_multi: *multi_cutoff };
            let hot = copy_hot(old, new, index, &server, &limits);
            *vacuumed += hot.gone;
            *recently_dead += hot.dying;
            *tuples += hot.copied + copy_stripes(old, new, index, &exact);
        })
    }
}

/// How many hot versions were copied or left out.
#[derive(Default)]
struct Counts {
    copied: f64,
    dying: f64,
    gone: f64,
}

impl Counts {
    fn add(&mut self, fate: Fate) {
        match fate {
            Fate::Dead | Fate::LeftOut => self.gone += 1.0,
            Fate::Kept => {
                self.copied += 1.0;
                self.dying += 1.0;
            }
            Fate::Alive(_) => self.copied += 1.0,
        }
    }
}

/// Copies hot versions with their headers, in the order of `index` if there is one.
///
/// # Safety
/// Both relations are locked so that nobody else changes them.
unsafe fn copy_hot(
    old: Open,
    new: Open,
    index: Option<Open>,
    horizon: &Horizon,
    limits: &RewriteLimits,
) -> Counts {
    // SAFETY: both are locked, as is promised; what a version takes lives in a context that is emptied after
    // each.
    unsafe {
        let context = memory::reset_often(c"colonnade rewrite");
        let mut counts = Counts::default();
        let tell = |what: u32, value: u32| {
            pg_sys::pgstat_progress_update_param(what as i32, i64::from(value));
        };
        tell(pg_sys::PROGRESS_CLUSTER_PHASE, pg_sys::PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP);
        tell(pg_sys::PROGRESS_CLUSTER_TOTAL_HEAP_BLKS, old.block_count());
        let hot = HotRows::new(old, horizon);
        let mut sort = index.map(|index| IndexSort::new(old, index));
        let mut rewrite = HeapRewrite::begin(old, new, limits);
        let copy = |rewrite: &mut HeapRewrite, tuple: *mut HeapTupleData| {
            let before = pg_sys::MemoryContextSwitchTo(context);
            hot.copy(rewrite, &mut *tuple);
            pg_sys::MemoryContextSwitchTo(before);
            pg_sys::MemoryContextReset(context);
        };
        let blocks = hot.blocks().into_iter().flat_map(|span| span.start..span.end);
        hot.each(blocks, |tuple, _, fate| {
            tell(pg_sys::PROGRESS_CLUSTER_HEAP_BLKS_SCANNED, tid::block_of(tuple.t_self));
            counts.add(fate);
            match (fate, &mut sort) {
                (Fate::Dead, _) => rewrite.leave_out(tuple),
                (Fate::LeftOut, _) => {}
                (_, Some(sort)) => sort.put_tuple(tuple),
                (_, None) => copy(&mut rewrite, tuple),
            }
        });
        if let Some(sort) = sort {
            tell(pg_sys::PROGRESS_CLUSTER_PHASE, pg_sys::PROGRESS_CLUSTER_PHASE_SORT_TUPLES);
            sort.drain_tuples(|tuple| copy(&mut rewrite, tuple));
        }
        rewrite.end();
        pg_sys::MemoryContextDelete(context);
        counts
    }
}

/// Copies every stripe that is there now, in the order of `index` if there is one. Returns how many rows
/// these are.
///
/// # Safety
/// Both relations are locked so that nobody else changes them.
unsafe fn copy_stripes(old: Open, new: Open, index: Option<Open>, horizon: &Horizon) -> f64 {
    // SAFETY: both are locked, as is promised.
    unsafe {
        let Some((_, next_row)) = metapage::read(old) else { return 0.0 };
        let mut history = ColdHistory::of(old, horizon);
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
            if index.is_some() || !is_whole || lacks_default(old, entry) {
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
            let run = runs::write_run(new, &bytes, PageOwner::current(new_id, entry.first_row));
            let copy = StripeEntry { storage_id: new_id, run, moved: false, ..entry.clone() };
            directory::insert(&copy, command, *born);
            pgrx::check_for_interrupts!();
        }
        for (&born, stripes) in &anew {
            let loader = Loader::new(new, LoadOrder::AsGiven, command, born);
            reload(old, new, index, &mut history, stripes, loader);
            // Dead rows that some snapshot may still see are copied, too, and buried again in the new file.
            bury_anew(&mut history, old, new, stripes, born, command);
        }
        count
    }
}

/// Whether the stripe lacks a column with a stored default, which the row type remembers for old rows.
fn lacks_default(rel: Open, entry: &StripeEntry) -> bool {
    // SAFETY: rel is open and so is its row type.
    unsafe {
        let stripe = match stripe_on_pages::open(rel, entry) {
            Ok(stripe) => stripe,
            Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
        };
        let desc = rel.descriptor();
        let columns = compat::attributes(desc).iter().skip(stripe.reader.column_count());
        columns.into_iter().any(|attribute| attribute.atthasmissing && !attribute.attisdropped)
    }
}

/// Loads the living rows of stripes.
unsafe fn reload(
    old: Open,
    new: Open,
    index: Option<Open>,
    history: &mut ColdHistory,
    stripes: &[usize],
    mut loader: Loader,
) {
    // SAFETY: the slot has the row type of both relations.
    unsafe {
        let mut sort = index.map(|index| IndexSort::new(old, index));
        let mut rows = ColdRows::new(old, std::ptr::null_mut());
        let slot = pg_sys::table_slot_create(old.as_ptr(), std::ptr::null_mut());
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
