//! Parquet files.
//!
//! - `schema`: what the columns of a file are
//! - `read`: rows of a file, some at a time
//! - `write`: a file from rows, a row group at a time; `stored`: how their values lie there

mod read;
mod schema;
mod stored;
mod write;

pub use read::ParquetReader;
pub use write::{Codec, ParquetWriter};
