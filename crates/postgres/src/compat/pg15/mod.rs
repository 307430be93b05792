//! PostgreSQL 15. A file owns one part of the server that differs between versions.

mod catalogs;
mod files;
mod locks;
mod pruning;
mod rewrite;
mod serializable;
mod slots;
mod statistics;
mod timeouts;
mod wal;

pub use catalogs::*;
pub use files::*;
pub use locks::*;
pub use pruning::*;
pub use rewrite::*;
pub use serializable::*;
pub use slots::*;
pub use statistics::*;
pub use timeouts::*;
pub use wal::*;
