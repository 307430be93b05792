//! `engine.verify(regclass)`: is everything that is stored what it claims to be?
//!
//! Owns the SQL function and the order of the checks:
//! 1. `pages` reads every page of the file.
//! 2. `stripes` compares the directory with the pages, and every stripe with itself.
//! 3. `indexes` compares the indexes with the rows.
//!
//! Of a heap table with columnstore indexes the copies are compared with the heap (`columnstore::verify`).
//!
//! Each fault is one row of the result (`report`). A healthy table gives none. On a primary it takes the lock
//! that VACUUM takes, so that nobody frees pages or index entries meanwhile. Of a heap table it takes that of
//! a reader: the snapshot keeps the pages of copies. Reads and writes go on. Index expressions run as the
//! table's owner, restricted as in VACUUM.
//!
//! Invariant: nothing is changed. A fault that can be reported never ends the function with an ERROR.

mod indexes;
mod pages;
mod report;
mod stripes;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};

use crate::columnstore;
use crate::compat;
use crate::host::error;
use crate::host::identity::Identity;
use crate::host::relation::{Open, with_index, with_table};
use crate::options::{self, maintenance};
use crate::storage::file::metapage;
use crate::table_am::read::own_writes;
use report::{Place, Report};

crate::sql_function!(pg_finfo_colonnade_verify);

/// `engine.verify(regclass)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_verify(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame of a set-returning function that is STRICT.
    unsafe {
        let table = maintenance::table_argument(call);
        let lock = match pg_sys::RecoveryInProgress() {
            true => pg_sys::AccessShareLock,
            false => pg_sys::ShareUpdateExclusiveLock,
        };
        let mut report = Report::new(call);
        for part in maintenance::tables_that(table, |part| options::is_columnar(part) || has_copies(part)) {
            // A stranger must not lock the table.
            maintenance::check_maintainer(part);
            if has_copies(part) {
                with_table(part, pg_sys::AccessShareLock, |heap| {
                    report.begin((part != table).then(|| heap.quoted_name()));
                    verify_copies(heap, &mut report);
                });
                continue;
            }
            let rel = maintenance::open_maintained(part, lock, "verify");
            report.begin((part != table).then(|| Open::of(rel).quoted_name()));
            as_owner((*(*rel).rd_rel).relowner, || verify(Open::of(rel), &mut report));
            pg_sys::table_close(rel, pg_sys::NoLock as i32);
        }
        Datum::null()
    }
}

/// Runs `what` with the rights of the table's owner, so restricted that it can do nothing that outlasts it.
/// An ERROR ends this, too.
unsafe fn as_owner(owner: Oid, what: impl FnOnce()) {
    // SAFETY: the server's own protocol for maintenance commands.
    unsafe {
        Identity::of_owner(owner).during(|| {
            let level = pg_sys::NewGUCNestLevel();
            compat::restrict_search_path();
            what();
            pg_sys::AtEOXact_GUC(false, level);
        });
    }
}

/// Whether a heap table has columnstore indexes.
fn has_copies(table: Oid) -> bool {
    !options::is_columnar(table) && with_table(table, pg_sys::AccessShareLock, columnstore::has_index)
}

/// Holds the copies of a heap table's blocks against the heap. What else the server stores of it is the
/// server's to check.
fn verify_copies(heap: Open, report: &mut Report) {
    expect_file(heap);
    for index in heap.indexes() {
        with_index(index, pg_sys::AccessShareLock, |index| {
            if !columnstore::is_ours(index) {
                return;
            }
            let name = index.quoted_name();
            if !pages::are_sound(index, &format!("index {name}: "), report) {
                report.skipped(&format!("the copies in index {name} were not held against the heap"));
                return;
            }
            // SAFETY: both are open and locked; the statement's snapshot is active.
            unsafe {
                columnstore::verify(index, heap, &mut |block, detail| {
                    let place = Place { block: Some(block), ..Place::default() };
                    report.add("copy", place, format!("index {name}: {detail}"));
                });
            }
        });
    }
}

/// Raises an ERROR where the table's pages are not on this server.
fn expect_file(rel: Open) {
    if rel.has_no_file_here() {
        // The message is the planner's.
        error::not_supported("cannot access temporary or unlogged relations during recovery", "", "");
    }
}

fn verify(rel: Open, report: &mut Report) {
    expect_file(rel);
    // SAFETY: the snapshot is registered until everything was looked at.
    unsafe {
        own_writes::flush(rel);
        let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
        pg_sys::PushActiveSnapshot(snapshot);
        let pages = pages::check(rel, report);
        // Without block 0 nobody knows whose stripes these are, and every access would end in an ERROR.
        if pages.metapage_is_readable()
            && let Some((storage_id, next_row)) = metapage::read(rel)
        {
            stripes::check(rel, snapshot, storage_id, next_row, &pages, report);
        }
        if report.rows_are_readable() {
            indexes::check(rel, snapshot, report);
        } else if indexes::are_there(rel) {
            report.skipped("the indexes were not held against the rows, because not all rows can be read");
        }
        pg_sys::PopActiveSnapshot();
        pg_sys::UnregisterSnapshot(snapshot);
    }
}
