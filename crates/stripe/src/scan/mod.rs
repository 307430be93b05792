//! One scan for every place where stripes are kept: prune, filter, project, or answer from statistics.
//!
//! A host implements [`Store`], which says where stripes are, and which stripes and rows count. It starts a
//! [`StripeScan`] with a [`ChunkPlan`]. Then it reads chunks (`LoadedChunk`) and hands them out row by row,
//! or it reads vectors (`VectorPiece`) for operators of `query`. Rows from elsewhere (heap pages, the tail of
//! a table) and the order of both are the host's business. docs/internals/scan.md says how each kind of store
//! implements this border.
//!
//! - `store`: the border
//! - `plan`: what is done with every chunk; `request`: what a reader of vectors wants in addition
//! - `walk`: goes through stripes and chunks in turn; `ranked`: begins with those that a sort wants first
//! - `ahead`: tells the store which bytes come next, where they are far away
//! - `chunk`, `pruned_chunk`: take one chunk through the steps; `batch_layout`: what a batch has of it
//! - `summaries`: rows that need not be looked at
//! - `counters`: what was read and left out

mod ahead;
mod batch_layout;
mod chunk;
mod counters;
mod plan;
mod pruned_chunk;
mod ranked;
mod request;
mod store;
mod summaries;
mod walk;

pub use batch_layout::{BatchLayout, ChunkUnit};
pub use chunk::{ColumnOrigin, LoadedChunk};
pub use counters::{Counters, Tally};
pub use plan::{ChunkPlan, DeriveColumn, DerivedColumns, MemberColumns, ScanClause, ScanColumn};
pub use ranked::Rank;
pub use request::{VectorPiece, VectorRequest};
pub use store::{Located, RowsOut, Store, StripeInfo};
pub use walk::{PARTS, StripeScan, Turns, may_match};
