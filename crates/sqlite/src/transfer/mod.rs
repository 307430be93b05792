//! Tables from files and files from queries: `columnar_import` and `columnar_export`.
//!
//! - `options`: what stands behind the file's name
//! - `progress`: tells how far it is
//! - `values`: values of files as SQLite's
//! - `source`: rows of a file, in either format
//! - `import`: a table from a file
//! - `place`: where a file is written
//! - `target`: a file, in either format; `groups`: the row groups of Parquet
//! - `export`: a file from a query
//!
//! Rows are inserted by SQLite, so affinities, constraints, triggers and rights are its own. A columnar table
//! takes rows at once, where nothing of these has to be looked at. An import is one savepoint.

mod export;
mod groups;
mod import;
mod options;
mod place;
mod progress;
mod source;
mod target;
mod values;

pub use export::export;
pub use import::import;
