//! Btrees that have many more pages than their entries need.
//!
//! Asked by `advice`. A row that is packed gets an index entry at its new place while its old one is still
//! there. So does each row of stripes that are joined. Pages that were split for these stay half empty when
//! VACUUM has taken the old entries away, because a btree never joins pages.
//!
//! The pages that are needed are estimated from the planner's statistics: the number of entries and the
//! average width of the columns.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::compat;
use crate::host::relation::Open;

/// A smaller index is not worth advice: 4 MB.
const FEWEST: u32 = 512;
/// An index is bloated if it has this many times the blocks that it needs. Right after a build it has 1 time
/// as many, after insertions in random order some 1.4, and after a change of all its rows some 2. It is so on
/// a heap table, too. Later entries then go into free and half empty pages.
const MANY: f64 = 2.5;
/// An index is huge if it has this many times the blocks that it needs, and this many blocks would come free.
/// Then many entries and pages are read for nothing.
const HUGE: f64 = 4.0;
const HUGE_FREE: f64 = 8192.0;
/// Bytes of a leaf page that entries fill when the index is built: the page without header and special space,
/// up to the default fillfactor.
const FILLED: f64 = (8192 - 24 - 16) as f64 * 0.9;
/// Header and line pointer of an entry.
const HEADER: usize = 8;
const POINTER: usize = 4;

/// A btree that is too large.
pub(super) struct Bloat {
    /// The index's name as SQL writes it, with its schema.
    pub index: String,
    pub blocks: u32,
    /// About how many blocks it would have if it were built anew.
    pub needed: u32,
    /// Whether it is so large that it should be built anew.
    pub is_huge: bool,
}

/// The table's btrees that would be much smaller if they were built anew.
pub(super) fn of(rel: Open) -> Vec<Bloat> {
    // SAFETY: rel is open; its indexes are closed here, or by the server's abort.
    unsafe {
        let mut found = Vec::new();
        for index in rel.open_indexes(pg_sys::AccessShareLock) {
            found.extend(of_index(index));
            pg_sys::index_close(index.as_ptr(), pg_sys::AccessShareLock as i32);
        }
        found
    }
}

fn of_index(index: Open) -> Option<Bloat> {
    // SAFETY: the index is open.
    unsafe {
        let class = &*index.form();
        let is_known = class.reltuples >= 0.0 && (*(*index.as_ptr()).rd_index).indisvalid;
        if class.relam != pg_sys::BTREE_AM_OID || !is_known {
            return None;
        }
        let blocks = index.block_count();
        let entries = f64::from(class.reltuples);
        let needed = (entries * entry_bytes(index) as f64 / FILLED).ceil() + 1.0;
        let has = f64::from(blocks);
        (blocks >= FEWEST && has >= MANY * needed).then(|| Bloat {
            index: identifier(index),
            blocks,
            needed: needed as u32,
            is_huge: has >= HUGE * needed && has - needed >= HUGE_FREE,
        })
    }
}

/// The index's name for a statement.
fn identifier(index: Open) -> String {
    // SAFETY: the schema of an open index is there; the server returns terminated strings.
    unsafe {
        let class = &*index.form();
        let schema = pg_sys::get_namespace_name(class.relnamespace);
        let name = pg_sys::quote_qualified_identifier(schema, class.relname.data.as_ptr());
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

/// Average bytes of an entry.
fn entry_bytes(index: Open) -> usize {
    // SAFETY: the vector has as many entries as it has columns.
    unsafe {
        let form = &*(*index.as_ptr()).rd_index;
        let keys = form.indkey.values.as_slice(usize::try_from(form.indnatts).unwrap_or(0));
        let desc = index.descriptor();
        let width = |(at, &key): (usize, &i16)| {
            let column = &compat::attributes(desc)[at];
            // The number of an expression leads to no statistics.
            let known = if key > 0 { pg_sys::get_attavgwidth(form.indrelid, key) } else { 0 };
            let width =
                if known > 0 { known } else { pg_sys::get_typavgwidth(column.atttypid, column.atttypmod) };
            usize::try_from(width).unwrap_or(0)
        };
        let columns: usize = keys.iter().enumerate().map(width).sum();
        HEADER + columns.next_multiple_of(8) + POINTER
    }
}
