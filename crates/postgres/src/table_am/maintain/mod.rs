//! What VACUUM and the planner ask of a whole table.
//!
//! - `vacuum`: VACUUM, from heap's own pass to index entries of dead cold rows and pages given back
//! - `vacuum_counts`: row counts in `pg_class` and in the server's statistics
//! - `hot_rows`: how many hot rows there are, without reading all of them
//! - `size`: pages, rows and width for the planner
//! - `progress`: what the server's progress views show

pub mod hot_rows;
pub mod progress;
pub mod size;
pub mod vacuum;
pub mod vacuum_counts;
