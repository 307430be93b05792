//! Which tables are not packed beside their writers, and why.
//!
//! Asked at the beginning of each batch. Logical decoding knows heap rows only. So published tables stay hot,
//! and all tables of the database do if there is a slot whose plugin does not ask for publications.
//!
//! Such a slot may come while a batch runs that has not written anything yet, and would decode the batch's
//! deletions. So `refuse_if_decoded` asks again once the mover has its transaction's id. A slot that comes
//! later begins after the mover (`storage::decoding`).

use crate::host::relation::Open;

use super::index_entries;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::heap_rewrite;
use crate::storage::{decoding, published};

const LOCKED: &str = "engine.colcompress_merge() packs it under a lock that keeps others out.";

/// Why a table's rows cannot be packed now, and what helps. None if they can.
pub(super) fn of(rel: Open) -> Option<(&'static str, &'static str)> {
    if published::is_published(rel) {
        return Some((
            "The table is published, and logical decoding reads ordinary heap rows only.",
            "Take the table out of its publications first.",
        ));
    }
    if rel.is_temporary() {
        return None;
    }
    of_taking_out(rel).or_else(|| {
        index_entries::has_exclusion(rel).then_some((
            "It has an exclusion constraint: a check of it that runs meanwhile could miss a row.",
            LOCKED,
        ))
    })
}

/// Why not even stripes without a living row can be taken out of a table, and what helps.
pub(super) fn of_taking_out(rel: Open) -> Option<(&'static str, &'static str)> {
    if rel.is_temporary() {
        return None;
    }
    if heap_rewrite::may_outlive_rows() {
        return Some((
            "The setting old_snapshot_threshold is on: \
             what is moved could vanish for old snapshots that are to meet an ERROR.",
            LOCKED,
        ));
    }
    decoding::slot(rel).map(|_| (
            "The database has a replication slot whose output plugin does not go by publications: it would see packed rows deleted.",
            "Drop the slot, or let its consumer use the plugin pgoutput.",
        ))
}

/// Raises an ERROR if a slot that decodes the table has come since the batch began. Gives the transaction an
/// id.
pub(super) fn refuse_if_decoded(rel: Open) {
    if let Some(slot) = decoding::is_decoded(rel) {
        error::raise(
            PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
            format!("replication slot \"{}\" has begun to decode table {}", slot.name, rel.quoted_name()),
            "",
            "",
        );
    }
}
