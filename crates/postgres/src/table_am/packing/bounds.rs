//! How far the rows of stripes reach in the order of `orderby`, by their statistics.
//!
//! `stripe::packing::sort_order` compares them, of columns whose statistics are in the order that the server
//! sorts by: numbers, days, times, booleans, uuids, and text that is compared by its bytes. Invariant: a hint
//! for what to sort; an answer may be "unknown" at any time.

use pgrx::pg_sys;
use stripe::packing::overlapping::{Reach, ranked};
use stripe::packing::sort_order::{SortColumn, SortOrder};
use vector::LogicalType;

use crate::convert::ColumnType;
use crate::host::collation::orders_bytewise;
use crate::host::error;
use crate::host::relation::Open;
use crate::options::SortKey;
use crate::storage::directory::StripeEntry;

/// The order of these keys, as far as statistics can know it.
pub(super) fn of(rel: Open, keys: &[SortKey]) -> SortOrder {
    let key = |key: &SortKey| {
        let column = usize::try_from(key.attnum).ok()?.checked_sub(1)?;
        let attribute = rel.columns().get(column)?;
        // SAFETY: a column of an open table.
        let ColumnType { logical, type_oid, .. } = unsafe { ColumnType::of(attribute) };
        let is_known = match logical {
            LogicalType::Text => {
                // SAFETY: in a transaction.
                type_oid != pg_sys::BPCHAROID && unsafe { orders_bytewise(attribute.attcollation) }
            }
            LogicalType::FixedBytes(_) | LogicalType::Bytes => false,
            _ => true,
        };
        let SortKey { descending, nulls_first, .. } = *key;
        Some(SortColumn { column, logical, descending, nulls_first, is_known })
    };
    SortOrder::new(keys.iter().map_while(key).collect())
}

/// What the rows of each stripe lie across, where that is known and more than a point, as numbers that are in
/// the order of the ends.
pub(super) fn ranges(order: &SortOrder, rel: Open, stripes: &[&StripeEntry]) -> Vec<Option<Reach>> {
    let reach = |entry: &&StripeEntry| match order.reach(&entry.summary) {
        Ok(found) => found,
        Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
    };
    let found: Vec<_> = stripes.iter().map(reach).collect();
    ranked(&found, |a, b| order.compare_ends(a, b))
}
