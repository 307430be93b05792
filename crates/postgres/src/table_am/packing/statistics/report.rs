//! `engine.packing_statistics(regclass)` and `engine.packing_statistics_reset(regclass)`.
//!
//! The first returns a row for the table given, or for each columnar table of the database. Figures are shown
//! to users who may read all rows of the table, as those of `engine.storage_health` are, and to users with
//! the rights of pg_read_all_stats.

use std::ffi::CString;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};

use super::shown;
use super::{Figures, Number, Sum, figures, reset};
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::fmgr;
use crate::options;
use crate::table_am::packing::schedule::Turn;
use crate::table_am::statements::publication;

crate::sql_function!(pg_finfo_colonnade_packing_statistics);
crate::sql_function!(pg_finfo_colonnade_packing_statistics_reset);

/// Columns of a row.
const COLUMNS: usize = 28;

/// `engine.packing_statistics(regclass)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_packing_statistics(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the result's row type is that of the SQL declaration.
    unsafe {
        let tables = match fmgr::argument(call, 0) {
            Some(table) => vec![expect_visible(Oid::from(table.value() as u32))],
            None => publication::all_tables().into_iter().filter(|&table| is_shown(table)).collect(),
        };
        pg_sys::InitMaterializedSRF(call, 0);
        for table in tables {
            pgrx::check_for_interrupts!();
            let (mut values, mut nulls) = row(table);
            fmgr::put_row(call, &mut values, &mut nulls);
        }
        Datum::null()
    }
}

/// `engine.packing_statistics_reset(regclass)`. The function's rights say who may call it.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_packing_statistics_reset(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame.
    unsafe {
        reset(fmgr::argument(call, 0).map(|table| Oid::from(table.value() as u32)));
        Datum::null()
    }
}

/// Whether the list has this table.
unsafe fn is_shown(table: Oid) -> bool {
    // SAFETY: catalog look-ups, which find nothing once the table is dropped.
    unsafe {
        !pg_sys::get_rel_name(table).is_null()
            && !pg_sys::isOtherTempNamespace(pg_sys::get_rel_namespace(table))
            && may_see(table)
    }
}

unsafe fn may_see(table: Oid) -> bool {
    // SAFETY: catalog look-ups.
    unsafe {
        let user = pg_sys::GetUserId();
        let sees_all = pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_STATS);
        pg_sys::has_privs_of_role(user, sees_all)
            || (pg_sys::pg_class_aclcheck(table, user, pg_sys::ACL_SELECT as pg_sys::AclMode)
                == pg_sys::AclResult::ACLCHECK_OK
                && pg_sys::check_enable_rls(table, Oid::INVALID, true)
                    != pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32)
    }
}

unsafe fn expect_visible(table: Oid) -> Oid {
    // SAFETY: catalog look-ups; every check may raise an ERROR.
    unsafe {
        let name = pg_sys::get_rel_name(table);
        if name.is_null() || !options::is_columnar(table) {
            let name = match name.is_null() {
                true => table.to_u32().to_string(),
                false => std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned(),
            };
            error::not_ours(&format!("\"{name}\""), "colcompress");
        }
        if !may_see(table) {
            error::raise(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!(
                    "permission denied for packing statistics of table \"{}\"",
                    std::ffi::CStr::from_ptr(name).to_string_lossy()
                ),
                "They are for who may read all rows of the table, and for members of pg_read_all_stats.",
                "",
            );
        }
        table
    }
}

pub(super) fn text(value: &str) -> Datum {
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: a terminated string, copied.
    Datum::from(unsafe { pg_sys::cstring_to_text(value.as_ptr()) })
}

unsafe fn row(table: Oid) -> ([Datum; COLUMNS], [bool; COLUMNS]) {
    let known = figures(table);
    let sum = |sum| Some(Datum::from(known.as_ref().map_or(0, |known| known.sum(sum))));
    let number = |number| known.as_ref().map_or(0, |known: &Figures| known.number(number));
    let count = |of| Some(Datum::from(number(of)));
    // 0 stands for no time.
    let time = |of| Some(number(of)).filter(|&time| time > 0).map(Datum::from);
    // SAFETY: catalog look-ups.
    let (state, detail) = unsafe { shown::state(table, known.as_ref()) };
    let error = known.as_ref().map(|known| known.error.as_str()).filter(|error| !error.is_empty());
    let columns: [Option<Datum>; COLUMNS] = [
        Some(Datum::from(table)),
        Some(text(state)),
        detail.as_deref().map(text),
        sum(Sum::RowsPacked),
        sum(Sum::StripesWritten),
        sum(Sum::PackedBytesBefore),
        sum(Sum::PackedBytesAfter),
        sum(Sum::RowsRewritten),
        sum(Sum::StripesReplaced),
        sum(Sum::StripesRewritten),
        sum(Sum::RewrittenBytesBefore),
        sum(Sum::RewrittenBytesAfter),
        sum(Sum::StripesTakenOut),
        sum(Sum::StripesMoved),
        sum(Sum::Vacuums),
        sum(Sum::BytesCutOff),
        count(Number::Rounds),
        count(Number::Calls),
        time(Number::LastRound),
        time(Number::LastCall),
        time(Number::LastLook),
        Turn::of_table(table).next().map(Datum::from),
        count(Number::Waiting),
        count(Number::Young),
        count(Number::Errors),
        error.map(text),
        time(Number::LastError),
        time(Number::Since),
    ];
    (columns.map(|column| column.unwrap_or(Datum::from(0))), columns.map(|column| column.is_none()))
}
