//! CREATE EXTENSION in a database where a schema `engine` exists already.
//!
//! The extension creates its schema itself and owns it. It does not take over a schema that somebody else has
//! made. The owner could drop or rename that with all that the extension keeps in it. And users who may
//! create in it could put functions beside ours that others call by mistake. The server's own ERROR for this
//! does not say what to do.

use super::report::{Refusal, text};
use crate::host::tree::Typed;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, CreateSchemaStmt};
use std::ffi::CStr;

/// Our schema, as the extension's script names it.
const SCHEMA: &CStr = c"engine";

/// Called when a schema is about to be created. Raises an ERROR if our own script creates our schema and it
/// exists already.
pub fn before(statement: Typed<'_, CreateSchemaStmt>) {
    if statement.name() != Some(SCHEMA) || !is_our_script() {
        return;
    }
    // SAFETY: a catalog look-up.
    let schema = unsafe { pg_sys::get_namespace_oid(SCHEMA.as_ptr(), true) };
    if schema == pg_sys::InvalidOid {
        return;
    }
    Refusal::new(
        Code::ERRCODE_DUPLICATE_SCHEMA,
        format!("schema \"{}\" already exists", text(SCHEMA)),
    )
    .detail("The extension colonnade keeps its objects in a schema of this name, creates it itself and shares it with nobody.")
    .hint("Rename the schema that exists with ALTER SCHEMA engine RENAME TO ..., or drop it if it is empty with DROP SCHEMA engine. Then create the extension.")
    .raise();
}

/// Whether the script of our extension runs.
fn is_our_script() -> bool {
    // SAFETY: plain globals; a catalog look-up gives null or a string.
    unsafe {
        if !pg_sys::creating_extension {
            return false;
        }
        let extension = pg_sys::get_extension_name(pg_sys::CurrentExtensionObject);
        !extension.is_null() && CStr::from_ptr(extension) == c"colonnade"
    }
}
