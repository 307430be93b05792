//! The rows of a batch in the order of the table's option `orderby`, or of a column that `arrival_order` has
//! found.
//!
//! Called by `relocate` and `join`. The server's tuplesort sorts the keys with the rows' TIDs. So only the
//! keys are kept, within maintenance_work_mem.

use std::ffi::c_int;

use pgrx::pg_sys::{self, Datum, ItemPointerData};

use super::rows::Rows;
use crate::host::error;
use crate::host::relation::Open;
use crate::host::row_sort;
use crate::options::{SortKey, orderby};

/// The same rows, sorted by `keys`. Without keys they stay in the order given.
pub(super) fn sorted(
    rel: Open,
    source: &mut Rows,
    keys: &[SortKey],
    rows: Vec<ItemPointerData>,
) -> Vec<ItemPointerData> {
    if keys.is_empty() {
        return rows;
    }
    // SAFETY: the rows stay where they are (`rows`). What an ERROR leaves behind goes with the transaction.
    unsafe {
        let count = keys.len();
        let (sort, desc) = begin(rel, keys);
        let whole = pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut());
        let row = pg_sys::MakeSingleTupleTableSlot(desc, &raw const pg_sys::TTSOpsVirtual);
        for mut at in rows.iter().copied() {
            pgrx::check_for_interrupts!();
            source.fetch(at, whole);
            for (to, key) in keys.iter().enumerate() {
                let mut null = false;
                *(*row).tts_values.add(to) = pg_sys::slot_getattr(whole, key.attnum.into(), &raw mut null);
                *(*row).tts_isnull.add(to) = null;
            }
            *(*row).tts_values.add(count) = Datum::from((&raw mut at) as usize);
            *(*row).tts_isnull.add(count) = false;
            pg_sys::ExecStoreVirtualTuple(row);
            pg_sys::tuplesort_puttupleslot(sort, row);
            pg_sys::ExecClearTuple(row);
        }
        pg_sys::tuplesort_performsort(sort);
        let result = pg_sys::MakeSingleTupleTableSlot(desc, &raw const pg_sys::TTSOpsMinimalTuple);
        let mut sorted = Vec::with_capacity(rows.len());
        while pg_sys::tuplesort_gettupleslot(sort, true, false, result, std::ptr::null_mut()) {
            let mut null = false;
            let value = pg_sys::slot_getattr(result, count as c_int + 1, &raw mut null);
            sorted.push(*value.cast_mut_ptr::<ItemPointerData>());
        }
        for slot in [whole, row, result] {
            pg_sys::ExecDropSingleTupleTableSlot(slot);
        }
        pg_sys::tuplesort_end(sort);
        sorted
    }
}

/// A sort of rows that have the keys as columns, and their TIDs as the last one.
fn begin(rel: Open, keys: &[SortKey]) -> (*mut pg_sys::Tuplesortstate, pg_sys::TupleDesc) {
    let count = keys.len();
    let mut sort_keys = Vec::with_capacity(count);
    // SAFETY: the row type has room for all columns.
    unsafe {
        let desc = pg_sys::CreateTemplateTupleDesc(count as i32 + 1);
        for (number, key) in (1..).zip(keys) {
            let column = usize::try_from(key.attnum - 1).ok().and_then(|at| rel.columns().get(at));
            let Some(attribute) = column else { error::internal("a sort key is no column") };
            let (kind, modifier) = (attribute.atttypid, attribute.atttypmod);
            pg_sys::TupleDescInitEntry(desc, number, std::ptr::null(), kind, modifier, 0);
            pg_sys::TupleDescInitEntryCollation(desc, number, attribute.attcollation);
            sort_keys.push(row_sort::Key {
                number,
                operator: orderby::sort_operator(kind, key),
                collation: attribute.attcollation,
                nulls_first: key.nulls_first,
            });
        }
        let place = count as i16 + 1;
        pg_sys::TupleDescInitEntry(desc, place, std::ptr::null(), pg_sys::TIDOID, -1, 0);
        (row_sort::begin(desc, &sort_keys), desc)
    }
}
