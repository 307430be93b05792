//! Comma-separated values.
//!
//! - `read`: fields of a file, a record at a time
//! - `guess`: what types the columns of a file have
//! - `write`: a file from values

mod guess;
mod read;
mod write;

pub use guess::{Guess, kinds};
pub use read::{CsvReader, Record};
pub use write::CsvWriter;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// What stands between fields.
    pub delimiter: u8,
    /// What stands around fields, and twice for itself within.
    pub quote: u8,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { delimiter: b',', quote: b'"' }
    }
}
