//! Rewriting a table into a new file.
//!
//! Each command fills a new file that takes the old one's place. Snapshots that are older find in it what
//! they would have found in the old file.
//! - `merge`: `engine.colcompress_merge` and `engine.unpack`
//! - `cluster`: VACUUM FULL and CLUSTER (`cluster_sort` sorts for it)
//! - `cold`: for each row of a stripe, which snapshots see it born and which see it dead
//! - `hot`: for each version of a hot row, what becomes of it
//!
//! Stripes of the new file keep the age of their rows (`storage::directory::age`). Versions in heap pages
//! keep their headers, by the server's own rewrite.
//!
//! Invariants: rows of different ages never share a stripe. A version that some snapshot sees, or may see, is
//! in the new file once.

pub mod cluster;
mod cluster_sort;
mod cold;
mod hot;
mod merge;

pub(super) use cold::{Aged, ColdHistory, Part, bury_anew};
pub(super) use hot::{Fate, HotRows};
