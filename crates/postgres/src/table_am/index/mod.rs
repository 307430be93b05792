//! What indexes ask of a table.
//!
//! - `build`: CREATE INDEX and REINDEX; `validate`: the second pass of CREATE INDEX CONCURRENTLY
//! - `rows`: index expressions and predicates of cold rows; `root_tids`: the roots of HOT chains
//! - `shim`: a twin of the relation that heap's index build takes for a heap table
//! - `fetch`: rows by the TIDs of an index scan
//! - `delete`: which TIDs of an index page are dead to everybody
//! - `uses`: which indexes the planner may use for which scans

pub mod build;
pub mod delete;
pub mod fetch;
pub mod root_tids;
pub mod rows;
pub mod shim;
pub mod uses;
pub mod validate;
