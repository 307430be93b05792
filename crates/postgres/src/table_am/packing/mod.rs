//! Packing: hot rows become stripes while others read and write the table (protocol point 4).
//!
//! A *mover* is an ordinary transaction that holds ShareUpdateExclusiveLock on the table, so there is one at a time and none beside VACUUM or DDL.
//! It works in batches of up to one stripe, each a transaction of its own: `choose` finds rows that every snapshot sees and nobody has
//! locked, `order` sorts them by the table's option, `relocate` writes them as a stripe, makes index entries (`entries`), notes where they went
//! and deletes the hot tuples as heap does, last and without ever waiting. So a writer that meets a mover waits for the end of
//! its batch and goes on at the row's new place (`table_am::moved`), and a mover can be in no deadlock. Index expressions and
//! comparisons run as the table's owner in a restricted context. `procedure` is what users call, `worker` what packs in the
//! background.
//! Invariant: for every snapshot a row is there once, hot or cold: both change with the mover's commit.

mod choose;
mod entries;
mod order;
mod procedure;
mod relocate;
mod settings;
mod worker;

pub use settings::register_settings;
pub use worker::register as register_workers;

use std::ffi::c_int;

use pgrx::pg_sys::{self, Relation};

use crate::host::relation;
use crate::storage::open_stripes;

mod c {
    unsafe extern "C" {
        pub fn CountDBSubscriptions(database: pgrx::pg_sys::Oid) -> std::ffi::c_int;
    }
}

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

/// For tests of what others do meanwhile: waits here for the advisory lock that `colonnade.packing_stop_at` speaks of.
unsafe fn stop_after(step: Step) {
    /// Key of the advisory lock, as the function pg_advisory_lock(bigint) has it.
    const KEY: u32 = 55_435;
    if settings::stop_at() != step as i32 {
        return;
    }
    let tag = pg_sys::LOCKTAG {
        // SAFETY: a constant of the backend.
        locktag_field1: unsafe { pg_sys::MyDatabaseId.into() },
        locktag_field2: 0,
        locktag_field3: KEY,
        locktag_field4: 1,
        locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
        locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
    };
    // SAFETY: a lock of this transaction, given back at once.
    unsafe {
        let mode = pg_sys::ShareLock as c_int;
        pg_sys::LockAcquire(&raw const tag, mode, false, false);
        pg_sys::LockRelease(&raw const tag, mode, false);
    }
}

/// Runs `work` as the owner of `rel`, in a context where functions of the owner's cannot do harm, as the server runs index expressions.
unsafe fn as_owner<T>(rel: Relation, work: impl FnOnce() -> T) -> T {
    // SAFETY: an ERROR ends the transaction, which puts user and settings back, too.
    unsafe {
        let mut user = pg_sys::Oid::INVALID;
        let mut context: c_int = 0;
        pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
        let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as c_int;
        pg_sys::SetUserIdAndSecContext((*(*rel).rd_rel).relowner, restricted);
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
        pg_sys::SetUserIdAndSecContext(user, context);
        result
    }
}

/// Why a table's rows cannot be packed beside its writers; None when they can.
unsafe fn obstacle(rel: Relation) -> Option<(&'static str, &'static str)> {
    // SAFETY: rel is open and locked.
    unsafe {
        if open_stripes::is_published(rel) {
            return Some((
                "The table is published, and logical decoding reads ordinary heap rows only.",
                "Take the table out of its publications first.",
            ));
        }
        if c::CountDBSubscriptions(pg_sys::MyDatabaseId) > 0 {
            return Some((
                "The database has subscriptions, whose changes look rows up in a way that could miss one that is being moved.",
                "engine.colcompress_merge() packs it under a lock that keeps others out.",
            ));
        }
        if !relation::is_temporary(rel) && entries::has_exclusion(rel) {
            return Some((
                "It has an exclusion constraint: a check of it that runs meanwhile could miss a row.",
                "engine.colcompress_merge() packs it under a lock that keeps others out.",
            ));
        }
        None
    }
}
