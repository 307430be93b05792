//! Rows that need not be looked at: summaries of whole stripes and chunks from statistics.
//!
//! Called by `vectors` before a stripe is opened and before a chunk is loaded. A summary is given only where
//! every row passes every condition and all that the caller asked for is known exactly. Invariant: bounds
//! that were cut, sums that are not exact, decimals in the side lane and columns whose type has changed are
//! not known.

use pgrx::pg_sys::Relation;
use query::{ColumnSummary, SummaryNeed};
use stripe::{ColumnStatistics, Prune, Summary, prune_chunk, prune_stripe};
use vector::{LogicalType, Result, Scalar};

use super::begin::Column;
use super::clauses::Clause;
use crate::storage::directory::StripeEntry;
use crate::storage::read::stripe_on_pages::{self, Pages, StripeHandle};

/// What the directory, or else the stripe's own footer, says of a whole stripe.
///
/// # Safety
/// `rel` is open.
pub unsafe fn stripe(
    rel: Relation,
    entry: &StripeEntry,
    live: u32,
    clauses: &[Clause],
    columns: &[Column],
    wanted: &[usize],
    needs: &[SummaryNeed],
) -> Result<Option<query::Summary>> {
    let only_count = !wants_any(needs);
    if !answerable(clauses) || (live < entry.row_count && !only_count) {
        return Ok(None);
    }
    if clauses.is_empty() && only_count {
        return Ok(Some(query::Summary { rows: live.into(), columns: vec![None; wanted.len()] }));
    }
    let summary = Summary::open(&entry.summary)?;
    for clause in clauses {
        if prune_stripe(&summary, &clause.predicate)? != Prune::AllRows {
            return Ok(None);
        }
    }
    let short = summarise(live, columns, wanted, needs, &mut |index| summary.column(index))?;
    if short.is_some() {
        return Ok(short);
    }
    // SAFETY: the caller's promise.
    unsafe {
        let open = stripe_on_pages::open(rel, entry)?;
        let pages = Pages::new(rel, entry, std::ptr::null_mut());
        summarise(live, columns, wanted, needs, &mut |index| {
            let Some(logical) = open.reader.logical(index) else { return Ok(None) };
            Ok(Some((logical, open.reader.column_statistics(index, &pages)?.clone())))
        })
    }
}

/// What a chunk's statistics say.
///
/// # Safety
/// `rel` is open.
#[allow(clippy::too_many_arguments, reason = "a chunk, what is asked of it, and what that is asked about")]
pub unsafe fn chunk(
    rel: Relation,
    entry: &StripeEntry,
    open: &StripeHandle,
    chunk: u32,
    dead: usize,
    clauses: &[Clause],
    columns: &[Column],
    wanted: &[usize],
    needs: &[SummaryNeed],
) -> Result<Option<query::Summary>> {
    if !answerable(clauses) || (dead > 0 && wants_any(needs)) {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let pages = unsafe { Pages::new(rel, entry, std::ptr::null_mut()) };
    for clause in clauses {
        if prune_chunk(&open.reader, chunk, &clause.predicate, &pages)? != Prune::AllRows {
            return Ok(None);
        }
    }
    let rows = open.reader.chunk_rows(chunk);
    let live = (rows.end - rows.start).saturating_sub(u32::try_from(dead).unwrap_or(u32::MAX));
    summarise(live, columns, wanted, needs, &mut |index| {
        let Some(logical) = open.reader.logical(index) else { return Ok(None) };
        Ok(Some((logical, open.reader.statistics(index, chunk, &pages)?.clone())))
    })
}

/// Whether predicates say all that the conditions say.
fn answerable(clauses: &[Clause]) -> bool {
    clauses.iter().all(|clause| clause.exact)
}

fn wants_any(needs: &[SummaryNeed]) -> bool {
    needs.iter().any(|need| *need != SummaryNeed::default())
}

type Statistics<'a> = dyn FnMut(usize) -> Result<Option<(LogicalType, ColumnStatistics)>> + 'a;

fn summarise(
    rows: u32,
    columns: &[Column],
    wanted: &[usize],
    needs: &[SummaryNeed],
    statistics: &mut Statistics<'_>,
) -> Result<Option<query::Summary>> {
    let mut found = Vec::with_capacity(wanted.len());
    for (place, &at) in wanted.iter().enumerate() {
        let need = needs.get(place).copied().unwrap_or_default();
        if need == SummaryNeed::default() {
            found.push(None);
            continue;
        }
        let Some(column) = columns.get(at) else { return Ok(None) };
        let Some((logical, statistics)) = statistics(column.index)? else { return Ok(None) };
        if logical != column.reader.kind().logical {
            return Ok(None);
        }
        match column_summary(logical, need, &statistics) {
            Some(summary) => found.push(Some(summary)),
            None => return Ok(None),
        }
    }
    Ok(Some(query::Summary { rows: rows.into(), columns: found }))
}

fn column_summary(
    logical: LogicalType,
    need: SummaryNeed,
    statistics: &ColumnStatistics,
) -> Option<ColumnSummary> {
    let nulls = u64::from(statistics.null_count);
    if statistics.value_count() == 0 {
        return Some(ColumnSummary { nulls, bounds: None, sum: None });
    }
    let wants_value = need.bounds || need.sum;
    if wants_value && statistics.side_rows > 0 {
        return None;
    }
    let scales = statistics.scales;
    let bounds = match need.bounds {
        false => None,
        true => {
            let (min, max) = (statistics.min.as_ref()?, statistics.max.as_ref()?);
            // A decimal's bound does not tell how many digits it shows, unless all show as many as the bound
            // has.
            let shown = logical != LogicalType::Numeric
                || scales.is_some_and(|s| s.display_min == s.common && s.display_max == s.common);
            if !min.exact || !max.exact || !shown {
                return None;
            }
            Some((min.value.clone(), max.value.clone()))
        }
    };
    let sum = match (need.sum, logical) {
        (false, _) => None,
        (true, LogicalType::Numeric) => {
            let scales = scales?;
            let sum = Scalar::Numeric { unscaled: statistics.sum?, scale: scales.common };
            Some((sum, scales.display_max))
        }
        (true, LogicalType::Int16 | LogicalType::Int32 | LogicalType::Int64) => {
            Some((Scalar::Int(i64::try_from(statistics.sum?).ok()?), 0))
        }
        _ => return None,
    };
    Some(ColumnSummary { nulls, bounds, sum })
}
