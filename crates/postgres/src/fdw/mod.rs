//! The foreign data wrappers: `cstore_fdw` for foreign tables over column files, `parquet_fdw` for those that
//! read Parquet files.
//!
//! A foreign table over a column file is a table whose stripes lie in a file (`storage::column_file`). Its
//! rows are loaded as those of a columnar table are (`storage::pending_rows`), and read by the same scan
//! node: `planner` offers it. So this folder has only what the server asks of a wrapper.
//!
//! - `handler`: the callbacks; `modify`: INSERT and COPY, and the refusal of other changes
//! - `size`: how large a table is; `analyze`: its statistics, of rows that `sample` takes; `truncate`:
//!   TRUNCATE
//! - `statements`: ALTER of foreign tables; `functions`: what users call
//! - `parquet`: what the server asks of `parquet_fdw`; `described`: tables whose columns the files say;
//!   `imported`: the same of column files that are there already

mod analyze;
mod described;
mod functions;
mod handler;
mod imported;
mod modify;
mod parquet;
mod sample;
mod size;
mod statements;
mod truncate;

pub use handler::register;
pub use size::outline;
pub use statements::install;
