//! The access method `colcompress`: a heap with stripes. One file a verb.
//!
//! Each folder asks only for those above it here; `make lint` checks it.
//!
//! | folder | owns |
//! | --- | --- |
//! | `maintain` | VACUUM, counts and sizes of a table, progress of its commands |
//! | `read` | scans, fetches by TID, bitmaps, samples, ANALYZE: which rows a snapshot sees |
//! | `change` | INSERT, UPDATE, DELETE and row locks |
//! | `index` | builds, checks and fetches of indexes |
//! | `rewrite` | `engine.colcompress_merge`, `engine.unpack`, VACUUM FULL, CLUSTER |
//! | `statements` | statements that make, publish or alter a table, and replication slots |
//! | `packing` | the movers, which turn hot rows into cold ones, and their workers |
//! | `health` | `engine.storage_health` |
//! | `hooks` | the server's hooks that the access method needs |
//! | `routine` | the table of callbacks that the server calls |
//!
//! Callbacks that hand hot rows through do nothing that could need unwinding on that path, and leave
//! everything else to guarded functions.

#![allow(clippy::too_many_arguments, reason = "callbacks have the server's signatures")]

pub mod analyze;
pub mod bitmap;
mod bitmap_paths;
mod bulk_change;
mod cluster;
mod cluster_sort;
mod cold_chain;
mod cold_change;
mod cold_fetch;
pub mod cold_rows;
mod ddl;
pub mod fetch;
mod health;
pub mod hooks;
mod hot_rows;
mod index_build;
mod index_delete;
mod index_fetch;
pub mod index_rows;
mod index_uses;
mod index_validate;
mod insert;
mod locate;
mod merge;
mod modify;
mod moved;
pub mod own_writes;
pub mod packing;
pub mod parallel;
mod progress;
mod publication;
mod rewrite;
pub mod root_tids;
pub mod routine;
pub mod row_versions;
pub mod sample;
pub mod scan;
mod scan_steps;
mod shim;
pub mod size;
mod slot_creation;
mod successor_locks;
mod vacuum;
mod vacuum_counts;
mod wanted;

pub use routine::routine;
