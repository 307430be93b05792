//! The access method `colcompress`: a heap with stripes. Each file owns one verb.
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
//! | `utility_hook` | what is done before and after utility statements |
//! | `hooks` | the server's other hooks that the access method needs |
//! | `routine` | the table of callbacks that the server calls |
//!
//! Invariant: callbacks that hand hot rows through do nothing on that path that could need unwinding. They
//! leave everything else to guarded functions.

pub mod change;
mod health;
pub mod hooks;
pub mod index;
pub mod maintain;
pub mod packing;
pub mod read;
mod rewrite;
pub mod routine;
pub mod statements;
mod utility_hook;

pub use routine::routine;
