//! The vectorised engine (`query`) over columnar tables.
//!
//! - `column_type`: the one type of a column in all stripes and the tail, if it has one
//! - `source`: a table's rows as vectors
//! - `host`: what the engine asks of its host
//! - `run`: plans, run to their end or batch by batch; `temp_files`: for rows that do not fit memory

mod column_type;
mod host;
mod run;
mod source;
mod temp_files;

pub use column_type::ColumnType;
pub use run::{Limits, REFUSAL, Running, aggregate, rows_of, run_plan};
pub use source::TableSource;
