//! What scans of rowcompress tables have read in this session: `engine.rowcompress_scan_stats`.
//!
//! A scan adds what it counted for EXPLAIN when it ends, with what its parallel workers reported. So a scan
//! that an ERROR ends is not counted, and the figures end with the session.

use std::cell::RefCell;
use std::collections::BTreeMap;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};
use stripe::scan::Counters;

use crate::host::fmgr;
use crate::host::relation::Open;
use crate::options::{self, AccessMethod};

crate::sql_function!(pg_finfo_colonnade_rowcompress_scan_stats);
crate::sql_function!(pg_finfo_colonnade_rowcompress_reset_scan_stats);

/// Figures of one table.
#[derive(Clone, Copy, Default)]
struct Sums {
    scans: u64,
    batches_read: u64,
    batches_pruned: u64,
}

thread_local! {
    static SUMS: RefCell<BTreeMap<u32, Sums>> = const { RefCell::new(BTreeMap::new()) };
}

/// A scan of `rel` has ended, which counted this.
pub(super) fn add(rel: Open, counters: &Counters) {
    if options::access_method_of(rel) != Some(AccessMethod::Rowcompress) {
        return;
    }
    SUMS.with_borrow_mut(|sums| {
        let sums = sums.entry(rel.oid().to_u32()).or_default();
        sums.scans += 1;
        sums.batches_read += counters.stripes_read;
        sums.batches_pruned += counters.stripes_pruned;
    });
}

/// `engine.rowcompress_scan_stats()`: a row for each table that is still there.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_rowcompress_scan_stats(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the result's row type is that of the SQL declaration.
    unsafe {
        pg_sys::InitMaterializedSRF(call, 0);
        // A copy: what the server is asked for each table may raise an ERROR.
        let sums = SUMS.with_borrow(Clone::clone);
        for (table, sums) in sums {
            if options::of_table(Oid::from(table)) != Some(AccessMethod::Rowcompress) {
                continue;
            }
            let all = sums.batches_read + sums.batches_pruned;
            let ratio = if all == 0 { 0.0 } else { sums.batches_pruned as f32 / all as f32 };
            let mut values = [
                name_of(table),
                Datum::from(sums.scans),
                Datum::from(all),
                Datum::from(sums.batches_read),
                Datum::from(sums.batches_pruned),
                Datum::from(ratio.to_bits()),
            ];
            let mut nulls = [false; 6];
            fmgr::put_row(call, &mut values, &mut nulls);
        }
        Datum::null()
    }
}

/// The name of a table as text, with its schema if that is not in the path.
unsafe fn name_of(table: u32) -> Datum {
    // SAFETY: the output function of regclass takes any OID, and gives a terminated string.
    unsafe {
        let name = pg_sys::OidOutputFunctionCall(pg_sys::Oid::from(pg_sys::F_REGCLASSOUT), table.into());
        Datum::from(pg_sys::cstring_to_text(name))
    }
}

/// `engine.rowcompress_reset_scan_stats(regclass)`: NULL means all tables.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_rowcompress_reset_scan_stats(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the argument is an OID.
    let table = unsafe { fmgr::argument(call, 0) }.map(|table| table.value() as u32);
    SUMS.with_borrow_mut(|sums| match table {
        Some(table) => drop(sums.remove(&table)),
        None => sums.clear(),
    });
    Datum::null()
}
