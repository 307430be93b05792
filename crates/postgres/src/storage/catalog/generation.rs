//! Counts how often what the side tables say of a storage id was changed, so that a backend may keep what it
//! has read there.
//!
//! A reader takes the generation, reads, and keeps both. As long as the generation is the same, what it has
//! kept still holds for it (protocol point 10). `directory::places` keeps stripes this way, and
//! `row_proxy::suspects` keeps which rows may be dead. A look-up of a single row then opens no catalog.
//!
//! Invariants:
//! - A writer counts *after* it has written, and before anything else that relies on others' seeing it. So a
//!   snapshot that sees the writer's transaction was taken after the count.
//! - A reader takes the generation *before* it reads. So it never keeps something older than the generation.
//! - A standby replays changes without code of ours, and counts nothing. So nothing is kept there.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::host::guarded_run::TransactionStartedDuringRecovery;
use crate::host::shared_memory::Shared;

/// Storage ids share the counters. If two have the same one, each forgets more often than it has to.
const COUNTERS: usize = 1 << 12;

struct Counters([AtomicU64; COUNTERS]);

static SHARED: Shared<Counters> = Shared::new(c"colonnade generations");

/// Asks for the shared memory.
///
/// # Safety
/// Call it once, from `_PG_init`, while libraries are preloaded.
pub unsafe fn install() {
    // SAFETY: the caller's promise; all bytes zero are counters.
    unsafe { SHARED.register() }
}

thread_local! {
    /// How often a side table itself was changed, as far as this backend knows.
    static EPOCH: Cell<u64> = const { Cell::new(0) };
}

/// How often what is said of a storage id was changed, and the epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Generation(u64, u64);

fn counter(storage_id: u64) -> Option<&'static AtomicU64> {
    // Storage ids are random numbers, so their low bits spread over the counters.
    SHARED.get()?.0.get(storage_id as usize % COUNTERS)
}

/// The present generation. None if nothing may be kept.
pub fn of(storage_id: u64) -> Option<Generation> {
    // SAFETY: a plain flag of the transaction's state.
    if unsafe { TransactionStartedDuringRecovery() } {
        return None;
    }
    // A serializable reader has left its predicate lock before it asks here. A writer looks for such locks
    // after it has counted. One of the two must see the other, so this load must not come before that lock.
    fence(Ordering::SeqCst);
    counter(storage_id).map(|counter| Generation(counter.load(Ordering::SeqCst), EPOCH.get()))
}

/// Begins a new generation of all storage ids for this backend, because a side table was truncated, renamed
/// or the like, or this was rolled back. May be called while anything is read.
pub(super) fn begin_anew() {
    EPOCH.set(EPOCH.get() + 1);
}

/// Counts a change that was just made.
pub fn changed(storage_id: u64) {
    if let Some(counter) = counter(storage_id) {
        counter.fetch_add(1, Ordering::SeqCst);
    }
}
