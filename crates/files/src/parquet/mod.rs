//! Parquet files.
//!
//! - `schema`: what the columns of a file are
//! - `read`: rows of a file, some at a time
//! - `file`: a file as a scan sees it; `group`: its row groups as stripes; `bounds`: their statistics;
//!   `bloom`: their filters; `page_index`: what is known of pages; `source`: stored bytes of a column
//! - `footer_schema`: the schema in a footer, read with a limit on how deep it nests
//! - `nested`: lists, maps and structs of a schema; `records`: their values, row by row; `nested_text`: these
//!   as text; `nested_array`: as arrays; `nested_group`: them in row groups
//! - `pages`: values of a column in a row group: plain ones (`plain`), codes and levels (`hybrid`)
//! - `about`: what a footer says of the columns, for whoever looks into it
//! - `names`: which files a name stands for, and what their folders say
//! - `write`: a file from rows, a row group at a time; `stored`: how their values lie there; `written`: the
//!   columns of such a file, with lists and structs
//! - `columns`: which fields are which types of PostgreSQL, and their values

mod about;
mod bloom;
mod bounds;
mod columns;
mod file;
mod footer_schema;
mod group;
mod hybrid;
mod names;
mod nested;
mod nested_array;
mod nested_group;
mod nested_text;
mod page_index;
mod pages;
mod plain;
mod read;
mod records;
mod schema;
mod source;
mod stored;
mod write;
mod written;

pub use columns::{columns, field, read_as, to_column, to_field};
pub use file::{ParquetFile, TableColumns, Wanted};
pub use group::RowGroup;
pub use names::{files_of, keys_of};
pub use nested_text::Form;
pub use read::ParquetReader;
pub(crate) use read::is_text;
pub use write::{Codec, ParquetWriter};
pub use written::{Shredded, Written};
