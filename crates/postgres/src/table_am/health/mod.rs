//! `engine.storage_health(regclass)`: how a table is stored, and what would help.
//!
//! It returns one row:
//! - `figures`: rows in heap pages and in stripes, stripes that are small, overlap or are not sorted, and
//!   pages of the file that nobody can see any more
//! - `advice`: what is advised; each adviser adds a function to a list there
//!
//! It reads the directory, the visibility map and heap pages, of which a sample if there are many. It also
//! reads pages that are marked frozen and belong to no visible stripe. The view of the same name asks it for
//! every table.

mod advice;
mod figures;
mod index_bloat;

use std::ffi::CString;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo};

use crate::host::buffer::PAGE_BYTES;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::relation::Open;
use crate::options::maintenance;
use advice::{Advice, Weight};
use figures::Figures;

/// Columns of the row. The function of version 0.1 has the first ten.
const COLUMNS: usize = 14;

crate::sql_function!(pg_finfo_colonnade_storage_health);

/// `engine.storage_health(regclass)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_storage_health(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the result's row type is that of the SQL declaration, which has as
    // many columns as `row` gives, or the first of them.
    unsafe {
        let table = maintenance::table_argument(call);
        let rel = pg_sys::try_table_open(table, pg_sys::AccessShareLock as i32);
        if rel.is_null() {
            // The table was dropped meanwhile.
            (*call).isnull = true;
            return Datum::from(0);
        }
        check(Open::of(rel));
        if Open::of(rel).has_no_file_here() {
            pg_sys::table_close(rel, pg_sys::AccessShareLock as i32);
            (*call).isnull = true;
            return Datum::from(0);
        }
        let figures = Figures::of(Open::of(rel));
        let advices = advice::of(Open::of(rel), &figures);
        let mut desc: pg_sys::TupleDesc = std::ptr::null_mut();
        pg_sys::get_call_result_type(call, std::ptr::null_mut(), &raw mut desc);
        let desc = pg_sys::BlessTupleDesc(desc);
        let (mut values, mut nulls) = row(&figures, &advices);
        let tuple = pg_sys::heap_form_tuple(desc, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::table_close(rel, pg_sys::AccessShareLock as i32);
        pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
    }
}

/// Raises an ERROR if the user may not read the whole table: such a user must not learn how many rows it has.
fn check(rel: Open) {
    // SAFETY: questions to the catalogs about an open relation.
    unsafe {
        let (table, user) = (rel.oid(), pg_sys::GetUserId());
        maintenance::expect_ours(rel, "look into");
        // Members of this role may scan tables to monitor them.
        if pg_sys::has_privs_of_role(user, pg_sys::Oid::from(pg_sys::ROLE_PG_STAT_SCAN_TABLES)) {
            return;
        }
        let may = pg_sys::pg_class_aclcheck(table, user, pg_sys::ACL_SELECT as pg_sys::AclMode);
        if may != pg_sys::AclResult::ACLCHECK_OK {
            let kind = pg_sys::get_relkind_objtype((*rel.form()).relkind);
            pg_sys::aclcheck_error(may, kind, pg_sys::get_rel_name(table));
        }
        if pg_sys::check_enable_rls(table, pg_sys::Oid::INVALID, true)
            == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
        {
            error::raise(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("row security hides rows of table {} from the user", rel.quoted_name()),
                "",
                "",
            );
        }
    }
}

fn row(figures: &Figures, advices: &[Advice]) -> ([Datum; COLUMNS], [bool; COLUMNS]) {
    let bytes = |blocks: u32| Datum::from(i64::from(blocks) * PAGE_BYTES as i64);
    let text = |wanted: &[Weight]| {
        let texts: Vec<&str> = advices
            .iter()
            .filter(|advice| wanted.contains(&advice.weight))
            .map(|advice| advice.text.as_str())
            .collect();
        let joined = CString::new(texts.join("; ")).unwrap_or_default();
        // SAFETY: a terminated string, copied.
        (Datum::from(unsafe { pg_sys::cstring_to_text(joined.as_ptr()) }), texts.is_empty())
    };
    let (both, nothing) = text(&[Weight::Needed, Weight::Possible]);
    let (needed, nothing_needed) = text(&[Weight::Needed]);
    let (possible, nothing_possible) = text(&[Weight::Possible]);
    let values = [
        Datum::from(figures.hot.live as u64),
        Datum::from(figures.cold_rows),
        Datum::from(figures.dead_rows),
        Datum::from(figures.stripes as u64),
        Datum::from(figures.small_stripes as u64),
        Datum::from(figures.overlapping_stripes as u64),
        bytes(figures.file_blocks),
        bytes(figures.stripe_blocks),
        bytes(figures.dead_blocks),
        both,
        needed,
        possible,
        Datum::from(figures.unsorted_stripes as u64),
        Datum::from(figures.dirty_stripes as u64),
    ];
    let mut nulls = [false; COLUMNS];
    nulls[9..12].copy_from_slice(&[nothing, nothing_needed, nothing_possible]);
    (values, nulls)
}
