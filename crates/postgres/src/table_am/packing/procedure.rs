//! `CALL engine.colcompress_repack(table, min_fill_ratio)`: packs a table and joins its stripes beside its
//! readers and writers.
//!
//! Each batch is a transaction. After the last one, stripes are moved to empty pages, one in a transaction,
//! if that makes the end of the file free.
//!
//! Between two batches the table is unlocked, so that a session that waits for a stronger lock gets it.
//! Afterwards the table may be gone or belong to another user.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, NodeTag, Oid};
use stripe::packing::joining::MIN_FILL;

use super::round::Round;
use super::{Wanted, compact, obstacle, statistics, tidy};
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::fmgr;
use crate::host::relation::Open;
use crate::options;
use crate::options::maintenance;

crate::sql_function!(pg_finfo_colonnade_colcompress_repack);

/// `engine.colcompress_repack(regclass)`, `engine.colcompress_repack(regclass, float8)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_colcompress_repack(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the argument is a number. SPI keeps what lives between transactions.
    unsafe {
        let table = maintenance::table_argument(call);
        let min_fill = min_fill_argument(call);
        let context = (*call).context.cast::<pg_sys::CallContext>();
        let is_call = !context.is_null() && (*context).type_ == NodeTag::T_CallContext;
        if !is_call || (*context).atomic {
            error::raise(
                PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
                "engine.colcompress_repack() cannot run inside a transaction block",
                "It commits after each stripe.",
                "",
            );
        }
        pg_sys::PreventCommandIfReadOnly(c"engine.colcompress_repack()".as_ptr());
        pg_sys::SPI_connect_ext(pg_sys::SPI_OPT_NONATOMIC as i32);
        for table in maintenance::columnar_tables(table) {
            repack(table, Wanted { rows: 1, stripes: 1, min_fill });
        }
        pg_sys::SPI_finish();
        Datum::null()
    }
}

/// The second argument: a stripe is written anew if at most this share of its rows is alive.
unsafe fn min_fill_argument(call: FunctionCallInfo) -> f64 {
    // SAFETY: the server's call frame; the argument is a float8, which is passed by value.
    let Some(given) = (unsafe { fmgr::argument(call, 1) }) else { return MIN_FILL };
    let min_fill = f64::from_bits(given.value() as u64);
    if !(0.0..=1.0).contains(&min_fill) {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("min_fill_ratio must be between 0 and 1, not {min_fill}"),
            "",
            "A stripe is written anew if at most this share of its rows is alive.",
        );
    }
    min_fill
}

/// Packs one table as far as it goes.
unsafe fn repack(table: Oid, wanted: Wanted) {
    // SAFETY: SPI is connected, and transactions may end.
    unsafe {
        let round = Round::begin();
        statistics::begin_call();
        let mut total = 0;
        let mut name = String::new();
        let mut from = 0;
        // How many blocks are to stay in use; set once there is nothing left to pack.
        let mut keep = None;
        loop {
            pg_sys::SPI_commit();
            // The rows are read and written as they are now, whatever level the session prefers. So a mover
            // conflicts with nobody.
            pg_sys::XactIsoLevel = pg_sys::XACT_READ_COMMITTED as i32;
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            let moved = batch(table, wanted, &mut from, keep, total, &mut name);
            total += if keep.is_none() { moved } else { 0 };
            pg_sys::PopActiveSnapshot();
            if moved == 0 && keep.is_some() {
                break;
            }
            if moved == 0 {
                pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
                keep = Some(to_keep(table));
                pg_sys::PopActiveSnapshot();
            }
        }
        statistics::end_call();
        round.end("CALL engine.colcompress_repack()", &name);
        if !pg_sys::get_rel_name(table).is_null() {
            statistics::was_called(table);
        }
    }
}

/// One batch. It looks at the table anew, because nothing that was known before the last commit need still
/// hold.
unsafe fn batch(
    table: Oid,
    wanted: Wanted,
    from: &mut pg_sys::BlockNumber,
    keep: Option<u32>,
    total: usize,
    name: &mut String,
) -> usize {
    // SAFETY: the lock is kept to the end of the transaction.
    unsafe {
        if (*from > 0 || keep.is_some()) && pg_sys::get_rel_name(table).is_null() {
            return 0;
        }
        let rel = maintenance::open_maintained(table, pg_sys::ShareUpdateExclusiveLock, "repack");
        if let Some((detail, hint)) = obstacle::of(Open::of(rel)) {
            error::raise(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot repack table {}", Open::of(rel).quoted_name()),
                detail,
                hint,
            );
        }
        pg_sys::CheckTableNotInUse(rel, c"repack".as_ptr());
        *name = Open::of(rel).quoted_name();
        statistics::tell(&match keep {
            None => format!("packing {name}: {total} rows"),
            Some(_) => format!("moving stripes of {name}"),
        });
        let moved = match keep {
            None => super::batch(Open::of(rel), from, wanted),
            Some(keep) => usize::from(compact::step(Open::of(rel), keep)),
        };
        pg_sys::table_close(rel, pg_sys::NoLock as i32);
        moved
    }
}

/// Blocks that stay in use when the stripes at the end of the file are moved to empty pages.
unsafe fn to_keep(table: Oid) -> u32 {
    // SAFETY: the lock is kept to the end of the transaction.
    unsafe {
        let rel = pg_sys::try_table_open(table, pg_sys::ShareUpdateExclusiveLock as i32);
        if rel.is_null() {
            return u32::MAX;
        }
        let keep = if options::is_our_relation(Open::of(rel)) {
            tidy::Room::of(Open::of(rel), true).to_keep()
        } else {
            None
        };
        pg_sys::table_close(rel, pg_sys::NoLock as i32);
        keep.unwrap_or(u32::MAX)
    }
}
