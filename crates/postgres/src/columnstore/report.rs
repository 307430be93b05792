//! What the view `engine.columnstore_indexes` shows of an index.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};

use super::layout::{self, REGION_BLOCKS};
use super::{access_method, cover, regions};
use crate::host::fmgr;
use crate::host::relation::{Open, with_index};

crate::sql_function!(pg_finfo_colonnade_columnstore_figures);

/// `engine.columnstore_figures(regclass)`: a row of figures. None if the index, or its table, cannot be read
/// here.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_columnstore_figures(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the result's row type is that of the SQL declaration.
    unsafe {
        pg_sys::InitMaterializedSRF(call, 0);
        let Some(index) = fmgr::argument(call, 0).map(|value| Oid::from(value.value() as u32)) else {
            return Datum::null();
        };
        let lock = pg_sys::AccessShareLock as i32;
        // The index or its table may vanish while the view is read.
        let table = pg_sys::IndexGetRelation(index, true);
        if table == Oid::INVALID || access_method::method_of(index) != access_method::oid() {
            return Datum::null();
        }
        let heap = pg_sys::try_relation_open(table, lock);
        if heap.is_null() {
            return Datum::null();
        }
        let open = Open::of(heap);
        let is_there = pg_sys::IndexGetRelation(index, true) == table;
        if is_there && !open.is_foreign_temporary() && !open.has_no_file_here() {
            with_index(index, pg_sys::AccessShareLock, |index| put(call, index, open));
        }
        pg_sys::relation_close(heap, lock);
        Datum::null()
    }
}

unsafe fn put(call: FunctionCallInfo, index: Open, heap: Open) {
    // SAFETY: both are open and locked.
    unsafe {
        let counts = cover::take(&[index], heap, true).counts;
        let (mut copies, mut copied, mut rows) = (0_i64, 0_u64, 0_i64);
        for region in 0..heap.block_count().div_ceil(REGION_BLOCKS) {
            let Some(known) = regions::load(index, region) else { continue };
            for (slot, blocks) in layout::counting_slots(known.entries()) {
                copies += 1;
                copied += u64::from(blocks);
                rows += i64::from(known.slot(slot).rows);
            }
        }
        let bytes = i64::from(index.block_count()) * i64::from(pg_sys::BLCKSZ);
        let number = |value: u64| Datum::from(i64::try_from(value).unwrap_or(i64::MAX));
        let mut values = [
            Datum::from(i64::from(heap.block_count())),
            number(counts.clean),
            number(counts.checked),
            number(counts.not_visible),
            number(counts.not_copied),
            number(copied),
            Datum::from(copies),
            Datum::from(rows),
            Datum::from(bytes),
        ];
        fmgr::put_row(call, &mut values, &mut [false; 9]);
    }
}
