//! Work of other rooms that the processes of packing do as well, once the tables of a database are packed.

use std::sync::OnceLock;

/// Such work.
#[derive(Clone, Copy)]
pub struct Further {
    /// Whether there may be something to do, by the settings.
    pub is_on: fn() -> bool,
    /// Does it in the worker's database: each step is an `attempt`. Returns whether there was something to
    /// do.
    ///
    /// # Safety
    /// In a worker, outside of transactions.
    pub round: unsafe fn() -> bool,
}

static FURTHER: OnceLock<Further> = OnceLock::new();

/// Adds it. Call it once, while the library is loaded.
pub fn register(further: Further) {
    let _ = FURTHER.set(further);
}

/// What was added, if it is on.
pub(super) fn get() -> Option<Further> {
    FURTHER.get().copied().filter(|further| (further.is_on)())
}
