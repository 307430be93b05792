//! The settings of refreshing.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};

static REFRESH: GucSetting<bool> = GucSetting::<bool>::new(true);
static LOOSE_LIMIT: GucSetting<f64> = GucSetting::<f64>::new(0.1);

/// Defines the settings.
pub fn register() {
    GucRegistry::define_bool_guc(
        c"colonnade.columnstore_refresh",
        c"Copies blocks of tables into their columnstore indexes in the background and after VACUUM.",
        c"The option refresh of an index turns it off for that one.",
        &REFRESH,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_float_guc(
        c"colonnade.columnstore_loose_limit",
        c"Share of a table's blocks without a copy from which on the background vacuums the table, if dead rows are the cause.",
        c"1: it never does.",
        &LOOSE_LIMIT,
        0.0,
        1.0,
        GucContext::Suset,
        GucFlags::default(),
    );
}

/// Whether indexes are refreshed without being asked to.
pub fn is_on() -> bool {
    REFRESH.get()
}

/// The share of blocks, 0 to 1, that may be without a copy because of dead rows.
pub fn loose_limit() -> f64 {
    LOOSE_LIMIT.get()
}
