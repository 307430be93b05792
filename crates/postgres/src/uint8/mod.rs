//! `engine.uint8`: unsigned integers of 64 bits.
//!
//! A Datum holds the 64 bits as they are. What the type can do is declared in the extension's SQL. Vectors
//! and stripes hold its values as `convert::type_map` says.
//!
//! - `text`: text and binary form
//! - `compare`: comparison with itself and with the server's exact numbers; hashes
//! - `arithmetic`: operators, with errors where a result is below 0 or above 2^64 - 1
//! - `casts`: from and to other types
//! - `aggregates`: sums and averages; `ranges`: the range type's canonical form
//! - `call`: from the server's calls to functions of numbers, and back
//!
//! Invariant: a value that does not fit is an ERROR. Nothing wraps round.

mod aggregates;
mod arithmetic;
mod call;
mod casts;
mod compare;
mod ranges;
mod text;

use crate::host::error::{self, PgSqlErrorCode};

/// Raises the ERROR for a result that is no value of the type.
#[cold]
fn out_of_range() -> ! {
    error::raise(PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, "uint8 out of range", "", "")
}

/// The value, or the ERROR that it does not fit.
fn fitting(value: i128) -> u64 {
    u64::try_from(value).unwrap_or_else(|_| out_of_range())
}
