//! What EXPLAIN says about the node.
//!
//! Always: the columns it reads, the conditions it filters natively and those that only help to prune. With
//! costs: how many stripes pruning would leave. With ANALYZE: what was read and pruned and how many rows
//! native conditions removed. The server itself shows the row-by-row conditions as "Filter". Text output
//! gathers figures in one line each; the other formats have one property a figure.

use std::ffi::CString;

use pgrx::pg_sys;

use super::clauses;
use super::stripes::Stripes;
use super::table::{Copies, TableScan};
use crate::columnstore::cover::Counts;
use crate::compat;
use crate::host::relation::Open;
use crate::options::foreign::{self, Wrapper};
use crate::planner::plan::reason_noted;
use crate::storage::column_file::named;
use crate::storage::directory::entries;
use crate::storage::file::metapage;
use stripe::scan::{StripeScan, Tally};

/// What a reader of vectors counted beside.
pub struct Beside<'a> {
    /// What units on other threads counted.
    pub tally: &'a Tally,
    /// A sort wants the first rows only.
    pub is_ranked: bool,
}

/// Adds the node's properties.
///
/// # Safety
/// Called under guard by EXPLAIN, with its own structs, for a node that has begun.
pub unsafe fn explain(
    scan: &TableScan,
    beside: Option<&Beside<'_>>,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe {
        let custom = scan.custom;
        show_columns(scan, es);
        if let Some(copies) = &scan.copies {
            show_copies(copies, es);
        }
        let wrapper = foreign::wrapper_of(Open::of(scan.rel));
        if let Some(wrapper) = wrapper {
            show_files(scan, wrapper, es);
        }
        let native = scan.clauses.iter().filter(|clause| clause.native).map(|clause| clause.node);
        show_conditions(custom, ancestors, es, c"Chunk Filter", native);
        // The scan also evaluates conditions of the vectorised plan above.
        let filtered = scan.counters.rows_filtered + beside.map_or(0, |beside| beside.tally.rows_filtered());
        if (*es).analyze && (filtered > 0 || scan.clauses.iter().any(|clause| clause.native)) {
            integer(es, c"Rows Removed by Chunk Filter", None, filtered);
        }
        let pruning = scan.clauses.iter().filter(|clause| !clause.native).map(|clause| clause.node);
        show_conditions(custom, ancestors, es, c"Prune", pruning);
        if (*es).analyze {
            show_counters(scan, beside, wrapper == Some(Wrapper::Parquet), es);
        } else if (*es).costs {
            show_estimate(scan, es);
        }
        if let Some(reason) = reason_noted((*custom).ss.ps.plan.cast()) {
            pg_sys::ExplainPropertyText(c"Not Vectorised".as_ptr(), reason, es);
        }
    }
}

unsafe fn show_columns(scan: &TableScan, es: *mut pg_sys::ExplainState) {
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe {
        let mut names: *mut pg_sys::List = std::ptr::null_mut();
        for column in &scan.columns {
            let Ok(at) = i32::try_from(column.index) else { continue };
            let attribute = &compat::attributes((*scan.rel).rd_att)[column.index];
            debug_assert!(at < (*(*scan.rel).rd_att).natts);
            let name = pg_sys::pstrdup(attribute.attname.data.as_ptr());
            names = pg_sys::lappend(names, name.cast());
        }
        // An empty line says nothing; an empty list does.
        if !names.is_null() || (*es).format != pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            pg_sys::ExplainPropertyList(c"Columns".as_ptr(), names, es);
        }
    }
}

unsafe fn show_conditions(
    custom: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
    label: &std::ffi::CStr,
    conditions: impl Iterator<Item = *mut pg_sys::Node>,
) {
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe {
        let mut list: *mut pg_sys::List = std::ptr::null_mut();
        for condition in conditions {
            list = pg_sys::lappend(list, condition.cast());
        }
        if list.is_null() {
            return;
        }
        let node = pg_sys::make_ands_explicit(list).cast::<pg_sys::Node>();
        let context = pg_sys::set_deparse_context_plan((*es).deparse_cxt, (*custom).ss.ps.plan, ancestors);
        let text = pg_sys::deparse_expression(node, context, (*es).verbose, false);
        pg_sys::ExplainPropertyText(label.as_ptr(), text, es);
    }
}

/// How many stripes the constants in the conditions would leave now.
unsafe fn show_estimate(scan: &TableScan, es: *mut pg_sys::ExplainState) {
    // SAFETY: the relation is open.
    let rel = unsafe { Open::of(scan.rel) };
    // Which copies there are is known when the scan starts, and which row groups.
    let wrapper = foreign::wrapper_of(rel);
    if scan.copies.is_some() || wrapper == Some(Wrapper::Parquet) {
        return;
    }
    let predicates = clauses::known_now(&scan.clauses);
    if predicates.is_empty() || scan.snapshot.is_null() {
        return;
    }
    // SAFETY: the relation is open and the snapshot the statement's.
    unsafe {
        let storage_id = match wrapper {
            Some(_) => named::storage_id(rel.oid()),
            None => metapage::storage_id(rel),
        };
        let stripes =
            storage_id.map_or_else(Vec::new, |storage_id| entries::visible(storage_id, scan.snapshot));
        // A summary that cannot be read is for the execution to report.
        let left = stripes.iter().filter(|&entry| entry.may_match(predicates.iter()).unwrap_or(true)).count();
        let (left, all) = (left as u64, stripes.len() as u64);
        if (*es).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            text(es, c"Estimated Stripes", &format!("read {left}, pruned {}", all - left));
        } else {
            integer(es, c"Estimated Stripes Read", None, left);
            integer(es, c"Estimated Stripes Pruned", None, all - left);
        }
    }
}

/// `of_groups`: what is counted as stripes are row groups.
unsafe fn show_counters(
    scan: &TableScan,
    beside: Option<&Beside<'_>>,
    of_groups: bool,
    es: *mut pg_sys::ExplainState,
) {
    let labels = match of_groups {
        false => [c"Stripes", c"Stripes Read", c"Stripes Pruned", c"Stripes Skipped by Sort"],
        true => [c"Row Groups", c"Row Groups Read", c"Row Groups Pruned", c"Row Groups Skipped by Sort"],
    };
    let [together, read, pruned, skipped] = labels;
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe {
        let mut counters = scan.counters;
        counters.bytes_decoded += beside.map_or(0, |beside| beside.tally.bytes_decoded());
        if (*es).format != pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            integer(es, read, None, counters.stripes_read);
            integer(es, pruned, None, counters.stripes_pruned);
            integer(es, c"Chunks Read", None, counters.chunks_read);
            integer(es, c"Chunks Pruned", None, counters.chunks_pruned);
            if beside.is_some_and(|beside| beside.is_ranked) {
                integer(es, skipped, None, counters.stripes_skipped);
                integer(es, c"Chunks Skipped by Sort", None, counters.chunks_skipped);
            }
            integer(es, scan.hot_label(), None, scan.hot_rows);
            integer(es, c"Hot Rows Removed by Filter", None, scan.hot_filtered);
            integer(es, c"Rows from Statistics", None, counters.rows_known);
            integer(es, c"Bytes Read", Some(c"B"), counters.bytes_read);
            integer(es, c"Bytes Decoded", Some(c"B"), counters.bytes_decoded);
            return;
        }
        let pair = |read: u64, pruned: u64| format!("read {read}, pruned {pruned}");
        text(es, together, &pair(counters.stripes_read, counters.stripes_pruned));
        text(es, c"Chunks", &pair(counters.chunks_read, counters.chunks_pruned));
        if counters.stripes_skipped + counters.chunks_skipped > 0 {
            let what = together.to_string_lossy().to_lowercase();
            let skipped = format!("{what} {}, chunks {}", counters.stripes_skipped, counters.chunks_skipped);
            text(es, c"Skipped by Sort", &skipped);
        }
        if scan.hot_rows > 0 {
            let (read, removed) = (scan.hot_rows, scan.hot_filtered);
            text(es, scan.hot_label(), &format!("read {read}, removed {removed}"));
        }
        if counters.rows_known > 0 {
            integer(es, c"Rows from Statistics", None, counters.rows_known);
        }
        let bytes = format!("read {}, decoded {}", size(counters.bytes_read), size(counters.bytes_decoded));
        text(es, c"Bytes", &bytes);
    }
}

/// The files of a foreign table. Those of column files are told in the words of cstore_fdw.
unsafe fn show_files(scan: &TableScan, wrapper: Wrapper, es: *mut pg_sys::ExplainState) {
    // SAFETY: EXPLAIN's own structs; the relation is open.
    unsafe {
        let table = (*scan.rel).rd_id;
        match wrapper {
            Wrapper::ColumnFile => {
                text(es, c"CStore File", &foreign::name_of(table));
                if (*es).costs {
                    let length = foreign::file_of(table).metadata().map_or(0, |found| found.len());
                    integer(es, c"CStore File Size", Some(c"B"), length);
                }
            }
            Wrapper::Parquet => {
                text(es, c"Parquet File", &foreign::names_of(table).join(", "));
                // Which files these are is known when the scan starts.
                if let Some(Stripes::Groups(groups)) = scan.stripes.as_ref().map(StripeScan::store) {
                    integer(es, c"Files", None, groups.files() as u64);
                }
            }
        }
    }
}

/// The columnstore indexes that are read, and how many blocks came from it and from the heap.
unsafe fn show_copies(copies: &Copies, es: *mut pg_sys::ExplainState) {
    // SAFETY: the indexes are open.
    unsafe {
        let names: Vec<_> =
            copies.indexes.iter().map(|&(index, _)| Open::of(index).name().to_string()).collect();
        text(es, c"Columnstore", &names.join(", "));
        if !(*es).analyze {
            return;
        }
        let Counts { clean, checked, not_visible, not_copied } = copies.counts;
        if (*es).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            let loose = not_visible + not_copied;
            let why = match loose {
                0 => String::new(),
                _ => format!(" (not all-visible {not_visible}, not copied {not_copied})"),
            };
            let looked = if checked == 0 { String::new() } else { format!(" (checked {checked})") };
            text(es, c"Blocks", &format!("from copies {}{looked}, from heap {loose}{why}", clean + checked));
        } else {
            integer(es, c"Blocks from Copies", None, clean);
            integer(es, c"Blocks Checked", None, checked);
            integer(es, c"Blocks not All-visible", None, not_visible);
            integer(es, c"Blocks not Copied", None, not_copied);
        }
    }
}

/// Bytes as EXPLAIN shows memory.
fn size(bytes: u64) -> String {
    format!("{}kB", bytes.div_ceil(1024))
}

unsafe fn text(es: *mut pg_sys::ExplainState, label: &std::ffi::CStr, value: &str) {
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), es) };
}

unsafe fn integer(
    es: *mut pg_sys::ExplainState,
    label: &std::ffi::CStr,
    unit: Option<&std::ffi::CStr>,
    value: u64,
) {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    let unit = unit.map_or(std::ptr::null(), std::ffi::CStr::as_ptr);
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe { pg_sys::ExplainPropertyInteger(label.as_ptr(), unit, value, es) };
}
