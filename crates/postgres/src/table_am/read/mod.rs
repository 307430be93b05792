//! Reading rows: which rows of a table a snapshot sees, and their values.
//!
//! - `scan`, `scan_steps`: sequential and TID range scans; hot pages first, then stripe after stripe
//! - `parallel`: how the workers of a parallel scan share the pages and stripes
//! - `cold_rows`: the rows of stripes in turn, without those that are dead for the snapshot
//! - `cold_fetch`, `locate`, `finder`: cold rows by their TIDs
//! - `fetch`: callbacks that fetch a row by its TID
//! - `row_versions`: a version of a cold row, as triggers and rechecks ask for it
//! - `moved`: where rows are that a mover has put elsewhere, and what old snapshots see of them
//! - `bitmap`, `bitmap_paths`: bitmap scans, and where the planner may not use them
//! - `sample`, `analyze`: TABLESAMPLE and ANALYZE
//! - `wanted`: which columns a query needs
//! - `own_writes`: rows of this backend that are not in the table yet are written before it is read

pub mod analyze;
pub mod bitmap;
pub mod bitmap_paths;
pub mod cold_fetch;
pub mod cold_rows;
pub mod fetch;
pub mod finder;
pub mod locate;
pub mod moved;
pub mod own_writes;
pub mod parallel;
pub mod row_versions;
pub mod sample;
pub mod scan;
pub mod scan_steps;
pub mod wanted;
