//! Parquet files.
//!
//! - `schema`: what the columns of a file are
//! - `read`: rows of a file, some at a time
//! - `write`: a file from rows, a row group at a time

mod read;
mod schema;
mod write;

pub use read::ParquetReader;
pub use write::{Codec, ParquetWriter};
