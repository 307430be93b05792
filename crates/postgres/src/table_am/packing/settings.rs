//! The settings of packing.
//!
//! Invariant: the units are those of the setting's definition.

use std::time::Duration;

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};

static PACKING: GucSetting<bool> = GucSetting::<bool>::new(true);
static MOVES: GucSetting<bool> = GucSetting::<bool>::new(true);
static REBUILDS: GucSetting<bool> = GucSetting::<bool>::new(true);
static NAPTIME: GucSetting<i32> = GucSetting::<i32>::new(30);
static STRIPES: GucSetting<i32> = GucSetting::<i32>::new(4);
static COST_DELAY: GucSetting<i32> = GucSetting::<i32>::new(20);
static LOG_MIN_DURATION: GucSetting<i32> = GucSetting::<i32>::new(600_000);
static STOP_AT: GucSetting<i32> = GucSetting::<i32>::new(0);

/// Defines the settings.
///
/// # Safety
/// Call it once, from `_PG_init`, before the prefix is reserved.
pub unsafe fn register_settings() {
    GucRegistry::define_bool_guc(
        c"colonnade.packing",
        c"Turns heap rows of columnar tables into stripes in the background.",
        c"Off in a database (ALTER DATABASE ... SET), it leaves that one alone.",
        &PACKING,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"colonnade.packing_moves_stripes",
        c"Moves stripes from the end of a table's file to empty pages.",
        c"The file gets shorter by that; off, rows and further stripes come to fill the pages.",
        &MOVES,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"colonnade.packing_rebuilds_indexes",
        c"Builds btrees anew that packing has left half empty, in tables that nobody writes to.",
        c"As REINDEX INDEX CONCURRENTLY does; off, storage_health says where that would help.",
        &REBUILDS,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"colonnade.packing_naptime",
        c"Time between two rounds of packing over all databases.",
        c"",
        &NAPTIME,
        1,
        86_400,
        GucContext::Sighup,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"colonnade.packing_stripes",
        c"Fewest small stripes of about one size that packing in the background joins, or that overlap and are sorted.",
        c"Stripes with many dead rows are rewritten whatever their number.",
        &STRIPES,
        2,
        64,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"colonnade.packing_cost_delay",
        c"Pause of packing in the background after each stripe.",
        c"",
        &COST_DELAY,
        0,
        10_000,
        GucContext::Suset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"colonnade.log_packing_min_duration",
        c"Least time of a round of packing one table, in the background or by CALL, that is told of in the log.",
        c"0: each that has done something, -1: none.",
        &LOG_MIN_DURATION,
        -1,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"colonnade.packing_stop_at",
        c"Step after which a packing transaction waits for a shared advisory lock on 55435, for tests.",
        c"1: rows are chosen, 2: the stripe is written, 3: the heap rows are deleted; 0: it does not wait.",
        &STOP_AT,
        0,
        3,
        GucContext::Suset,
        GucFlags::NO_SHOW_ALL | GucFlags::SUPERUSER_ONLY,
    );
}

/// Whether to pack in the background.
pub(super) fn is_on() -> bool {
    PACKING.get()
}

/// Whether to move stripes.
pub(super) fn moves_stripes() -> bool {
    MOVES.get()
}

/// Whether to build half empty btrees anew.
pub(super) fn rebuilds_indexes() -> bool {
    REBUILDS.get()
}

/// Milliseconds between two rounds.
pub(super) fn naptime() -> i64 {
    i64::from(NAPTIME.get()) * 1000
}

/// How many small stripes of one size there have to be for the background to join them.
pub(super) fn stripes() -> usize {
    usize::try_from(STRIPES.get()).unwrap_or(2)
}

/// Milliseconds to pause after a stripe.
pub fn cost_delay() -> i64 {
    i64::from(COST_DELAY.get())
}

/// The least time of a round that has a line in the log. None: no round has one.
pub(super) fn log_min_duration() -> Option<Duration> {
    u64::try_from(LOG_MIN_DURATION.get()).ok().map(Duration::from_millis)
}

/// Number of the step to stop after.
pub(super) fn stop_at() -> i32 {
    STOP_AT.get()
}
