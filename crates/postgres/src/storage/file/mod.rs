//! The relation's file: which pages it has, and the bytes that both kinds of our pages begin with.
//!
//! - `page_header`: the first bytes of a metapage and of a stripe page
//! - `metapage`: block 0, with the storage id and the counter of row numbers
//! - `storage_id`: the SQL function that shows it
//! - `pages`: bytes into and out of runs of stripe pages
//! - `hot_runs`: the stretches of blocks between runs, where hot rows are
//! - `tid`: row number <-> TID of a cold row
//! - `visibility_bits`: a change of a page that takes its bits in the visibility map away
//! - `codecs`: block codecs as the server has them

pub mod codecs;
pub mod hot_runs;
pub mod metapage;
pub mod page_header;
pub mod pages;
pub mod storage_id;
pub mod tid;
pub mod visibility_bits;
