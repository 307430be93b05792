//! Files of other systems: Parquet and CSV, read into vectors and written from them.
//!
//! Called by hosts for import and export. It knows no database. Both formats are read and written piece by
//! piece, so memory does not grow with the file.
//!
//! - `field`: a column of a file
//! - `parquet`: Parquet, by the crate of that name
//! - `csv`: comma-separated values: fields by `csv-core`, and what their types may be

mod error;
mod field;

pub mod csv;
pub mod parquet;

pub use error::{Error, Result};
pub use field::{Field, FieldKind, Unit};
