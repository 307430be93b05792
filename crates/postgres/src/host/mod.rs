//! Server objects, wrapped one per file: errors, relations, buffers, locks on pages.
//!
//! Everything above (`storage`, `table_am`, `scan`) speaks to the server through these names. Invariant:
//! nothing here knows what a stripe is.

pub mod backtraces;
pub mod buffer;
pub mod carried;
pub mod collation;
pub mod critical;
pub mod custom_node;
pub mod error;
pub mod fmgr;
pub mod heap_am;
pub mod heap_tuple;
pub mod hooks;
pub mod icu;
pub mod identity;
pub mod memory;
pub mod nesting;
pub mod numbers;
pub mod random;
pub mod raw;
pub mod relation;
pub mod shared_memory;
pub mod short_calls;
pub mod slots;
pub mod subtransaction;
pub mod table_counts;
pub mod tree;
pub mod worker;
