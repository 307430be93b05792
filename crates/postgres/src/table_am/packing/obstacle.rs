//! What tables are not packed beside their writers.
//!
//! Asked at the beginning of each batch. Logical decoding knows heap rows only: published tables stay hot, and where a slot's plugin does not ask for publications, all tables of the
//! database. A subscription's worker looks rows up by scans that are not of a snapshot, and could look for a row at its old place when it is gone and at the new one before it is there. A subscription
//! may come while a batch runs: so `refuse_if_subscribed` asks again when the new places can be found and the old ones still are. A slot cannot: it begins after the
//! transactions that were there before it.

use pgrx::pg_sys::Relation;

use super::entries;
use crate::compat;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::relation;
use crate::storage::open_stripes;

const LOCKED: &str = "engine.colcompress_merge() packs it under a lock that keeps others out.";

/// Why a table's rows cannot be packed now, and what helps; None when they can.
pub(super) unsafe fn of(rel: Relation) -> Option<(&'static str, &'static str)> {
    // SAFETY: rel is open and locked.
    unsafe {
        if open_stripes::is_published(rel) {
            return Some((
                "The table is published, and logical decoding reads ordinary heap rows only.",
                "Take the table out of its publications first.",
            ));
        }
        if relation::is_temporary(rel) {
            return None;
        }
        if compat::may_outlive_rows() {
            return Some((
                "The setting old_snapshot_threshold is on: what is moved could vanish for old snapshots that are to meet an ERROR.",
                LOCKED,
            ));
        }
        if compat::plugin_without_publications().is_some() {
            return Some((
                "The database has a replication slot whose output plugin does not go by publications: it would see packed rows deleted.",
                "Drop the slot, or let its consumer use the plugin pgoutput.",
            ));
        }
        if compat::is_subscribed((*rel).rd_id) {
            return Some((
                "A subscription writes to the table, and looks rows up in a way that could miss one that is being moved.",
                LOCKED,
            ));
        }
        entries::has_exclusion(rel).then_some((
            "It has an exclusion constraint: a check of it that runs meanwhile could miss a row.",
            LOCKED,
        ))
    }
}

/// Raises an ERROR if a subscription has come to write to the table since the batch began. Whoever looks a row up for it from now on finds the row's new place, too.
pub(super) unsafe fn refuse_if_subscribed(rel: Relation) {
    // SAFETY: rel is open.
    unsafe {
        if compat::is_subscribed((*rel).rd_id) {
            error::raise(
                PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
                format!("a subscription has begun to write to table {}", relation::quoted_name(rel)),
                "",
                "",
            );
        }
    }
}
