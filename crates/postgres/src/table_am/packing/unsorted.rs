//! Stripes whose rows are not known to be in the order of the table's option `orderby`: loaded before it was
//! set, or one row after the other into a table with an index.
//!
//! Known are those that say so (`sort_marks`), and those whose chunks follow each other by their statistics,
//! which is as good for scans. Of the others a batch takes the first one that nobody is at work on. It reads
//! the keys: where the rows turn out to be in order the stripe's row in the directory gets the marks, else
//! `join` sorts them into a new stripe. So what a batch has seen to is marked, and it comes to an end; one
//! stripe at a time, as its rows are read from anywhere in it. Invariant: as of `stripes`.

use std::cell::RefCell;
use std::collections::HashSet;

use pgrx::pg_sys::{self, CommandId, TransactionId};
use stripe::packing::sort_order::SortOrder;

use super::bounds;
use super::rows::Rows;
use super::stripes::Chosen;
use crate::host::relation::Open;
use crate::host::relation_file;
use crate::host::{error, relation};
use crate::options::SortKey;
use crate::storage::change::stripe_lock;
use crate::storage::directory::age::Age;
use crate::storage::directory::sort_marks;
use crate::storage::directory::{self, StripeEntry};
use crate::storage::file::tid;
use crate::storage::pending_rows::Order;
use crate::storage::read::stripe_on_pages::{self, Pages};
use crate::table_am::read::wanted;

/// Those of some stripes that are not known to be sorted by `keys`.
pub fn among<'a>(
    rel: Open,
    stripes: impl IntoIterator<Item = &'a StripeEntry>,
    keys: &[SortKey],
) -> Vec<&'a StripeEntry> {
    let Some(mark) = sort_marks::of(rel, keys).pop() else { return Vec::new() };
    let bounds = bounds::of(rel, keys);
    let is_unknown = |entry: &&StripeEntry| is_unknown(rel, entry, mark, &bounds);
    stripes.into_iter().filter(is_unknown).collect()
}

fn is_unknown(rel: Open, entry: &StripeEntry, mark: u64, bounds: &SortOrder) -> bool {
    if sort_marks::has(rel, entry, mark) {
        return false;
    }
    let question = (relation_file::file_number(&relation_file::locator(rel)), entry.storage_id, mark);
    let is_known = FOLLOWING.with_borrow_mut(|(asked, known)| {
        if *asked != question {
            *asked = question;
            known.clear();
        }
        known.contains(&entry.first_row)
    });
    let follow = is_known || chunks_follow(rel, entry, bounds);
    if follow && !is_known {
        FOLLOWING.with_borrow_mut(|(_, known)| known.insert(entry.first_row));
    }
    !follow
}

/// File, storage id, mark.
type Question = (u32, u64, u64);

thread_local! {
    /// Stripes whose chunks follow each other, by first row number, of the table and order that were asked
    /// about last: the next batch need not open them again.
    static FOLLOWING: RefCell<(Question, HashSet<u64>)> = RefCell::default();
}

/// Whether the chunks of a stripe follow each other.
fn chunks_follow(rel: Open, entry: &StripeEntry, bounds: &SortOrder) -> bool {
    pgrx::check_for_interrupts!();
    if !bounds.is_known() {
        return false;
    }
    let follow = || bounds.chunks_follow(&stripe_on_pages::open(rel, entry)?.reader, &Pages::new(rel, entry));
    match follow() {
        Ok(follow) => follow,
        Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
    }
}

/// The place of the first stripe that is not known to be sorted by `keys` and that nobody is at work on.
///
/// # Safety
/// `rel` is locked with ShareUpdateExclusiveLock.
pub(super) unsafe fn choose(
    rel: Open,
    stripes: &[Chosen],
    keys: &[SortKey],
    oldest_xmin: TransactionId,
) -> Option<usize> {
    // SAFETY: the lock is promised.
    unsafe {
        let mark = sort_marks::of(rel, keys).pop()?;
        let bounds = bounds::of(rel, keys);
        // Seen by every snapshot where it is, too, as a mark is a new row of the directory: see `compact`.
        let is_wanted = |stripe: &Chosen| {
            Age::of(stripe.entry.inserter, oldest_xmin) == Age::Everybody
                && is_unknown(rel, &stripe.entry, mark, &bounds)
                && stripe_lock::exclude(rel, &stripe.entry).map(|exclusion| exclusion.end(rel)).is_some()
        };
        stripes.iter().position(is_wanted)
    }
}

/// Whether the rows of a stripe, dead ones included, are in order; read from the stripe.
pub(super) fn is_in_order(rel: Open, entry: &StripeEntry, keys: &[SortKey]) -> bool {
    // SAFETY: the rows, the slot and the order are used up here, while the relation is open.
    unsafe {
        let Some(mut order) = Order::new(rel, keys) else { return true };
        let slot = slot_for_keys(rel, keys);
        let mut rows = Rows::new(rel, [entry]);
        let in_order = (entry.first_row..entry.end_row()).all(|row| {
            pgrx::check_for_interrupts!();
            rows.fetch(tid::cold_tid(row), slot);
            order.in_order(&[slot]) == 1
        });
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        in_order
    }
}

/// A slot for rows of which only the keys are read. What fetches rows into it fetches none for others.
pub(super) fn slot_for_keys(rel: Open, keys: &[SortKey]) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the note goes with the memory of the slot.
    unsafe {
        let slot = pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut());
        wanted::note(slot, relation::attributes(keys.iter().map(|key| key.attnum)), std::ptr::null_mut());
        slot
    }
}

/// Notes that a stripe is sorted by `keys`; false where somebody has come to work on it.
pub(super) unsafe fn mark(rel: Open, entry: &StripeEntry, keys: &[SortKey], command: CommandId) -> bool {
    // SAFETY: others are kept out to the end of the transaction.
    unsafe {
        if stripe_lock::exclude(rel, entry).is_none() {
            return false;
        }
        let marks = sort_marks::of(rel, keys);
        directory::replace(&sort_marks::put(rel, entry.clone(), &marks), command);
        true
    }
}
