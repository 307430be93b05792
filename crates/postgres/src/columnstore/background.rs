//! Refreshing in the background: the processes of packing do it, once they have packed a database.
//!
//! An index is looked at if rows were written to its table, or its pause is over (`packing::schedule`). A
//! region is copied if `FEWEST` blocks have no copy, or any where nobody writes any more. Each region is a
//! transaction, and the worker pauses after it.
//!
//! Blocks with dead rows get their copies by VACUUM, for which autovacuum waits until a fifth of all rows is
//! dead. So a table is vacuumed here if too many of its blocks have no copy because of dead rows.

use std::time::Instant;

use pgrx::pg_sys::{self, Oid};

use super::refresh::{Refresh, try_refresh};
use super::{access_method, settings};
use crate::compat;
use crate::host::catalogs;
use crate::table_am::packing::process::{attempt, in_transaction, report, sleep};
use crate::table_am::packing::schedule::Turn;
use crate::table_am::packing::{LONGEST, cost_delay, qualified_name, vacuum};

/// Fewest blocks of a region that are copied while others may follow.
const FEWEST: usize = 64;
/// Rows after which an index is looked at before its pause is over.
const ROWS: u64 = 1000;
/// Microseconds between two VACUUMs of a table.
const BETWEEN_VACUUMS: i64 = 300_000_000;

/// An index whose turn it is.
struct Due {
    index: Oid,
    table: Oid,
    /// Name of the index, in quotes.
    name: String,
    /// Whether nothing was written to its table since a look that did nothing.
    idle: bool,
    /// Rows written to its table, by the server's statistics.
    written: u64,
}

/// Refreshes the indexes of the worker's database. Returns whether there was something to do.
///
/// # Safety
/// In a worker of packing, outside of transactions.
pub unsafe fn round() -> bool {
    // SAFETY: each step has transactions of its own.
    unsafe {
        let Ok(due) = attempt("refresh of columnstore indexes", false, || in_transaction(|| due())) else {
            return false;
        };
        let mut busy = false;
        // Indexes of one table are refreshed together.
        let mut seen_to = Vec::new();
        for index in due {
            if !settings::is_on() {
                break;
            }
            if !seen_to.contains(&index.index) {
                busy |= look_at(&index, &mut seen_to);
            }
        }
        busy
    }
}

unsafe fn due() -> Vec<Due> {
    let method = access_method::oid();
    if method == Oid::INVALID {
        return Vec::new();
    }
    let indexes = catalogs::relations_of(method).into_iter();
    // SAFETY: in a transaction; catalog look-ups.
    unsafe {
        let due = indexes.filter_map(|index| {
            let table = pg_sys::IndexGetRelation(index, true);
            if !access_method::valid_indexes(table, method).contains(&index)
                || pg_sys::get_rel_persistence(index) as u8 == pg_sys::RELPERSISTENCE_TEMP
            {
                return None;
            }
            let (written, turn) = (changed(table), Turn::of_table(index));
            turn.is_due(written, ROWS).then(|| Due {
                index,
                table,
                name: qualified_name(index),
                idle: turn.is_idle(written),
                written,
            })
        });
        due.collect()
    }
}

/// Rows written to a table and deleted, by the server's statistics.
unsafe fn changed(table: Oid) -> u64 {
    // SAFETY: null, or what the server keeps to the end of the transaction.
    unsafe {
        pg_sys::pgstat_fetch_stat_tabentry(table).as_ref().map_or(0, |counts| {
            let changed = counts.tuples_inserted + counts.tuples_updated + counts.tuples_deleted;
            u64::try_from(changed).unwrap_or(0)
        })
    }
}

unsafe fn look_at(index: &Due, seen_to: &mut Vec<Oid>) -> bool {
    let turn = Turn::of_table(index.index);
    // SAFETY: each step has transactions of its own.
    let done = unsafe { see_to(index, seen_to) };
    match done {
        None => turn.failed(),
        Some(true) => turn.was_busy(),
        Some(false) => turn.was_idle(index.written),
    }
    done == Some(true)
}

/// Refreshes an index, and vacuums its table if that would help. Returns whether there was something to do.
/// None after an ERROR.
unsafe fn see_to(index: &Due, seen_to: &mut Vec<Oid>) -> Option<bool> {
    let what = format!("refresh of columnstore index {}", index.name);
    // SAFETY: each step has transactions of its own.
    unsafe {
        let (refresh, end) = refresh(index, &what)?;
        if end == End::TimeIsUp {
            return Some(true);
        }
        if end == End::All {
            seen_to.extend_from_slice(refresh.together());
        }
        let done = refresh.done;
        let asks = || in_transaction(|| wants_vacuum(index.table, done.not_visible, done.covered));
        if end == End::All && attempt(&what, false, asks).ok()? {
            report(&format!("vacuuming the table of {}", index.name));
            vacuum::of(&what, &[index.table]).ok()?;
            self::refresh(index, &what)?;
            return Some(true);
        }
        Some(done.copied > 0)
    }
}

/// How a refresh has ended.
#[derive(PartialEq, Eq)]
enum End {
    /// All regions were looked at.
    All,
    TimeIsUp,
    /// Somebody has locked the table or the index, or they are gone.
    Left,
}

/// Refreshes an index for as long as it may take. None after an ERROR.
unsafe fn refresh(index: &Due, what: &str) -> Option<(Refresh, End)> {
    let began = Instant::now();
    let mut refresh = Refresh::begin(if index.idle { 1 } else { FEWEST });
    while settings::is_on() && began.elapsed() < LONGEST {
        // SAFETY: a transaction of its own.
        let more = unsafe {
            attempt(what, true, || {
                in_transaction(|| {
                    report(&format!("refreshing {}: {} blocks", index.name, refresh.done.copied));
                    try_refresh(index.table, index.index, &mut refresh)
                })
            })
        };
        match more.ok()? {
            None => return Some((refresh, End::Left)),
            Some(false) => return Some((refresh, End::All)),
            // SAFETY: no transaction is open.
            Some(true) => unsafe { sleep(cost_delay()) },
        }
    }
    Some((refresh, End::TimeIsUp))
}

/// Whether VACUUM would give many blocks a copy, of which so many have none because not everybody sees their
/// rows, and so many have one.
unsafe fn wants_vacuum(table: Oid, loose: u64, covered: u64) -> bool {
    // SAFETY: null, or what the server keeps to the end of the transaction; the clock.
    let (counts, now) =
        unsafe { (pg_sys::pgstat_fetch_stat_tabentry(table).as_ref(), pg_sys::GetCurrentTimestamp()) };
    let Some(counts) = counts else { return false };
    let dead = u64::try_from(compat::dead_rows(counts)).unwrap_or(0);
    loose as f64 > settings::loose_limit() * (loose + covered) as f64
        && dead.saturating_mul(2) >= loose
        && now - compat::last_vacuum(counts) > BETWEEN_VACUUMS
}
