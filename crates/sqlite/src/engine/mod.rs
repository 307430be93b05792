//! The vectorised engine (`query`) over columnar tables.
//!
//! - `column_type`: the one type of a column in all stripes and the tail, if it has one
//! - `source`: a table's rows as vectors
//! - `host`: what the engine asks of its host
//! - `run`: plans, run to their end or batch by batch

mod column_type;
mod host;
mod run;
mod source;

pub use column_type::ColumnType;
pub use run::{REFUSAL, Running, aggregate, rows_of, run_plan};
pub use source::TableSource;
