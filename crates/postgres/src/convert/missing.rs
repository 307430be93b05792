//! The value of a column in rows that were written before the column was added.
//!
//! Called by scans and fetches if a stripe has fewer columns than the table. The server keeps such a value in
//! the row type (`pg_attribute.attmissingval`). A column that was added without a default, or was dropped
//! since, is NULL.

use pgrx::pg_sys::{self, Datum};

use crate::compat;

/// Value and NULL flag of the zero-based column `index`. The Datum lives as long as `descriptor`.
pub unsafe fn missing_value(descriptor: pg_sys::TupleDesc, index: usize) -> (Datum, bool) {
    // SAFETY: the caller keeps the descriptor alive; the position is checked against its columns.
    unsafe {
        let Some(attribute) = compat::attributes(descriptor).get(index) else {
            return (Datum::null(), true);
        };
        if attribute.attisdropped || !attribute.atthasmissing {
            return (Datum::null(), true);
        }
        let mut is_null = true;
        let value = pg_sys::getmissingattr(descriptor, i32::from(attribute.attnum), &raw mut is_null);
        (value, is_null)
    }
}
