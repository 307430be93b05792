//! Tables from files and files from queries: `columnar_import` and `columnar_export`.
//!
//! - `options`: what stands behind the file's name
//! - `progress`: tells how far it is
//! - `values`: values of files as SQLite's
//! - `source`: rows of a file, in either format
//! - `import`: a table from a file
//! - `target`: a file, in either format
//! - `export`: a file from a query
//!
//! Both go row by row through SQLite, so affinities, constraints, triggers and rights are SQLite's own. An
//! import is one savepoint. An export is written beside its place and takes it when it is whole.

mod export;
mod import;
mod options;
mod progress;
mod source;
mod target;
mod values;

pub use export::export;
pub use import::import;
