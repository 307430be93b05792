//! Wrappers of server objects, one a file: errors, relations, buffers, locks on pages.
//!
//! All folders above (`storage`, `table_am`, `scan` and others) call the server through these names.
//! - errors: `error` raises them, `full_errors` and `subtransaction` let them pass or catch them,
//!   `backtraces` keeps messages short, `critical` makes them a PANIC
//! - calling the server: `heap_am` calls heap's callbacks, `unguarded` and `guarded_run` call without pgrx's
//!   guard, `fmgr` is for SQL functions, `hooks`, `utility_hook` and `nesting` for hooks
//! - what the server knows: `relation`, `buffer`, `heap_tuple`, `collation`, `encoding`, `tree`
//!   (expressions), `table_counts` (statistics), `identity` (users)
//! - what the server does for us: `server_locks`, `give_way`, `predicate_locks`, `catalogs`, `relation_file`,
//!   `wal`, `generic_wal`, `heap_rewrite`, `partition_pruning`, `replication_slots`, `server_statistics`,
//!   `timeouts`
//! - nodes, rows and memory: `custom_node`, `slots`, `row_sort`, `memory`, `shared_memory`
//! - without the server: `numbers`, `random`, `icu`, `worker` (threads); `test_stop` waits for tests
//!
//! Invariant: nothing here knows what a stripe is.

pub mod backtraces;
pub mod buffer;
pub mod catalogs;
pub mod collation;
pub mod counted_file;
pub mod critical;
pub mod custom_node;
pub mod encoding;
pub mod error;
pub mod fmgr;
pub mod full_errors;
pub mod generic_wal;
pub mod give_way;
pub mod guarded_run;
pub mod heap_am;
pub mod heap_rewrite;
pub mod heap_tuple;
pub mod hooks;
pub mod icu;
pub mod identity;
pub mod memory;
pub mod nesting;
pub mod numbers;
pub mod own_type;
pub mod partition_pruning;
pub mod predicate_locks;
pub mod random;
pub mod relation;
pub mod relation_file;
pub mod replication_slots;
pub mod row_sort;
pub mod server_locks;
pub mod server_statistics;
pub mod shared_memory;
pub mod slots;
pub mod subtransaction;
pub mod table_counts;
pub mod test_stop;
pub mod timeouts;
pub mod tree;
pub mod unguarded;
pub mod utility_hook;
pub mod wal;
pub mod worker;
