//! An order for tables without the option `orderby`: by the column that grows as rows arrive.
//!
//! `stripe::packing::arrival_order` chooses a sample of rows and says which column grows. This file reads the
//! sample. Invariant: a hint for the order of rows and for nothing else.

use pgrx::pg_sys::{self, Datum, ItemPointerData, Oid};
use stripe::packing::arrival_order::Ascents;
pub(super) use stripe::packing::arrival_order::{neighbours, spread};

use super::rows::Rows;
use crate::host::relation::Open;
use crate::options::SortKey;

/// The key to sort the rows of these `runs` by, or None if no column grows. Each run is in an order of its
/// own.
pub(super) fn key(rel: Open, source: &mut Rows, runs: &[&[ItemPointerData]]) -> Option<SortKey> {
    // SAFETY: the rows stay where they are.
    unsafe {
        let numbers = numbers(rel);
        if numbers.is_empty() {
            return None;
        }
        let mut ascents = Ascents::new(numbers.len());
        let slot = pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut());
        for run in runs {
            ascents.begin_run();
            for &place in *run {
                pgrx::check_for_interrupts!();
                source.fetch(place, slot);
                ascents.row(|column| {
                    let mut null = false;
                    let value = pg_sys::slot_getattr(slot, numbers[column].into(), &raw mut null);
                    (!null).then(|| number(value))
                });
            }
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        let attnum = *numbers.get(ascents.growing()?)?;
        Some(SortKey { attnum, descending: false, nulls_first: false })
    }
}

/// Numbers of the columns of whole numbers, days and times.
pub(super) fn numbers(rel: Open) -> Vec<i16> {
    const KINDS: [Oid; 6] = [
        pg_sys::INT2OID,
        pg_sys::INT4OID,
        pg_sys::INT8OID,
        pg_sys::DATEOID,
        pg_sys::TIMESTAMPOID,
        pg_sys::TIMESTAMPTZOID,
    ];
    let meant = |attribute: &&pg_sys::FormData_pg_attribute| {
        !attribute.attisdropped && KINDS.contains(&attribute.atttypid)
    };
    rel.columns().iter().filter(meant).map(|attribute| attribute.attnum).collect()
}

/// A value of one of these types. The server has widened narrower ones and kept their sign.
fn number(value: Datum) -> i64 {
    value.value() as i64
}
