//! Stripes on the pages of a relation, and the directory that says which of them exist.
//!
//! `metapage` owns block 0, `pages` the runs of stripe pages, `page_header` the bytes both begin with, `directory`
//! the catalog table `engine.stripe`. Invariant: bytes of a run never change once its directory row is inserted.

pub mod codecs;
pub mod directory;
pub mod directory_age;
mod directory_cursor;
pub mod directory_scan;
pub mod free;
pub mod metapage;
pub mod open_stripe;
pub mod open_stripes;
pub mod outline;
pub mod page_header;
pub mod pages;
mod pglz;
pub mod visibility_bits;
