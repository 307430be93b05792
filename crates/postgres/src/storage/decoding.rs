//! Replication slots that decode every table of the database, whether it is published or not: those whose
//! output plugin is not pgoutput.
//!
//! Logical decoding reads heap tuples. So while such a slot exists, rows that are not in a stripe yet stay in
//! heap pages. Loads (`pending_rows::destination`), merging and packing (`table_am`) ask [`is_decoded`]
//! before they make a stripe of such rows. Rows that were in stripes before are reported by WARNINGs.
//!
//! Invariant: no such slot decodes a transaction that was told "no". Its id was there before it looked. A
//! slot that is made later waits for older transactions to end, and begins with transactions whose ids are
//! younger. The exception is a slot that is copied from one of pgoutput's: it begins where that one is
//! (docs/limitations).

use std::cell::Cell;

use pgrx::pg_sys;

use crate::compat;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::relation::Open;
use crate::host::replication_slots;
use crate::host::replication_slots::DecodingSlot;

thread_local! {
    /// The transaction that has looked for slots before it changed a row of a stripe.
    static LOOKED: Cell<u32> = const { Cell::new(0) };
    /// Whether the session was told that changes of rows of stripes are not decoded.
    static TOLD: Cell<bool> = const { Cell::new(false) };
}

fn is_logged_for_decoding() -> bool {
    // SAFETY: a setting that does not change while the server runs.
    unsafe { pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL as i32 }
}

/// Whether changes of a table can be decoded. Nobody decodes temporary and unlogged tables.
pub fn is_logged(rel: Open) -> bool {
    is_logged_for_decoding() && rel.persistence() == pg_sys::RELPERSISTENCE_PERMANENT
}

/// A slot that decodes what this transaction writes to the table. The transaction gets an id.
pub fn is_decoded(rel: Open) -> Option<DecodingSlot> {
    // SAFETY: in a transaction that is about to write.
    unsafe {
        if !is_logged(rel) {
            return None;
        }
        // The id has to be there before the look: see the invariant.
        pg_sys::GetTopTransactionId();
        slot(rel)
    }
}

/// A slot that decodes the table now. Another one may come at any time.
pub fn slot(rel: Open) -> Option<DecodingSlot> {
    if is_logged(rel) { replication_slots::decoding_slots(1).pop() } else { None }
}

/// Tells a session once that a change of a row in a stripe is decoded as something else. It is called for
/// each such row, so it looks for slots only once a transaction.
#[inline]
pub fn tell_of_change(rel: Open) {
    if is_logged_for_decoding() && !TOLD.get() {
        let transaction = compat::local_transaction();
        if LOOKED.replace(transaction) != transaction {
            look(rel);
        }
    }
}

#[cold]
fn look(rel: Open) {
    let Some(slot) = slot(rel) else { return };
    TOLD.set(true);
    error::warn(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!(
            "replication slot \"{}\" does not see rows of table {} as they are",
            slot.name,
            rel.quoted_name()
        ),
        "The rows are in stripes, which logical decoding does not read: \
         it shows their updates as insertions, and their deletions not at all.",
        UNPACK,
    );
}

/// The hint that says what helps.
const UNPACK: &str = "engine.unpack(table) turns rows of stripes into heap rows; while the slot exists no others come to stripes.";

/// What `engine.storage_health` advises about slots for a table with `cold_rows` rows in stripes.
/// `has_many_hot`: it has heap rows that would be worth packing.
pub fn advice(rel: Open, cold_rows: u64, has_many_hot: bool) -> Option<String> {
    let slot = slot(rel)?;
    if cold_rows > 0 {
        return Some(format!(
            "replication slot {} (plugin {}) does not see the {cold_rows} rows in stripes: engine.unpack() would turn them into heap rows",
            slot.name, slot.plugin
        ));
    }
    has_many_hot
        .then(|| format!("replication slot {} (plugin {}) keeps rows out of stripes", slot.name, slot.plugin))
}

/// Tells the session that has made a slot, or the server's log, that these tables have rows in stripes.
pub fn tell_of_slot(slot: &DecodingSlot, tables: &[String], in_log: bool) {
    let Some((first, others)) = tables.split_first() else { return };
    let others = match others.len() {
        0 => String::new(),
        1 => " and of another one".to_string(),
        count => format!(" and of {count} others"),
    };
    let message = format!("replication slot \"{}\" does not see rows of table {first}{others}", slot.name);
    if in_log {
        pgrx::log!(
            "{message} in stripes: updates of them are decoded as insertions, and deletions not at all"
        );
        return;
    }
    error::warn(
        PgSqlErrorCode::ERRCODE_WARNING,
        message,
        "They are in stripes, which logical decoding does not read: it shows their updates as insertions, and their deletions not at all.",
        UNPACK,
    );
}
