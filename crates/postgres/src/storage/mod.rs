//! Stripes on the pages of a relation, and the catalogs that say which stripes and which of their rows exist.
//!
//! Each folder asks only for those above it here; `make lint` checks it.
//!
//! | folder | owns |
//! | --- | --- |
//! | `file` | the pages of the relation's file: metapage, runs of stripe pages, TIDs of cold rows |
//! | `catalog` | reading and writing the side tables `engine.*`, whichever they are |
//! | `directory` | `engine.stripe`: which stripes exist, and for whom |
//! | `open_files` | files of others that are open |
//! | `column_file` | stripes of foreign tables, in files of their own |
//! | `parquet_file` | Parquet files that foreign tables read |
//! | `published`, `decoding` | which tables logical replication reads, so that their rows stay hot |
//! | `space` | where a new run is put; pages given back, file cut off |
//! | `change` | locks on and changes of cold rows: stripe lock, proxies, bulk deletions, moves |
//! | `read` | a stripe opened for reading, and what is kept of its chunks |
//! | `encoding` | a stripe that a worker encodes meanwhile |
//! | `pending_rows` | rows of a load that are not in the table yet |
//!
//! Invariant: the bytes of a run never change once its directory row is inserted.

pub mod catalog;
pub mod change;
pub mod column_file;
pub mod decoding;
pub mod directory;
pub mod encoding;
pub mod file;
pub mod open_files;
pub mod parquet_file;
pub mod pending_rows;
pub mod published;
pub mod read;
pub mod space;
