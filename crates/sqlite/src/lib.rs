//! Colonnade for SQLite: compressed column tables in an ordinary database file.
//!
//! A loadable extension. `CREATE VIRTUAL TABLE t USING columnar(...)` makes a table whose rows lie in stripes
//! of the `stripe` crate, as blobs of shadow tables. docs/sqlite.md is for users, docs/internals/sqlite.md
//! says how it works. Rooms, each uses only those above it:
//!
//! - `api`: SQLite's C interface; the only room with `unsafe`
//! - `values`: storage classes, affinity, and how values lie in stripes
//! - `declaration`: what stands between the parentheses of CREATE VIRTUAL TABLE
//! - `storage`: the shadow tables
//! - `scan`: reading
//! - `engine`: the vectorised engine over tables
//! - `table`: the virtual table
//! - `sql`: whole queries in the engine
//! - `transfer`: tables from files and files from queries
//! - `functions`: what SQL calls by name

mod api;
mod declaration;
mod engine;
mod functions;
mod scan;
mod sql;
mod storage;
mod table;
mod transfer;
mod values;

use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;

use api::{Connection, Result, raw};

fn register(db: Connection) -> Result<()> {
    // Loaded once more: what is there knows the tables that are connected.
    if db.prepare("SELECT columnar_version()").is_ok() {
        return Ok(());
    }
    let tables = Rc::new(table::Tables::default());
    db.register_stored::<table::Columnar>(c"columnar", &tables)?;
    functions::register(db, &tables)
}

/// What SQLite calls when it loads the library, which it finds by the file's name.
///
/// # Safety
/// SQLite calls it with a connection and its routines.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_colonnadesqlite_init(
    db: *mut raw::sqlite3,
    message: *mut *mut c_char,
    routines: *mut *const c_void,
) -> c_int {
    // SAFETY: by SQLite's promise.
    unsafe { api::load(db, message, routines, register) }
}

/// The same, for a file of any name.
///
/// # Safety
/// As the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    db: *mut raw::sqlite3,
    message: *mut *mut c_char,
    routines: *mut *const c_void,
) -> c_int {
    // SAFETY: by SQLite's promise.
    unsafe { api::load(db, message, routines, register) }
}
