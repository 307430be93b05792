//! The process that packs one database.
//!
//! Started by the launcher. It goes round the tables that are due (`schedule`). Each batch is a transaction,
//! and after each one the worker pauses with the table unlocked (`colonnade.packing_cost_delay`). Then it
//! sees to the pages that packed rows have left (`tidy`).
//!
//! It never waits for a table's lock. Like autovacuum, it gives way to a session that waits for one of its
//! locks or for the database. An ERROR ends the batch: it is logged, and the next table's turn comes.
//!
//! Invariant: a worker that is told to stop, or dies, leaves nothing but a rolled-back batch.

use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::time::{Duration, Instant};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, Oid};
use stripe::packing::joining::MIN_FILL;

use super::process::{Role, attempt, begin, in_transaction, report, rows_of, sleep};
use super::round::Round;
use super::schedule::Turn;
use super::statistics::{self, Outcome};
use super::{Wanted, further, launcher, obstacle, rebuild_indexes, settings, tidy};
use crate::host::relation::Open;
use crate::host::server_locks;
use crate::options;
use crate::table_am::statements::slot_creation;

/// The longest time that one table is packed before its pages are seen to and the next table's turn comes.
pub const LONGEST: Duration = Duration::from_secs(10);

/// A table whose turn it is.
pub(super) struct Table {
    pub oid: Oid,
    /// Its name in quotes, with its schema.
    pub name: String,
    /// Fewest rows of a stripe.
    pub fewest: usize,
    /// Whether nothing was written to it since a look that packed nothing.
    pub idle: bool,
    /// Rows written to it, by the server's statistics.
    written: u64,
}

thread_local! {
    /// Why a step of the present look has left its table alone.
    static LEFT: Cell<Option<Outcome>> = const { Cell::new(None) };
}

/// A worker: packs what there is to pack in the database that `argument` names.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_packing_worker(argument: Datum) {
    // SAFETY: the process belongs to this function.
    unsafe {
        begin(Role::Worker);
        let database = Oid::from(argument.value() as u32);
        pg_sys::BackgroundWorkerInitializeConnectionByOid(database, Oid::INVALID, 0);
        server_locks::declare_maintenance();
        adjust_settings();
        let Ok(Some(tables)) = attempt("packing of a database", false, || in_transaction(|| tables())) else {
            return;
        };
        drop(attempt("packing of a database", false, || in_transaction(|| slot_creation::log_slots())));
        let mut busy = false;
        for table in tables {
            if !settings::is_on() {
                break;
            }
            busy |= look_at(&table);
        }
        if let Some(further) = further::get() {
            busy |= (further.round)();
        }
        let turn = Turn::of_database(database);
        if busy {
            turn.was_busy();
        } else {
            let written =
                attempt("packing of a database", false, || in_transaction(|| launcher::written(database)));
            turn.correct_to_idle(written.unwrap_or(0));
        }
    }
}

/// Settings of this process.
unsafe fn adjust_settings() {
    // SAFETY: the server keeps a setting's text until it is set again.
    unsafe {
        // A mover's commit need not be on disk or on a standby before others go on: a transaction that
        // depends on it commits later.
        set(c"synchronous_commit", c"off");
        // As in autovacuum's processes, settings for sessions do not apply here: nothing passes over damaged
        // pages or ends a batch by time.
        for (name, value) in [
            (c"zero_damaged_pages", c"off"),
            (c"ignore_checksum_failure", c"off"),
            (c"statement_timeout", c"0"),
            (c"lock_timeout", c"0"),
            (c"idle_in_transaction_session_timeout", c"0"),
            (c"default_transaction_isolation", c"read committed"),
        ] {
            set(name, value);
        }
        // VACUUM runs at autovacuum's pace here.
        let pace = pg_sys::GetConfigOption(c"autovacuum_vacuum_cost_delay".as_ptr(), true, false);
        if !pace.is_null() && *pace.cast::<u8>() != b'-' {
            set(c"vacuum_cost_delay", std::ffi::CStr::from_ptr(pace));
        }
    }
}

unsafe fn set(name: &std::ffi::CStr, value: &std::ffi::CStr) {
    // SAFETY: the server copies both.
    unsafe {
        let context = pg_sys::GucContext::PGC_SUSET;
        pg_sys::SetConfigOption(name.as_ptr(), value.as_ptr(), context, pg_sys::GucSource::PGC_S_OVERRIDE);
    }
}

/// The tables of our access methods that are due; None where the extension is not in the database.
unsafe fn tables() -> Option<Vec<Table>> {
    // SAFETY: in a transaction with a snapshot.
    unsafe {
        let methods = options::oids();
        if methods.is_empty() {
            return None;
        }
        let kinds = [pg_sys::RELKIND_RELATION as c_char, pg_sys::RELKIND_MATVIEW as c_char];
        let temporary = pg_sys::RELPERSISTENCE_TEMP as c_char;
        let found = rows_of::<pg_sys::FormData_pg_class, _>(pg_sys::RelationRelationId, |row| {
            (methods.contains(&row.relam) && kinds.contains(&row.relkind) && row.relpersistence != temporary)
                .then_some(row.oid)
        });
        let due = found.into_iter().filter_map(|oid| {
            let options = options::options_of(oid);
            let (written, turn) = (written(oid), Turn::of_table(oid));
            let due = options.packing && turn.is_due(written, options.packing_rows.into());
            due.then(|| Table {
                oid,
                name: name(oid),
                fewest: options.packing_rows as usize,
                idle: turn.is_idle(written),
                written,
            })
        });
        Some(due.collect())
    }
}

/// Name of a table, in quotes.
pub unsafe fn name(table: Oid) -> String {
    // SAFETY: null, or a string, once it is dropped.
    unsafe {
        let text = |name: *const c_char| match name.is_null() {
            true => String::from("?"),
            false => std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned(),
        };
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(table));
        format!("\"{}.{}\"", text(schema), text(pg_sys::get_rel_name(table)))
    }
}

/// Rows written to a table, by the server's statistics.
unsafe fn written(table: Oid) -> u64 {
    // SAFETY: null, or what the server keeps to the end of the transaction.
    unsafe {
        let counts = pg_sys::pgstat_fetch_stat_tabentry(table);
        if counts.is_null() {
            return 0;
        }
        u64::try_from((*counts).tuples_inserted + (*counts).tuples_updated).unwrap_or(0)
    }
}

/// Packs a table as far as it is worth while and tidies up. Returns whether there was something to do.
unsafe fn look_at(table: &Table) -> bool {
    // SAFETY: each step has transactions of its own.
    unsafe {
        let turn = Turn::of_table(table.oid);
        let round = Round::begin();
        LEFT.set(None);
        // Two stripes are enough where nobody writes, because no others will come to be joined with them.
        let stripes = if table.idle { 2 } else { settings::stripes() };
        let moved = pack(table, table.fewest, stripes);
        // The pages are tidied up even if packing fails, as it may do each time: a failed batch leaves pages
        // behind, too.
        let tidied = tidy::table(table);
        let mut done = moved.zip(tidied).map(|(moved, tidied)| moved > 0 || tidied);
        if table.idle && done == Some(false) {
            done = rebuild_indexes::one(table);
        }
        let has_done = round.end("background packing", &table.name);
        let outcome = if done.is_none() { Outcome::Failed } else { LEFT.get().unwrap_or(Outcome::Done) };
        statistics::looked_at(table.oid, outcome, has_done);
        match done {
            None => turn.failed(),
            Some(true) => turn.was_busy(),
            Some(false) => turn.was_idle(table.written),
        }
        done == Some(true)
    }
}

/// Packs a table, batch by batch, as long as there are `fewest` rows for a stripe or `stripes` small stripes
/// to be joined. It stops after `LONGEST`, as others may write as fast. Returns how many rows were moved,
/// None after an ERROR.
pub(super) unsafe fn pack(table: &Table, fewest: usize, stripes: usize) -> Option<usize> {
    let (mut from, mut total) = (0, 0);
    let began = Instant::now();
    // SAFETY: each batch is a transaction of its own.
    unsafe {
        while settings::is_on() && began.elapsed() < LONGEST {
            let moved = on_table(table, |rel| {
                report(&format!("packing {}: {total} rows", rel.quoted_name()));
                super::batch(rel, &mut from, Wanted { rows: fewest, stripes, min_fill: MIN_FILL })
            })?;
            total += moved.unwrap_or(0);
            if moved.unwrap_or(0) == 0 {
                break;
            }
            sleep(settings::cost_delay());
        }
    }
    Some(total)
}

/// Runs `work` in a transaction on a table that exists, can be locked at once and may be packed. None: an
/// ERROR ended it. Some(None): the table is not such a table.
pub(super) unsafe fn on_table<T>(table: &Table, work: impl FnOnce(Open) -> T) -> Option<Option<T>> {
    // SAFETY: the lock is kept to the end of the transaction.
    unsafe {
        let in_it = || {
            if !pg_sys::ConditionalLockRelationOid(table.oid, pg_sys::ShareUpdateExclusiveLock as c_int) {
                LEFT.set(Some(Outcome::TableLocked));
                return None;
            }
            let rel = pg_sys::try_table_open(table.oid, pg_sys::NoLock as c_int);
            if rel.is_null() {
                return None;
            }
            let rel = Open::of(rel);
            let may = options::is_our_relation(rel) && obstacle::of(rel).is_none();
            if !may {
                LEFT.set(Some(Outcome::Obstacle));
            }
            let result = may.then(|| work(rel));
            pg_sys::table_close(rel.as_ptr(), pg_sys::NoLock as c_int);
            result
        };
        let done = attempt(&format!("packing of table {}", table.name), true, || in_transaction(in_it));
        done.map_err(|message| statistics::failed(table.oid, &message)).ok()
    }
}
