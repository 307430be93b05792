//! INSERT, UPDATE, DELETE and row locks.
//!
//! - `insert`: rows go to the heap, or to the rows in memory that become stripes
//! - `modify`: sends hot rows to heap and cold ones to the files below
//! - `cold_change`: deletes, updates and locks one cold row, by its proxy
//! - `cold_chain`: from a tombstone to the row's next version, as heap follows a chain
//! - `successor_locks`: locks that an updated cold row passes on to its next version
//! - `bulk_change`: deletes and updates many rows of one stripe by bits
//! - `request`: what the server asks for when it has a row changed or locked
//!
//! A change of a cold row waits for another transaction in these places only:
//!
//! 1. for a mover or a bulk change that excludes others from the stripe: `storage::change::stripe_lock`;
//! 2. for the holder of the row's lock: `heap_lock_tuple` on its proxy, in `storage::change::row_proxy`;
//! 3. for the end of a bulk change that has deleted the row: `bulk_change::settle`;
//! 4. for the end of a mover that has just moved the row: `read::moved`;
//! 5. for a lock on a newer version of the row: `cold_chain` and `successor_locks`.

pub mod bulk_change;
pub mod cold_chain;
pub mod cold_change;
pub mod insert;
pub mod modify;
pub mod request;
pub mod successor_locks;
