//! Column files, and files of other systems (Parquet, CSV): read into vectors and written from them.
//!
//! Called by hosts for import and export. It knows no database. All are read and written piece by
//! piece, so memory does not grow with the file.
//!
//! - `column`: column files, which are our own
//! - `about`: what is known of a column in some rows of a file
//! - `field`: a column of a file of others
//! - `file_path`: the name of a file, and how far it may lead
//! - `parquet`: Parquet, by the crate of that name
//! - `text`: values as text
//! - `csv`: comma-separated values: fields by `csv-core`, and what their types may be

mod about;
mod error;
mod field;
mod file_path;
mod json;
mod same;

pub mod column;
pub mod csv;
pub mod parquet;
pub mod text;

pub use about::About;
pub use error::{Error, Result};
pub use field::{Field, FieldKind, Unit};
pub use file_path::FilePath;
