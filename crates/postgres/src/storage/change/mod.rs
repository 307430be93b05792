//! Locks on and changes of cold rows (protocol points 2, 3 and 4 of `docs/internals/concurrency.md`).
//!
//! - `stripe_lock`: keeps a stripe where it is, or excludes everybody else from it
//! - `row_proxy`: `engine.row_proxy`, the heap tuple that stands for a cold row and carries its locks
//! - `delete_bitmap`: `engine.delete_bitmap`, the rows that a command has deleted or updated in bulk
//! - `row_move`: `engine.row_move`, where moved rows are now
//! - `gone_rows`: removes what is noted of rows whose stripe is gone
//! - `multixact`: who has locked or updated a tuple, by its xmax and bits

pub mod delete_bitmap;
pub mod gone_rows;
pub mod multixact;
pub mod row_move;
pub mod row_proxy;
pub mod stripe_lock;
