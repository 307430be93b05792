//! The one place where errors become SQLSTATEs, messages, details and hints.
//!
//! Called by all code of this crate that refuses something or has met a bad byte. Invariant: functions that
//! raise do not return. The ERROR unwinds as a Rust panic, which the callback's guard turns back into a
//! server error.

use std::sync::OnceLock;

use pgrx::PgLogLevel;
use pgrx::pg_sys;
pub use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::panic::ErrorReport;

use super::relation::Open;

/// Raises an ERROR with a SQLSTATE and a message. A detail and a hint are added if they are not empty.
#[track_caller]
pub fn raise(code: PgSqlErrorCode, message: impl Into<String>, detail: &str, hint: &str) -> ! {
    let mut report = ErrorReport::new(code, message.into(), "colonnade");
    if !detail.is_empty() {
        report = report.set_detail(detail.to_string());
    }
    if !hint.is_empty() {
        report = report.set_hint(hint.to_string());
    }
    report.report(PgLogLevel::ERROR);
    unreachable!("reporting at ERROR does not return")
}

/// Sends a WARNING with a detail and a hint.
#[track_caller]
pub fn warn(code: PgSqlErrorCode, message: impl Into<String>, detail: &str, hint: &str) {
    ErrorReport::new(code, message.into(), "colonnade")
        .set_detail(detail.to_string())
        .set_hint(hint.to_string())
        .report(PgLogLevel::WARNING);
}

/// Raises the ERROR that a table, given by its name in quotes, does not have an access method.
#[track_caller]
pub fn not_ours(table: &str, method: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        format!("{table} is not a {method} table"),
        "",
        &format!(
            "CREATE TABLE ... USING {method} makes one, ALTER TABLE ... SET ACCESS METHOD {method} turns a table into one."
        ),
    )
}

/// Raises the ERROR that the access method cannot do something.
#[track_caller]
pub fn not_supported(message: impl Into<String>, detail: &str, hint: &str) -> ! {
    raise(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, message, detail, hint)
}

/// Raises the ERROR for a defect: a state that other code should have made impossible.
#[track_caller]
pub fn internal(message: impl Into<String>) -> ! {
    raise(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, message, "", "")
}

/// Tells the file that a foreign table of ours has.
static FILE_OF: OnceLock<fn(pg_sys::Oid) -> String> = OnceLock::new();

/// Notes who knows the files of foreign tables, so that ERRORs can name them.
pub fn register_files(file_of: fn(pg_sys::Oid) -> String) {
    let _ = FILE_OF.set(file_of);
}

/// Raises the ERROR for stored bytes that break the format. It names the relation and, if known, the stripe
/// by its first row number.
#[track_caller]
pub fn corrupt(rel: Open, first_row: Option<u64>, detail: &str) -> ! {
    let place = match first_row {
        Some(row) => format!("stripe starting at row {row} of table {}", rel.quoted_name()),
        None => format!("table {}", rel.quoted_name()),
    };
    let (code, message) = (PgSqlErrorCode::ERRCODE_DATA_CORRUPTED, format!("invalid data in {place}"));
    if let Some(name) = FILE_OF.get().filter(|_| rel.kind() == pg_sys::RELKIND_FOREIGN_TABLE) {
        let detail = format!("{detail} Its file is \"{}\".", name(rel.oid()));
        raise(code, message, &detail, "Restore the file from a backup, or DROP the foreign table.")
    }
    raise(code, message, detail, "Restore the table from a backup or a standby; VACUUM does not repair it.")
}

/// Raises the server's ERROR for an error of the pure crates about a stripe of `rel`. A corrupt column is
/// named as the table names it now.
#[track_caller]
pub fn raise_stripe(rel: Open, first_row: u64, error: vector::Error) -> ! {
    use vector::Error as E;
    match error {
        E::Corrupt { location, detail } => {
            let column = location.column.and_then(|c| rel.column_name(c));
            let place = match (column, location.chunk) {
                (Some(name), Some(chunk)) => format!("Column \"{name}\", chunk {chunk}: {detail}."),
                (Some(name), None) => format!("Column \"{name}\": {detail}."),
                (None, _) => format!("{location}: {detail}."),
            };
            corrupt(rel, Some(first_row), &place)
        }
        E::Unsupported(what) => raise(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("cannot read the stripe starting at row {first_row} of table {}", rel.quoted_name()),
            &format!("This build does not know: {what}."),
            "Install the version of colonnade that wrote it, or a newer one.",
        ),
        other => raise_plain(other),
    }
}

/// Raises the server's ERROR for an error of the pure crates that is about no stored stripe, or names the
/// stripe itself.
#[track_caller]
pub fn raise_plain(error: vector::Error) -> ! {
    use vector::Error as E;
    match error {
        E::Corrupt { location: vector::Location { stripe: Some((table, first_row)), .. }, .. } => {
            // SAFETY: whoever reads a table holds a lock on it to the end of the statement; the ERROR closes
            // it.
            let rel = unsafe { Open::of(pg_sys::table_open(table.into(), pg_sys::NoLock as i32)) };
            raise_stripe(rel, first_row, error)
        }
        E::Corrupt { .. } => raise(PgSqlErrorCode::ERRCODE_DATA_CORRUPTED, error.to_string(), "", ""),
        E::Unsupported(what) => not_supported(what, "", ""),
        E::InvalidInput(what) => raise(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, what, "", ""),
        E::OutOfMemory { bytes } => raise(
            PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
            "out of memory",
            &format!("Failed on a request of {bytes} bytes."),
            "",
        ),
        E::LimitExceeded(what) => raise(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, what, "", ""),
        E::Host(what) | E::FromHost { message: what, .. } => {
            raise(PgSqlErrorCode::ERRCODE_EXTERNAL_ROUTINE_EXCEPTION, what, "", "")
        }
    }
}
