//! `engine.storage_health(regclass)`: how a table is stored, and what would help.
//!
//! One row: rows in heap pages (estimated from the statistics) and in stripes, stripes that are small or lie across each other in the
//! order of `orderby`, pages of the file that nobody can see any more, and indexes with much room in them. It reads the directory and the visibility map, and of the
//! file only pages that are marked frozen and that no visible stripe has. The view of the same name asks it for every table.

use std::ffi::CString;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Relation};
use stripe::Summary;
use vector::Scalar;

use super::index_bloat::{self, Bloat};
use super::{hot_runs, maintenance, packing};
use crate::host::buffer::PAGE_BYTES;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::{buffer, relation};
use crate::options::{self, SortKey, TableOptions};
use crate::storage::directory::{self, StripeEntry};
use crate::storage::open_stripes;
use crate::storage::page_header::{self, Header, Parsed};
use crate::storage::row_proxy;
use crate::storage::{metapage, pages::BlockRun};

/// A stripe with less than one in so many of the rows it may have is small.
const SMALL: u32 = 4;
const COLUMNS: usize = 10;

crate::sql_function!(pg_finfo_colonnade_storage_health);

/// `engine.storage_health(regclass)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_storage_health(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the result's row type is that of the SQL declaration.
    unsafe {
        let table = maintenance::table_argument(call);
        let rel = pg_sys::try_table_open(table, pg_sys::AccessShareLock as i32);
        if rel.is_null() {
            // Dropped by now.
            (*call).isnull = true;
            return Datum::from(0);
        }
        check(rel);
        if relation::is_elsewhere(rel) {
            pg_sys::table_close(rel, pg_sys::AccessShareLock as i32);
            (*call).isnull = true;
            return Datum::from(0);
        }
        let health = Health::of(rel);
        let mut desc: pg_sys::TupleDesc = std::ptr::null_mut();
        pg_sys::get_call_result_type(call, std::ptr::null_mut(), &raw mut desc);
        let desc = pg_sys::BlessTupleDesc(desc);
        let (mut values, mut nulls) = health.row();
        let tuple = pg_sys::heap_form_tuple(desc, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::table_close(rel, pg_sys::AccessShareLock as i32);
        pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
    }
}

/// How many rows a table has where is nobody's business who may not read all of it.
unsafe fn check(rel: Relation) {
    // SAFETY: rel is open.
    unsafe {
        let (table, user) = ((*rel).rd_id, pg_sys::GetUserId());
        maintenance::expect_colcompress(rel, "look into");
        let may = pg_sys::pg_class_aclcheck(table, user, pg_sys::ACL_SELECT);
        if may != pg_sys::AclResult::ACLCHECK_OK {
            let kind = pg_sys::get_relkind_objtype((*(*rel).rd_rel).relkind);
            pg_sys::aclcheck_error(may, kind, pg_sys::get_rel_name(table));
        }
        if pg_sys::check_enable_rls(table, pg_sys::Oid::INVALID, true)
            == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
        {
            error::raise(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("row security hides rows of table {} from the user", relation::quoted_name(rel)),
                "",
                "",
            );
        }
    }
}

/// What is told of a table.
struct Health {
    /// None before the first ANALYZE.
    hot_rows: Option<u64>,
    cold_rows: u64,
    /// Of the cold rows, those that are deleted or updated and still in their stripes.
    dead_rows: u64,
    stripes: usize,
    small_stripes: usize,
    /// None without an order.
    overlapping_stripes: Option<usize>,
    file_blocks: u32,
    stripe_blocks: u32,
    dead_blocks: u32,
    advice: Vec<String>,
}

impl Health {
    unsafe fn of(rel: Relation) -> Self {
        // SAFETY: rel is open.
        unsafe {
            let options = options::table_options(rel);
            let snapshot = pg_sys::GetActiveSnapshot();
            let stripes =
                metapage::storage_id(rel).map_or_else(Vec::new, |id| directory::visible(id, snapshot));
            let cold_rows: u64 = stripes.iter().map(|entry| u64::from(entry.row_count)).sum();
            let dead_rows = row_proxy::count(rel, stripes.iter()) as u64;
            let live = cold_rows.saturating_sub(dead_rows);
            let estimate = f64::from((*(*rel).rd_rel).reltuples);
            let small = |entry: &&StripeEntry| entry.row_count < options.stripe_row_limit / SMALL;
            let mut health = Self {
                hot_rows: (estimate >= 0.0).then_some((estimate - live as f64).max(0.0) as u64),
                cold_rows,
                dead_rows,
                stripes: stripes.len(),
                small_stripes: stripes.iter().filter(small).count(),
                overlapping_stripes: options.orderby.first().map(|key| overlapping(rel, &stripes, key)),
                file_blocks: relation::block_count(rel),
                stripe_blocks: stripes.iter().map(|entry| entry.run.block_count).sum(),
                dead_blocks: dead_blocks(rel, stripes.iter().map(|entry| entry.run)),
                advice: Vec::new(),
            };
            health.advise(rel, &options);
            health
        }
    }

    unsafe fn advise(&mut self, rel: Relation, options: &TableOptions) {
        let (mut repack, mut merge) = (Vec::new(), Vec::new());
        // Stripes of a full table: the last one is as small as it happens to be.
        if self.small_stripes > 1 + self.stripes / 4 {
            repack.push(format!("join {} small stripes", self.small_stripes));
        }
        if let Some(hot) = self.hot_rows
            && hot >= u64::from(options.chunk_group_row_limit)
        {
            repack.push(format!("put some {hot} heap rows into stripes"));
        }
        if self.dead_rows > 0 && self.dead_rows >= self.cold_rows / 5 {
            repack.push(format!("drop {} dead rows of stripes", self.dead_rows));
        }
        if let Some(overlapping) = self.overlapping_stripes
            && overlapping > 1 + self.stripes / 4
        {
            // SAFETY: rel is open.
            let is_sorted = options.orderby.first().is_some_and(|key| unsafe { packing::sorts(rel, key) });
            let by = if is_sorted { &mut repack } else { &mut merge };
            by.push(format!("sort {overlapping} stripes that overlap in the order of orderby"));
        }
        // SAFETY: rel is open.
        let (is_published, is_packed) =
            unsafe { (open_stripes::is_published(rel), packing::obstacle(rel).is_none()) };
        if !is_packed {
            repack.append(&mut merge);
            std::mem::swap(&mut repack, &mut merge);
        }
        if !repack.is_empty() && !is_published {
            self.advice.push(format!("CALL engine.colcompress_repack() would {}", repack.join(", ")));
        }
        if !merge.is_empty() && !is_published {
            self.advice.push(format!("engine.colcompress_merge() would {}", merge.join(", ")));
        }
        if self.dead_blocks > 0 && self.dead_blocks >= self.file_blocks / 10 {
            self.advice.push(format!("VACUUM would free up to {} pages for new rows", self.dead_blocks));
        }
        // SAFETY: rel is open.
        for Bloat { index, blocks, needed } in unsafe { index_bloat::of(rel) } {
            let free = blocks - needed;
            self.advice.push(format!(
                "REINDEX INDEX CONCURRENTLY {index} would free some {free} of its {blocks} pages"
            ));
        }
        if self.hot_rows.is_none() {
            self.advice.push("ANALYZE would tell how many heap rows there are".into());
        }
    }

    unsafe fn row(&self) -> ([Datum; COLUMNS], [bool; COLUMNS]) {
        let bytes = |blocks: u32| Datum::from(i64::from(blocks) * PAGE_BYTES as i64);
        let advice = CString::new(self.advice.join("; ")).unwrap_or_default();
        let mut nulls = [false; COLUMNS];
        nulls[0] = self.hot_rows.is_none();
        nulls[5] = self.overlapping_stripes.is_none();
        nulls[9] = self.advice.is_empty();
        let values = [
            Datum::from(self.hot_rows.unwrap_or(0)),
            Datum::from(self.cold_rows),
            Datum::from(self.dead_rows),
            Datum::from(self.stripes as u64),
            Datum::from(self.small_stripes as u64),
            Datum::from(self.overlapping_stripes.unwrap_or(0) as u64),
            bytes(self.file_blocks),
            bytes(self.stripe_blocks),
            bytes(self.dead_blocks),
            // SAFETY: a terminated string, copied.
            Datum::from(unsafe { pg_sys::cstring_to_text(advice.as_ptr()) }),
        ];
        (values, nulls)
    }
}

/// Stripes that begin before one that begins earlier has ended, by the bounds of the order's first column.
unsafe fn overlapping(rel: Relation, stripes: &[StripeEntry], key: &SortKey) -> usize {
    let Some(column) = usize::try_from(key.attnum).ok().and_then(|number| number.checked_sub(1)) else {
        return 0;
    };
    let mut ranges: Vec<(Scalar, Scalar)> = Vec::new();
    for entry in stripes {
        match Summary::open(&entry.summary).and_then(|summary| summary.column(column)) {
            Ok(Some((_, statistics))) => {
                if let (Some(min), Some(max)) = (statistics.min, statistics.max) {
                    ranges.push((min.value, max.value));
                }
            }
            Ok(None) => {}
            Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
        }
    }
    let order = |a: &Scalar, b: &Scalar| a.compare(b).unwrap_or(std::cmp::Ordering::Equal);
    ranges.sort_by(|a, b| order(&a.0, &b.0));
    let mut count = 0;
    let mut reach: Option<Scalar> = None;
    for (min, max) in ranges {
        if let Some(reach) = &reach {
            count += usize::from(order(&min, reach).is_lt());
        }
        if reach.as_ref().is_none_or(|reach| order(reach, &max).is_lt()) {
            reach = Some(max);
        }
    }
    count
}

/// Stripe pages that none of these stripes has: of loads that were rolled back, and of stripes that were replaced.
pub(super) unsafe fn dead_blocks(rel: Relation, live: impl Iterator<Item = BlockRun>) -> u32 {
    // SAFETY: rel is open; pages are looked at under pin and shared lock.
    unsafe {
        let mut dead = 0;
        let mut vmbuffer: pg_sys::Buffer = 0;
        for span in hot_runs::hot_spans(live, relation::block_count(rel)) {
            for block in span.start..span.end {
                let status = u32::from(pg_sys::visibilitymap_get_status(rel, block, &raw mut vmbuffer));
                if status & pg_sys::VISIBILITYMAP_ALL_FROZEN == 0
                    || pg_sys::GetRecordedFreeSpace(rel, block) > 0
                {
                    continue;
                }
                pgrx::check_for_interrupts!();
                let buf = buffer::read(rel, block, std::ptr::null_mut());
                buffer::lock_shared(buf);
                let parsed = page_header::parse(buffer::bytes(buffer::page(buf)));
                buffer::unlock_release(buf);
                dead += u32::from(matches!(parsed, Parsed::Ours(Header::Stripe { .. })));
            }
        }
        if vmbuffer != 0 {
            pg_sys::ReleaseBuffer(vmbuffer);
        }
        dead
    }
}
