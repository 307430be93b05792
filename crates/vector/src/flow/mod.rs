//! What flows from a source to whoever computes with its rows: batches, units of work, summaries, errors.
//!
//! `query` computes, `stripe::scan` reads, a host ties both together; they agree on what is here. So a source
//! knows no operator, and an operator no store.
//!
//! - `batch`: rows as vectors of one length
//! - `source`: where batches come from, and what may be said to a source before it begins
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
