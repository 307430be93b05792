//! What the rows of `engine.stripe` say.
//!
//! Called by `entries` for the present row of a cursor of `side_table`. Invariant: a value out of range is an
//! error, and is never cut off.

use std::ffi::c_void;

use pgrx::pg_sys::{self, Datum, Snapshot};

use super::{MOVED, RESERVED, StripeEntry};
use crate::host::error;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::storage::catalog::side_table::{Compare, Cursor, SideTable};
use crate::storage::file::pages::BlockRun;

/// The numbers of the catalog's columns. All columns before the state are numbers.
pub(super) mod column {
    pub const STORAGE_ID: usize = 0;
    pub const FIRST_ROW: usize = 1;
    pub const ROW_COUNT: usize = 2;
    pub const FIRST_BLOCK: usize = 3;
    pub const BLOCK_COUNT: usize = 4;
    pub const BYTE_LENGTH: usize = 5;
    pub const FOOTER_OFFSET: usize = 6;
    pub const FOOTER_LENGTH: usize = 7;
    pub const STATE: usize = 8;
    pub const SUMMARY: usize = 9;
}

impl Cursor<'_> {
    /// Tells a serializable transaction that a scan of `rel` did not see what this row's inserter wrote.
    pub unsafe fn report_missed(&self, rel: Open, snapshot: Snapshot) {
        // SAFETY: server calls about a plain xid.
        unsafe {
            let writer = self.inserter();
            if writer != pg_sys::InvalidTransactionId
                && !pg_sys::TransactionIdIsCurrentTransactionId(writer)
                && !pg_sys::TransactionIdDidAbort(writer)
            {
                predicate_locks::serializable_missed(rel, writer, snapshot);
            }
        }
    }

    /// The cursor's row as an entry.
    pub(super) unsafe fn entry(&self, with_summary: bool) -> StripeEntry {
        // SAFETY: none of the catalog's columns is null; the state is the byte behind its numbers.
        unsafe {
            let wide = |at: usize| -> u64 {
                match i64::try_from(self.number(at + 1)) {
                    Ok(value) => value.cast_unsigned(),
                    Err(_) => error::internal("engine.stripe holds a value out of range"),
                }
            };
            let narrow = |at: usize| -> u32 {
                u32::try_from(wide(at))
                    .unwrap_or_else(|_| error::internal("engine.stripe holds a value out of range"))
            };
            let summary = if with_summary { bytes_of(self.value(column::SUMMARY + 1)) } else { Vec::new() };
            StripeEntry {
                storage_id: wide(column::STORAGE_ID),
                first_row: wide(column::FIRST_ROW),
                row_count: narrow(column::ROW_COUNT),
                run: BlockRun {
                    first_block: narrow(column::FIRST_BLOCK),
                    block_count: narrow(column::BLOCK_COUNT),
                },
                byte_length: wide(column::BYTE_LENGTH),
                footer_offset: wide(column::FOOTER_OFFSET),
                footer_length: narrow(column::FOOTER_LENGTH),
                summary,
                reserved_only: self.byte_after(column::STATE) == RESERVED,
                moved: self.byte_after(column::STATE) == MOVED,
                inserter: self.inserter(),
                replaced_by: self.deleter().unwrap_or(pg_sys::InvalidTransactionId),
            }
        }
    }
}

/// The bytes of a bytea. They come from the TOAST table if they do not fit the row.
unsafe fn bytes_of(value: Datum) -> Vec<u8> {
    // SAFETY: value points at a varlena inside a pinned page; what detoasting allocates is freed again.
    unsafe {
        let raw = value.cast_mut_ptr::<pg_sys::varlena>();
        if raw.is_null() {
            return Vec::new();
        }
        let flat = pg_sys::pg_detoast_datum_packed(raw);
        let out = pgrx::varlena::varlena_to_byte_slice(flat).to_vec();
        if !std::ptr::eq(flat, raw) {
            pg_sys::pfree(flat.cast::<c_void>());
        }
        out
    }
}

/// Walks the rows of one storage id in the order of their keys. With `from` it walks backwards, from the last
/// row whose first row number is at most `from`. `step` returns whether to go on.
pub(super) fn walk(storage_id: u64, from: Option<u64>, step: impl FnMut(&Cursor) -> bool) {
    let key = from.map(|row| (Compare::AtMost, row));
    SideTable::Stripe.walk(storage_id, key, from.is_some(), step)
}
