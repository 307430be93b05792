//! The types that flow from a source to the operators that compute with its rows: batches, units of work,
//! summaries, errors.
//!
//! `query` computes, `stripe::scan` reads, and a host ties both together. They share only what is here. So a
//! source knows no operator, and an operator knows no store.
//!
//! - `batch`: rows as vectors of one length
//! - `source`: where batches come from, and what operators may tell a source before it begins
//! - `rank`: which rows a sort wants first
//! - `error`: what ends a plan early

mod batch;
mod error;
mod rank;
mod source;

pub use batch::{BATCH_ROWS, Batch};
pub use error::{Error, Result, SqlError};
pub use rank::{Edge, Extent, Ranking};
pub use source::{
    ColumnSummary, Host, Members, Nothing, RowFilter, Source, Step, Summary, SummaryNeed, Unit,
};
