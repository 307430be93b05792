//! Settings of bulk loads.
//!
//! Called by `_PG_init`, and by all code that makes a set. Invariant: the units are those of the setting's
//! definition.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};

static STRIPE_THRESHOLD_ROWS: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static STRIPE_THRESHOLD_MEMORY: GucSetting<i32> = GucSetting::<i32>::new(8 * 1024);
static LOAD_MEMORY: GucSetting<i32> = GucSetting::<i32>::new(256 * 1024);

/// Defines the settings.
///
/// # Safety
/// Call it once, from `_PG_init`, before the prefix is reserved.
pub unsafe fn register_settings() {
    GucRegistry::define_int_guc(
        c"colonnade.stripe_threshold_rows",
        c"Fewest rows of one command that are written as stripes.",
        c"A command that inserts fewer leaves ordinary heap rows.",
        &STRIPE_THRESHOLD_ROWS,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"colonnade.stripe_threshold_memory",
        c"Rows of one command are written as stripes, however few, when their values take this much.",
        c"It does not apply to commands whose rows need their place at once, as those into tables with indexes.",
        &STRIPE_THRESHOLD_MEMORY,
        64,
        1024 * 1024,
        GucContext::Userset,
        GucFlags::UNIT_KB,
    );
    GucRegistry::define_int_guc(
        c"colonnade.load_memory",
        c"Most memory for values of all tables that a session is loading.",
        c"Beyond it the largest unfinished stripe is written out.",
        &LOAD_MEMORY,
        1024,
        i32::MAX / 1024,
        GucContext::Userset,
        GucFlags::UNIT_KB,
    );
}

fn bytes(kilobytes: i32) -> usize {
    usize::try_from(kilobytes).unwrap_or(0).saturating_mul(1024)
}

/// From this many rows on, a command writes stripes.
pub(super) fn threshold_rows() -> usize {
    usize::try_from(STRIPE_THRESHOLD_ROWS.get()).unwrap_or(0)
}

/// Whether this many rows or bytes are worth a stripe.
pub fn are_many(rows: usize, bytes: usize) -> bool {
    rows >= threshold_rows() || bytes >= threshold_bytes()
}

/// From this many bytes of values on, a command writes stripes with fewer rows, too.
pub(super) fn threshold_bytes() -> usize {
    bytes(STRIPE_THRESHOLD_MEMORY.get())
}

/// The most bytes that the values of all sets may take.
pub(super) fn load_memory_bytes() -> usize {
    bytes(LOAD_MEMORY.get())
}
