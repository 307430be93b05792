//! Stripes: many chunks of many columns, written once and never changed.
//!
//! This crate owns the layout of a stripe, its statistics and checksums, pruning, and the writer and reader.
//! It knows no page and no file. Hosts store the bytes and hand them back through `StripeBytes`. FORMAT.md
//! describes the bytes.
#![forbid(unsafe_code)]

mod background;
mod beside;
mod blocks;
mod bloom;
mod collect;
mod cursor;
mod distinct;
pub mod documents;
mod footer;
mod open_stripe;
mod opened_chunk;
mod owned_chunk;
pub mod packing;
mod prune;
mod reader;
pub mod row_bits;
mod row_block;
mod row_numbers;
pub mod scan;
mod statistics;
mod summary;
mod verify;
mod writer;

pub use background::{Background, Work, encode_in_background};
pub use beside::summaries_beside;
pub use collect::collect;
pub use cursor::{CHECKSUM_BYTES, checksum, seal, unseal};
pub use distinct::Sketch;
pub use open_stripe::{ColumnChunk, OpenStripe};
pub use opened_chunk::OpenedChunk;
pub use owned_chunk::OwnedChunk;
pub use prune::{Prune, prune_chunk, prune_leaf, prune_opened, prune_statistics, prune_stripe};
pub use reader::{ColumnSchema, StripeBytes, StripeReader};
pub use row_block::RowBlock;
pub use row_numbers::RowNumbers;
pub use statistics::{Bound, ColumnStatistics, Scales};
pub use summary::{Summary, with_orders, write_summary};
pub use verify::{Broken, Finding, verify_chunk, verify_column};
pub use writer::{ColumnReport, EncodedStripe, Layout, StripeOptions, fit_chunk_rows, write_stripe};
