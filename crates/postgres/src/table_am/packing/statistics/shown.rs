//! Why a table is not packed now, in a word and in a sentence.
//!
//! Called by `report`. Settings, options and the reasons that `obstacle` names are looked up now. The rest is
//! what the worker found at its last look.
//!
//! Invariant: nobody is waited for.

use std::ffi::c_int;

use pgrx::pg_sys::{self, Oid};

use super::{Figures, Number, Outcome};
use crate::host::relation::Open;
use crate::options;
use crate::table_am::packing::schedule::Turn;
use crate::table_am::packing::{obstacle, settings};

/// A word, and a sentence where there is more to say.
pub(super) type State = (&'static str, Option<String>);

/// The state of a table of ours.
pub(super) unsafe fn state(table: Oid, figures: Option<&Figures>) -> State {
    // SAFETY: catalog look-ups, and a lock that is had at once or not at all.
    unsafe {
        let is_temporary = pg_sys::get_rel_persistence(table) as u8 == pg_sys::RELPERSISTENCE_TEMP;
        if pg_sys::RecoveryInProgress() {
            return ("standby", Some("The primary packs.".into()));
        }
        if !settings::is_on() {
            return ("off", Some("The setting colonnade.packing is off.".into()));
        }
        if is_temporary {
            return (
                "off",
                Some("Temporary tables are packed by CALL engine.colcompress_repack() only.".into()),
            );
        }
        if !options::options_of(table).packing {
            return ("off", Some("The table has the option packing = off.".into()));
        }
        if let Some((detail, hint)) = obstacle_of(table) {
            return ("obstacle", Some(format!("{detail} {hint}")));
        }
        let Some(figures) = figures.filter(|figures| figures.number(Number::LastLook) > 0) else {
            return (
                "not looked at",
                Some(format!("A round begins every {} seconds.", settings::naptime() / 1000)),
            );
        };
        by_last_look(table, figures)
    }
}

/// What keeps a table from being packed beside its writers. None if the table cannot be looked at without
/// waiting.
unsafe fn obstacle_of(table: Oid) -> Option<(&'static str, &'static str)> {
    // SAFETY: the lock is given back at once.
    unsafe {
        let mode = pg_sys::AccessShareLock as c_int;
        if !pg_sys::ConditionalLockRelationOid(table, mode) {
            return None;
        }
        let rel = pg_sys::try_table_open(table, pg_sys::NoLock as c_int);
        if rel.is_null() {
            pg_sys::UnlockRelationOid(table, mode);
            return None;
        }
        let found = if options::is_our_relation(Open::of(rel)) { obstacle::of(Open::of(rel)) } else { None };
        pg_sys::table_close(rel, mode);
        found
    }
}

unsafe fn by_last_look(table: Oid, figures: &Figures) -> State {
    let outcome = figures.number(Number::Outcome);
    let [waiting, young, locked] =
        [Number::Waiting, Number::Young, Number::Locked].map(|number| figures.number(number));
    if outcome == Outcome::Failed as u64 {
        return ("failed", Some(format!("{}. It is tried again after a pause.", figures.error)));
    }
    if outcome == Outcome::TableLocked as u64 {
        return (
            "locked",
            Some("Its lock was not to be had at once: VACUUM, DDL, or another that packs it.".into()),
        );
    }
    if waiting == 0 {
        return ("idle", None);
    }
    // SAFETY: a catalog look-up.
    let enough = unsafe { options::options_of(table) }.packing_rows.into();
    if waiting < enough {
        ("few rows", Some(format!("{waiting} heap rows wait, and packing_rows is {enough}.")))
    } else if waiting - young < enough {
        (
            "old snapshot",
            Some(format!(
                "{young} heap rows are younger than the oldest snapshot: of a transaction, a prepared one, a replication slot or a standby."
            )),
        )
    } else if waiting - young - locked.min(waiting - young) < enough {
        ("rows locked", Some(format!("{locked} heap rows are locked or being changed.")))
    } else {
        let due = Turn::of_table(table).is_due(0, u64::MAX);
        ("waiting", Some(if due { "It is its turn in the next round." } else { "It pauses." }.into()))
    }
}
