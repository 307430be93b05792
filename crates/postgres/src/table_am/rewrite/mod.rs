//! Rewriting a table into a new file.
//!
//! `merge` (`engine.colcompress_merge`, `engine.unpack`) and `cluster` (VACUUM FULL, CLUSTER; `cluster_sort`
//! sorts for it) fill a new file that takes the old one's place. Snapshots older than that find in it what
//! they would have found in the old one. `cold` says of each row of a stripe who sees it born and who sees it
//! die, `hot` of each version of a hot row what becomes of it. Stripes of the new file keep the age of their
//! rows (`storage::directory::age`); versions in heap pages keep their headers, by the server's own rewrite.
//! Invariants: rows of different ages never share a stripe; a version that some snapshot sees, or may see, is
//! in the new file once.

pub mod cluster;
mod cluster_sort;
mod cold;
mod hot;
mod merge;

pub(super) use cold::{Aged, ColdHistory, Part, bury_anew};
pub(super) use hot::{Fate, HotRows};
