//! SQLite, as safe as can be: the only folder that names its C interface.
//!
//! - `raw`: the interface itself
//! - `error`, `value`, `connection`: what goes to and fro, connections and statements
//! - `module`, `index_info`: virtual tables
//! - `function`: functions of SQL

mod connection;
mod error;
mod function;
mod index_info;
mod module;
mod pinned;
pub mod raw;
mod value;

pub use connection::{Connection, OnConflict, Statement, random};
pub use error::{Error, Result};
pub use function::Function;
pub use index_info::{Constraint, IndexInfo, Operator};
pub use module::{Change, Cursor, StoredTable, Table};
pub use pinned::Pinned;
pub use value::{Argument, Class, Context, Value};

use std::ffi::c_int;

/// Takes over SQLite's routines and the connection that loads us, and runs `register` on it. Returns SQLite's
/// code; a text for an error is put to `message`.
///
/// # Safety
/// The pointers are those that SQLite gives to an extension's entry point.
pub unsafe fn load(
    db: *mut raw::sqlite3,
    message: *mut *mut std::ffi::c_char,
    routines: *mut *const std::ffi::c_void,
    register: fn(Connection) -> Result<()>,
) -> c_int {
    // SAFETY: by the caller's promise.
    let loaded = unsafe {
        if !raw::init(routines) {
            // The text has to be in memory of the library that asks.
            let text = c"colonnade is loaded by another SQLite library of this process";
            let (length, memory) = (text.to_bytes_with_nul().len(), raw::malloc_of(routines, 128));
            if !memory.is_null() && !message.is_null() {
                std::ptr::copy_nonoverlapping(text.as_ptr(), memory.cast(), length);
                *message = memory.cast();
            }
            return raw::SQLITE_ERROR;
        }
        if raw::is_since(3_026_000) {
            register(Connection::new(db))
        } else {
            Err(Error::new("colonnade needs SQLite 3.26 or later"))
        }
    };
    match loaded {
        Ok(()) => raw::SQLITE_OK,
        Err(error) => {
            // SAFETY: SQLite frees the text.
            unsafe {
                if !message.is_null() {
                    *message = module::sqlite_text(&error.message);
                }
            }
            error.code
        }
    }
}
