//! Answers for rows that need not be looked at: summaries of whole stripes and chunks from statistics.
//!
//! Called by `walk` before a stripe is opened and before a chunk is loaded. A summary is given only if every
//! row passes every clause, and if everything that the caller asked for is known exactly. Bounds that were
//! cut, sums that are not exact, decimals in the side lane, and columns whose type has changed are not known.

use vector::flow::{self, ColumnSummary, SummaryNeed};
use vector::{Decimal, LogicalType, Result};

use super::chunk::Place;
use super::plan::{ScanClause, ScanColumn};
use crate::{ColumnStatistics, OpenStripe, Prune, StripeBytes, Summary, prune_chunk, prune_stripe};

/// What is asked, and of which columns and clauses.
pub(super) struct Question<'a> {
    /// Columns of the scan.
    pub columns: &'a [ScanColumn],
    /// What rows have to pass.
    pub clauses: &'a [ScanClause],
    /// Positions in `columns` of those that the batch has.
    pub wanted: &'a [usize],
    /// What has to be known of each of them.
    pub needs: &'a [SummaryNeed],
}

impl Question<'_> {
    /// What a stripe's summary says of the stripe. `live` counts those of its `rows` rows that are not out.
    /// It is asked only if predicates say all that the conditions say.
    pub(super) fn of_summary(
        &self,
        summary: &[u8],
        rows: u32,
        live: impl FnOnce() -> u32,
    ) -> Result<OfSummary> {
        if !answerable(self.clauses) {
            return Ok(OfSummary::Unknown);
        }
        let (live, only_count) = (live(), !wants_any(self.needs));
        if live < rows && !only_count {
            return Ok(OfSummary::Unknown);
        }
        if self.clauses.is_empty() && only_count {
            let columns = vec![None; self.wanted.len()];
            return Ok(OfSummary::Known(flow::Summary { rows: live.into(), columns }));
        }
        let summary = Summary::open(summary)?;
        for clause in self.clauses {
            if prune_stripe(&summary, &clause.predicate)? != Prune::AllRows {
                return Ok(OfSummary::Unknown);
            }
        }
        let known = self.summarise(live, &mut |index| summary.column(index))?;
        Ok(known.map_or(OfSummary::AskColumns { live }, OfSummary::Known))
    }

    /// What the statistics of whole columns in an open stripe say. Called if `of_summary` said that they have
    /// to be asked.
    pub(super) fn of_columns(
        &self,
        reader: &dyn OpenStripe,
        bytes: &dyn StripeBytes,
        live: u32,
    ) -> Result<Option<flow::Summary>> {
        self.summarise(live, &mut |index| {
            let Some(logical) = reader.logical(index) else { return Ok(None) };
            Ok(reader.column_statistics(index, bytes)?.map(|known| (logical, known.clone())))
        })
    }

    /// What a chunk's statistics say. `out` counts its rows that are out. It is asked only if all rows pass.
    pub(super) fn of_chunk(
        &self,
        place: &Place<'_>,
        out: impl FnOnce() -> usize,
    ) -> Result<Option<flow::Summary>> {
        let Place { reader, bytes, chunk, .. } = *place;
        if !answerable(self.clauses) || !reader.counts_chunks() {
            return Ok(None);
        }
        for clause in self.clauses {
            if prune_chunk(reader, chunk, &clause.predicate, bytes)? != Prune::AllRows {
                return Ok(None);
            }
        }
        let out = out();
        if out > 0 && wants_any(self.needs) {
            return Ok(None);
        }
        let rows = reader.chunk_rows(chunk);
        let live = (rows.end - rows.start).saturating_sub(u32::try_from(out).unwrap_or(u32::MAX));
        self.summarise(live, &mut |index| {
            let Some(logical) = reader.logical(index) else { return Ok(None) };
            Ok(reader.statistics(index, chunk, bytes)?.map(|known| (logical, known.clone())))
        })
    }

    fn summarise(&self, rows: u32, statistics: &mut Statistics<'_>) -> Result<Option<flow::Summary>> {
        let mut found = Vec::with_capacity(self.wanted.len());
        for (place, &at) in self.wanted.iter().enumerate() {
            let need = self.needs.get(place).copied().unwrap_or_default();
            if need == SummaryNeed::default() {
                found.push(None);
                continue;
            }
            let Some(column) = self.columns.get(at) else { return Ok(None) };
            let Some((logical, statistics)) = statistics(column.index)? else { return Ok(None) };
            if logical != column.logical {
                return Ok(None);
            }
            match column_summary(logical, need, &statistics) {
                Some(summary) => found.push(Some(summary)),
                None => return Ok(None),
            }
        }
        Ok(Some(flow::Summary { rows: rows.into(), columns: found }))
    }
}

/// What the summary of a stripe says.
pub(super) enum OfSummary {
    /// Rows have to be looked at.
    Unknown,
    /// All that is asked.
    Known(flow::Summary),
    /// All rows pass, but the statistics of columns have to be asked. The stripe is opened for that.
    AskColumns {
        /// The stripe's rows that are not out.
        live: u32,
    },
}

type Statistics<'a> = dyn FnMut(usize) -> Result<Option<(LogicalType, ColumnStatistics)>> + 'a;

/// Whether predicates say all that the conditions say.
fn answerable(clauses: &[ScanClause]) -> bool {
    clauses.iter().all(|clause| clause.exact)
}

fn wants_any(needs: &[SummaryNeed]) -> bool {
    needs.iter().any(|need| *need != SummaryNeed::default())
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
            // A decimal's bound does not tell how many digits the value shows, unless all values show as many
            // as the bound has.
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
            Some(Decimal { unscaled: statistics.sum?, scale: scales.common, display: scales.display_max })
        }
        (true, LogicalType::Int16 | LogicalType::Int32 | LogicalType::Int64 | LogicalType::UInt64) => {
            Some(Decimal { unscaled: statistics.sum?, scale: 0, display: 0 })
        }
        _ => return None,
    };
    Some(ColumnSummary { nulls, bounds, sum })
}
