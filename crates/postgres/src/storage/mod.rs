//! Stripes on the pages of a relation, and the directory that says which of them exist.
//!
//! `metapage` owns block 0, `pages` the runs of stripe pages, `page_header` the bytes both begin with,
//! `directory` the catalog table `engine.stripe`, `row_proxy` the catalog table `engine.row_proxy`, which
//! carries locks on and changes of cold rows, `delete_bitmap` the catalog table `engine.delete_bitmap`, which
//! says what commands have deleted or updated in bulk, `row_move` the catalog table `engine.row_move`, which
//! says where packed rows went, `stripe_lock` what keeps stripes in place meanwhile, `gone_rows` removes what
//! is not needed any more, `decoding` knows the replication slots that see heap rows only. Invariant: bytes
//! of a run never change once its directory row is inserted.

pub mod codecs;
pub mod decoding;
pub mod delete_bitmap;
pub mod directory;
pub mod directory_age;
mod directory_cursor;
mod directory_places;
pub mod directory_prune;
pub mod directory_scan;
pub mod free;
pub mod gone_rows;
pub mod horizon;
pub mod hot_runs;
pub mod kept_chunk;
pub mod metapage;
pub mod multixact;
pub mod open_stripe;
pub mod open_stripes;
pub mod outline;
pub mod page_header;
pub mod pages;
mod pglz;
pub mod published;
pub mod restore_bits;
pub mod row_move;
pub mod row_numbers;
pub mod row_proxy;
pub mod runs;
mod side_indexes;
mod side_table;
mod side_table_heap;
pub mod sort_marks;
pub mod spare;
mod storage_id;
pub mod stripe_lock;
pub mod tid;
pub mod truncate;
pub mod visibility_bits;
