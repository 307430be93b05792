//! `CALL engine.columnstore_refresh(index)`: copies what has no copy, beside readers and writers.
//!
//! Each region is a transaction of its own, so that nobody waits long for the table, and what was copied
//! stays if the rest fails. Inside a transaction block, or called by a function, all of it is done in that
//! transaction.

use pgrx::pg_sys::{self, Datum, FunctionCallInfo, NodeTag, Oid};
use pgrx::{PgList, pg_guard};

use super::access_method;
use super::refresh::Refresh;
use crate::host::relation::{with_index, with_table};
use crate::host::{catalogs, fmgr};
use crate::options::maintenance;

crate::sql_function!(pg_finfo_colonnade_columnstore_refresh);

/// `engine.columnstore_refresh(regclass, INOUT bigint)`: how many blocks were copied.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_columnstore_refresh(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the argument is an OID. SPI keeps what lives between transactions.
    unsafe {
        let Some(index) = fmgr::argument(call, 0).map(|value| Oid::from(value.value() as u32)) else {
            return fmgr::one_row(call, &mut [Datum::null()], &mut [true]);
        };
        pg_sys::PreventCommandIfReadOnly(c"engine.columnstore_refresh()".as_ptr());
        let context = (*call).context.cast::<pg_sys::CallContext>();
        let may_commit =
            !context.is_null() && (*context).type_ == NodeTag::T_CallContext && !(*context).atomic;
        pg_sys::SPI_connect_ext(if may_commit { pg_sys::SPI_OPT_NONATOMIC as i32 } else { 0 });
        let copied: u64 = indexes(index).into_iter().map(|index| refresh(index, may_commit)).sum();
        if may_commit {
            // What the caller does next is in no transaction of ours, with its level and its locks.
            pg_sys::SPI_commit();
        }
        pg_sys::SPI_finish();
        fmgr::one_row(call, &mut [Datum::from(copied)], &mut [false])
    }
}

/// The index itself, or those of the partitions.
unsafe fn indexes(index: Oid) -> Vec<Oid> {
    // SAFETY: catalog look-ups.
    unsafe {
        if pg_sys::get_rel_relkind(index) as u8 != pg_sys::RELKIND_PARTITIONED_INDEX {
            return vec![index];
        }
        let all = PgList::<Oid>::from_pg(catalogs::inheritors(index));
        all.iter_oid()
            .filter(|&index| pg_sys::get_rel_relkind(index) as u8 == pg_sys::RELKIND_INDEX)
            .collect()
    }
}

/// Refreshes one index. Returns how many blocks were copied.
unsafe fn refresh(index: Oid, may_commit: bool) -> u64 {
    let mut refresh = Refresh::begin(1);
    loop {
        // SAFETY: SPI is connected.
        let has_more = unsafe {
            if may_commit {
                pg_sys::SPI_commit();
                pg_sys::XactIsoLevel = pg_sys::XACT_READ_COMMITTED as i32;
            }
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            // Nothing that was known before the last commit need still hold.
            let table = access_method::table_of(index);
            maintenance::check_maintainer(table);
            // As VACUUM locks it.
            let has_more = with_table(table, pg_sys::ShareUpdateExclusiveLock, |heap| {
                with_index(index, pg_sys::ShareUpdateExclusiveLock, |index| {
                    access_method::expect_valid(index);
                    refresh.step(index, heap)
                })
            });
            pg_sys::PopActiveSnapshot();
            has_more
        };
        if !has_more {
            return refresh.done.copied;
        }
    }
}
