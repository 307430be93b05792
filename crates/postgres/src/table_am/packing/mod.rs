//! Packing: hot rows become stripes, and small or worn stripes become full ones, while others read and write
//! the table (protocol point 4 of `docs/internals/concurrency.md`). How it works is told in
//! `docs/internals/packing.md`.
//!
//! A *mover* is an ordinary transaction that holds ShareUpdateExclusiveLock on the table. So a table has one
//! mover at a time, and none beside VACUUM or DDL. It works in batches of up to one stripe, each a
//! transaction of its own. A writer that meets a mover waits for the end of its batch and goes on at the
//! row's new place (`read::moved`). A mover never waits for a row, so it is in no deadlock. Index expressions
//! and comparisons run as the table's owner in a restricted context.
//!
//! A batch packs hot rows:
//! - `choose_hot_rows`: finds rows that every snapshot sees and nobody has locked
//! - `order`: sorts them by the table's option, or by a column that `arrival_order` finds
//! - `relocate`: writes them as a stripe, makes their index entries (`index_entries`), notes where they went,
//!   and last deletes the hot tuples as heap does
//!
//! A batch that finds no hot rows works on stripes:
//! - `stripes`: chooses stripes to join
//! - `unsorted`, `overlapping`: choose stripes to sort (`bounds`: how far a stripe reaches)
//! - `join`: writes them anew, from the same source of rows (`rows`)
//!
//! Who runs batches, and what comes after them:
//! - `procedure`: what users call
//! - `launcher`, `worker`: the background, one database after the other (`process`: what both are made of;
//!   `schedule`: when each table is looked at)
//! - `round`, `statistics`: what is told of it
//! - `tidy`, `compact`: the pages that packed rows leave; `vacuum`: VACUUM as autovacuum calls it
//! - `further`: what other rooms have done in the same processes
//! - `rebuild_indexes`: builds half empty btrees anew where nothing else is left to do
//! - `dead_stripes`: has a VACUUM statement take out stripes without a living row
//! - `obstacle`: why a table is not packed
//!
//! Invariant: every snapshot sees a row once, at its old place or at its new one: both change with the
//! mover's commit.

mod arrival_order;
mod bounds;
pub mod choose_hot_rows;
mod compact;
mod dead_stripes;
pub mod further;
mod index_entries;
mod join;
mod launcher;
mod obstacle;
mod order;
mod overlapping;
mod procedure;
pub mod process;
pub mod rebuild_indexes;
mod relocate;
mod round;
mod rows;
pub mod schedule;
mod settings;
mod statistics;
mod stripes;
mod tidy;
mod unsorted;
mod unsorted_notice;
pub mod vacuum;
mod worker;

pub(super) use dead_stripes::before_vacuum;
pub use dead_stripes::vacuumed;
pub use launcher::register as register_workers;
pub use settings::cost_delay;
pub use settings::register_settings;
pub use unsorted::among as unsorted;
pub use unsorted_notice::tell as tell_of_unsorted;
pub use worker::{LONGEST, name as qualified_name};

use pgrx::pg_sys;

use crate::host::identity::Identity;
use crate::host::relation::Open;
use crate::host::test_stop;
use crate::options::{self, SortKey};
use crate::storage::directory::StripeEntry;

/// The step of a batch after which a mover can be stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The rows are chosen.
    Chosen = 1,
    /// The stripe is written and has its index entries.
    Written = 2,
    /// The hot tuples are deleted; nothing is left but to commit.
    Deleted = 3,
}

/// What a batch is worth making for.
#[derive(Clone, Copy)]
struct Wanted {
    /// Hot rows to pack, at least.
    rows: usize,
    /// Small stripes to join, at least.
    stripes: usize,
    /// Share of living rows, 0 to 1, up to which a stripe is written anew by itself.
    min_fill: f64,
}

/// One batch: packs hot rows from block `from` on. If there are too few, it joins stripes. Returns how many
/// rows it has been through.
unsafe fn batch(rel: Open, from: &mut pg_sys::BlockNumber, wanted: Wanted) -> usize {
    // SAFETY: as `relocate::batch`.
    unsafe {
        as_owner(rel, || match relocate::batch(rel, from, wanted.rows) {
            0 => join::batch(rel, wanted),
            rows => rows,
        })
    }
}

/// A relation or a database is being created with this OID.
pub(super) fn created(class: pg_sys::Oid, object: pg_sys::Oid) {
    if class == pg_sys::RelationRelationId {
        statistics::relation_created(object);
    } else if class == pg_sys::DatabaseRelationId {
        statistics::database_created(object);
    }
}

/// Whether some of these small stripes have room for each other.
pub(super) fn can_be_joined(rel: Open, stripes: &[StripeEntry]) -> bool {
    stripes::can_be_joined(rel, stripes)
}

/// How many of these stripes overlap an earlier one: in the order of these keys, they begin before a stripe
/// that begins earlier has ended.
pub(super) fn overlapping(rel: Open, stripes: &[StripeEntry], keys: &[SortKey]) -> usize {
    // Keys may be compared by functions of the owner's.
    as_owner(rel, || overlapping::count(rel, stripes, keys))
}

/// Whether packing sees to a table's stripes beside its writers at all, and whether it does so in the
/// background.
pub fn sees_to(rel: Open) -> (bool, bool) {
    let can = obstacle::of(rel).is_none();
    (can, can && settings::is_on() && !rel.is_temporary() && options::table_options(rel).packing)
}

/// There is something to do for a table even if nobody has written to it. The next round looks at the table,
/// and so at its database.
pub unsafe fn look_soon(table: pg_sys::Oid) {
    // SAFETY: a constant of the backend.
    schedule::Turn::of_database(unsafe { pg_sys::MyDatabaseId }).was_busy();
    schedule::Turn::of_table(table).was_busy();
}

/// Waits here for the advisory lock that `colonnade.packing_stop_at` speaks of, for tests of what others do
/// meanwhile.
unsafe fn stop_after(step: Step) {
    if settings::stop_at() == step as i32 {
        // SAFETY: movers hold no content lock between their steps.
        unsafe { test_stop::wait(55_435) };
    }
}

/// Runs `work` as the owner of `rel`, in a context where functions of the owner's cannot do harm, as the
/// server runs index expressions.
fn as_owner<T>(rel: Open, work: impl FnOnce() -> T) -> T {
    // SAFETY: an ERROR ends the transaction, which puts user and settings back, too.
    unsafe {
        Identity::of_owner((*rel.form()).relowner).during(|| {
            let level = pg_sys::NewGUCNestLevel();
            pg_sys::set_config_option(
                c"search_path".as_ptr(),
                c"pg_catalog, pg_temp".as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
            let result = work();
            pg_sys::AtEOXact_GUC(false, level);
            result
        })
    }
}
