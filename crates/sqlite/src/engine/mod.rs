//! The vectorised engine (`query`) over columnar tables.
//!
//! - `column_type`: the one type of a column in all stripes and the tail, if it has one
//! - `source`: a table's rows as vectors
//! - `host`: what the engine asks of its host
//! - `run`: a plan over one table, run to its end

mod column_type;
mod host;
mod run;
mod source;

pub use column_type::ColumnType;
pub use run::rows_of;
pub use source::TableSource;
