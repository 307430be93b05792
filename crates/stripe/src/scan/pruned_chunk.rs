//! The rest of the work for a chunk that its statistics did not rule out: filter and project.
//!
//! Made by `chunk::prune`. It filters encoded data, one clause after the other until no row is left, leaves
//! out rows that are out, and projects. If it owns all column chunks (`read_all`), it may run on any thread.
//! Otherwise it reads each when it needs it. Clauses that the stripe cannot answer are left to be checked row
//! by row, in this chunk only.
//!
//! Invariant: memory is bounded by one chunk a column.

use std::ops::Range;
use std::sync::Arc;

use vector::flow::{self, Batch};
use vector::{Bitmap, Error, LogicalType, Predicate, Result, Selection, Values, Vector};

use super::batch_layout::BatchLayout;
use super::chunk::{ColumnOrigin, Fetch, LoadedChunk};
use super::counters::Counters;
use super::plan::{ChunkPlan, ScanClause, ScanColumn};
use crate::{ColumnChunk, OpenStripe};

/// One column chunk of the chunk being loaded.
struct Part {
    /// What the stripe holds. None if the stripe is older than the column.
    logical: Option<LogicalType>,
    read: Option<Box<dyn ColumnChunk>>,
    decoded: Option<Vector>,
}

/// Rows of a chunk that passed the clauses so far.
struct Passed {
    selection: Selection,
    /// Native clauses that have to be checked row by row.
    checks: Vec<usize>,
    /// The values of the selected rows, of columns that were looked at.
    ready: Vec<Option<Arc<Vector>>>,
}

impl Passed {
    /// Keeps only the rows at these positions among those selected.
    fn keep(&mut self, kept: &[u32]) {
        let rows = match &self.selection {
            Selection::All(_) => kept.to_vec(),
            Selection::Rows(rows) => kept.iter().filter_map(|&at| rows.get(at as usize).copied()).collect(),
        };
        self.selection = Selection::Rows(rows);
        for ready in self.ready.iter_mut().flatten() {
            *ready = Arc::new(ready.take(kept));
        }
    }
}

/// What is left to do for a chunk that was not pruned.
pub struct PrunedChunk {
    plan: Arc<ChunkPlan>,
    base: u64,
    rows: u32,
    /// Positions of rows that are out, ascending.
    out: Vec<u32>,
    /// Clauses whose predicate has to be looked at.
    to_filter: Vec<usize>,
    /// A predicate may meet decimals in the side lane.
    side: bool,
    /// One for each column of the scan.
    parts: Vec<Part>,
}

impl PrunedChunk {
    /// For the rows with these numbers. Those at the positions `out` are out. The clauses `to_filter` have to
    /// be asked, and `side` says whether they may meet decimals in the side lane.
    pub(super) fn new(
        plan: &Arc<ChunkPlan>,
        reader: &dyn OpenStripe,
        rows: Range<u64>,
        out: Vec<u32>,
        to_filter: Vec<usize>,
        side: bool,
    ) -> Self {
        let part =
            |column: &ScanColumn| Part { logical: reader.logical(column.index), read: None, decoded: None };
        let parts = plan.columns.iter().map(part).collect();
        let count = u32::try_from(rows.end - rows.start).unwrap_or(u32::MAX);
        Self { plan: Arc::clone(plan), base: rows.start, rows: count, out, to_filter, side, parts }
    }

    /// Whether the result will be vectors only: no condition has to be checked row by row, and every wanted
    /// column has its type of today.
    pub(super) fn is_vectors(&self) -> bool {
        let wanted = self.plan.columns.iter().zip(&self.parts).filter(|(column, _)| column.wanted);
        !self.side
            && !self.plan.clauses.iter().any(|clause| clause.needs_check())
            && wanted.into_iter().all(|(column, part)| part.logical.is_none_or(|l| l == column.logical))
            && self
                .to_filter
                .iter()
                .filter_map(|&at| self.plan.clauses.get(at))
                .all(|clause| !clause.native || self.understands(clause))
    }

    /// Reads all column chunks that `run` may ask for (with `Place::fetch_for_later`).
    pub(super) fn read_all(&mut self, fetch: &mut Fetch<'_>, counters: &mut Counters) -> Result<()> {
        let needed = self.plan.needed_columns(&self.to_filter);
        for at in needed {
            if self.parts.get(at).is_some_and(|part| part.logical.is_some()) {
                self.part(at, fetch, counters)?;
            }
        }
        Ok(())
    }

    /// Filters and projects. None when no row is left.
    pub(super) fn run(
        mut self,
        fetch: &mut Fetch<'_>,
        counters: &mut Counters,
    ) -> Result<Option<LoadedChunk>> {
        let passed = self.passing(fetch, counters)?;
        passed.map(|passed| self.finish(passed, fetch, counters)).transpose()
    }

    /// As `run`, with a layout's conditions. They are not checked if rows have to be checked one by one.
    pub(super) fn run_with(
        mut self,
        layout: &BatchLayout,
        fetch: &mut Fetch<'_>,
        counters: &mut Counters,
    ) -> flow::Result<Option<LoadedChunk>> {
        let Some(mut passed) = self.passing(fetch, counters)? else { return Ok(None) };
        if passed.checks.is_empty() {
            let unread = Arc::new(Vector::new(LogicalType::Bool, Values::Bool(Bitmap::new())));
            for condition in &layout.conditions {
                let columns = vec![Arc::clone(&unread); layout.columns.len()];
                let mut batch = Batch::new(passed.selection.len(), columns);
                for &place in condition.columns() {
                    let at = layout.columns.get(place).copied().unwrap_or(usize::MAX);
                    let vector = self.selected(at, &mut passed, fetch, counters)?;
                    let known = vector.or_else(|| layout.value_of_missing(at, batch.rows));
                    if let (Some(column), Some(known)) = (batch.columns.get_mut(place), known) {
                        *column = known;
                    }
                }
                let kept = condition.select(&batch)?;
                drop(batch);
                if let Some(kept) = kept {
                    counters.rows_filtered += (passed.selection.len() - kept.len()) as u64;
                    passed.keep(&kept);
                }
                if passed.selection.is_empty() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(self.finish(passed, fetch, counters)?))
    }

    /// Filters. None when no row is left.
    fn passing(&mut self, fetch: &mut Fetch<'_>, counters: &mut Counters) -> Result<Option<Passed>> {
        let plan = Arc::clone(&self.plan);
        self.parts.iter_mut().filter_map(|part| part.read.as_mut()).try_for_each(|read| read.verify())?;
        let mut checks: Vec<usize> = (0..plan.clauses.len())
            .filter(|&at| plan.clauses.get(at).is_some_and(|clause| clause.needs_check()))
            .collect();
        let mut selection = Selection::All(self.rows);
        for at in std::mem::take(&mut self.to_filter) {
            let Some(clause) = plan.clauses.get(at) else { continue };
            let before = selection.len();
            let filtered = match clause.predicate {
                Predicate::Always(true) => true,
                _ if !self.understands(clause) => false,
                _ => match self.filter(&clause.predicate, &mut selection, fetch, counters) {
                    Ok(()) => true,
                    Err(Error::Unsupported(_)) => false,
                    Err(problem) => return Err(problem),
                },
            };
            if !filtered && clause.native && !checks.contains(&at) {
                checks.push(at);
            }
            counters.rows_filtered += (before - selection.len()) as u64;
            if selection.is_empty() {
                return Ok(None);
            }
        }
        checks.sort_unstable();
        if !self.out.is_empty() {
            selection.remove(&self.out);
            if selection.is_empty() {
                return Ok(None);
            }
        }
        let ready = plan.columns.iter().map(|_| None).collect();
        let mut passed = Passed { selection, checks, ready };
        for (at, members) in &plan.members {
            let same = plan.columns.get(*at).zip(self.parts.get(*at));
            if !same.is_some_and(|(column, part)| part.logical == Some(column.logical)) {
                continue;
            }
            let first = self.consecutive(*at, &passed, fetch, counters)?;
            let kept = match first.and_then(|first| members.select_consecutive(first, self.rows)) {
                Some(computed) => (computed.len() < self.rows as usize).then_some(computed),
                None => {
                    let vector = self.selected(*at, &mut passed, fetch, counters)?;
                    vector.and_then(|vector| members.select(&vector))
                }
            };
            if let Some(kept) = kept {
                passed.keep(&kept);
            }
            if passed.selection.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(passed))
    }

    /// Projects the rows that passed.
    fn finish(
        &mut self,
        passed: Passed,
        fetch: &mut Fetch<'_>,
        counters: &mut Counters,
    ) -> Result<LoadedChunk> {
        let plan = Arc::clone(&self.plan);
        let Passed { selection, checks, mut ready } = passed;
        let mut origins = Vec::with_capacity(plan.columns.len());
        for (at, column) in plan.columns.iter().enumerate() {
            let mut checked = checks.iter().filter_map(|&at| plan.clauses.get(at));
            let wanted = column.wanted || checked.any(|clause| clause.reads.contains(&column.index));
            origins.push(match wanted {
                true => match ready.get_mut(at).and_then(Option::take) {
                    Some(ready) => ColumnOrigin::Taken(ready),
                    None => self.project(at, &selection, fetch, counters)?,
                },
                false => ColumnOrigin::Unwanted,
            });
        }
        let mut derived = Vec::with_capacity(plan.derived.len());
        for (at, derive) in &plan.derived {
            if self.parts.get(*at).is_none_or(|part| part.logical.is_none()) {
                derived.push(None);
                continue;
            }
            let part = self.part(*at, fetch, counters)?;
            let made = match part.read.as_ref().map(|read| (read, read.as_owned())) {
                Some((_, Some(owned))) => derive.of_chunk(owned, &selection)?,
                Some((read, None)) => derive.of_vector(match &selection {
                    Selection::All(_) => read.decode(plan.codecs)?,
                    Selection::Rows(rows) => read.take(rows, plan.codecs)?,
                })?,
                None => return Err(Error::InvalidInput("a column chunk was not kept".into())),
            };
            counters.bytes_decoded += vector_bytes(&made);
            derived.push(Some(made));
        }
        Ok(LoadedChunk { base: self.base, selection, origins, derived, checks, done: 0 })
    }

    /// A column's values for the rows that passed. None if the stripe does not have the column.
    fn selected(
        &mut self,
        at: usize,
        passed: &mut Passed,
        fetch: &mut Fetch<'_>,
        counters: &mut Counters,
    ) -> Result<Option<Arc<Vector>>> {
        let Some(place) = passed.ready.get_mut(at) else { return Ok(None) };
        if place.is_none() {
            *place = self.project(at, &passed.selection, fetch, counters)?.selected(&passed.selection);
        }
        Ok(place.clone())
    }

    /// The first value of a column whose values follow each other one by one (`Chunk::consecutive`). None if
    /// they were looked at, or if not all rows have passed so far.
    fn consecutive(
        &mut self,
        at: usize,
        passed: &Passed,
        fetch: &mut Fetch<'_>,
        counters: &mut Counters,
    ) -> Result<Option<i64>> {
        let fresh = matches!(passed.selection, Selection::All(_))
            && passed.ready.get(at).is_some_and(Option::is_none);
        if !fresh {
            return Ok(None);
        }
        let codecs = self.plan.codecs;
        let part = self.part(at, fetch, counters)?;
        match &part.read {
            Some(read) if part.decoded.is_none() => read.consecutive(codecs),
            _ => Ok(None),
        }
    }

    /// Whether the stripe has the clause's columns, with the types that its predicate is about.
    fn understands(&self, clause: &ScanClause) -> bool {
        clause.columns.iter().all(|&index| {
            let place = self.plan.place(index);
            let found = place.and_then(|at| self.plan.columns.get(at).zip(self.parts.get(at)));
            found.is_some_and(|(column, part)| part.logical == Some(column.logical))
        })
    }

    fn part(&mut self, at: usize, fetch: &mut Fetch<'_>, counters: &mut Counters) -> Result<&mut Part> {
        let (Some(column), Some(part)) = (self.plan.columns.get(at), self.parts.get_mut(at)) else {
            return Err(Error::InvalidInput("column of a predicate is not wanted".into()));
        };
        if part.read.is_none() && part.decoded.is_none() {
            let read = fetch(column.index)?;
            counters.bytes_read += read.stored_bytes();
            part.read = Some(read);
        }
        Ok(part)
    }

    /// Keeps the rows for which the predicate is TRUE. On error the selection is unspecified but not larger
    /// than it was, and holds all rows that qualify.
    fn filter(
        &mut self,
        predicate: &Predicate,
        selection: &mut Selection,
        fetch: &mut Fetch<'_>,
        counters: &mut Counters,
    ) -> Result<()> {
        let columns = predicate.columns();
        match (predicate, columns.as_slice()) {
            (Predicate::Always(true), _) => Ok(()),
            (Predicate::Always(false), _) => {
                selection.retain(|_| false);
                Ok(())
            }
            (_, &[index]) => {
                let Some(at) = self.plan.place(index) else {
                    return Err(Error::InvalidInput("column of a predicate is not wanted".into()));
                };
                self.filter_column(at, predicate, selection, fetch, counters)
            }
            (Predicate::And(parts), _) => parts.iter().try_for_each(|part| match selection.is_empty() {
                true => Ok(()),
                false => self.filter(part, selection, fetch, counters),
            }),
            (Predicate::Or(parts), _) => {
                let mut passed = Bitmap::filled(self.rows as usize, false);
                let mut rest = selection.clone();
                for part in parts {
                    let mut here = rest.clone();
                    self.filter(part, &mut here, fetch, counters)?;
                    here.iter().for_each(|row| passed.set(row as usize, true));
                    // Rows that passed one part need not be asked about the next.
                    rest.retain(|row| !passed.get(row as usize));
                    if rest.is_empty() {
                        break;
                    }
                }
                selection.retain(|row| passed.get(row as usize));
                Ok(())
            }
            _ => Err(Error::Unsupported("predicate of this shape".into())),
        }
    }

    fn filter_column(
        &mut self,
        at: usize,
        predicate: &Predicate,
        selection: &mut Selection,
        fetch: &mut Fetch<'_>,
        counters: &mut Counters,
    ) -> Result<()> {
        let codecs = self.plan.codecs;
        let part = self.part(at, fetch, counters)?;
        if let Some(vector) = &part.decoded {
            return encodings::filter_vector(vector, predicate, selection);
        }
        let Some(read) = &part.read else { return Ok(()) };
        if read.filter(predicate, selection, codecs)? {
            return Ok(());
        }
        let vector = read.decode(codecs)?;
        let size = vector_bytes(&vector);
        let filtered = encodings::filter_vector(&vector, predicate, selection);
        part.decoded = Some(vector);
        counters.bytes_decoded += size;
        filtered
    }

    /// The values of a wanted column for the selected rows.
    fn project(
        &mut self,
        at: usize,
        selection: &Selection,
        fetch: &mut Fetch<'_>,
        counters: &mut Counters,
    ) -> Result<ColumnOrigin> {
        if self.parts.get(at).is_none_or(|part| part.logical.is_none()) {
            return Ok(ColumnOrigin::Missing);
        }
        let codecs = self.plan.codecs;
        let part = self.part(at, fetch, counters)?;
        if let Some(vector) = part.decoded.take() {
            return Ok(ColumnOrigin::Whole(Arc::new(vector)));
        }
        let Some(read) = &part.read else { return Ok(ColumnOrigin::Unwanted) };
        let origin = match selection {
            Selection::Rows(rows) if rows.len() * TAKE_BELOW < read.rows() as usize => {
                ColumnOrigin::Taken(Arc::new(read.take(rows, codecs)?))
            }
            _ => ColumnOrigin::Whole(Arc::new(read.decode(codecs)?)),
        };
        if let ColumnOrigin::Whole(vector) | ColumnOrigin::Taken(vector) = &origin {
            counters.bytes_decoded += vector_bytes(vector);
        }
        Ok(origin)
    }
}

/// If fewer than one row in this many is left, the rows are taken one by one.
const TAKE_BELOW: usize = 4;

/// About how many bytes were made to decode a vector. Of values that rows share, it counts only their codes.
/// `Vector::bytes` counts what the rows take.
fn vector_bytes(vector: &Vector) -> u64 {
    let bytes = match &vector.values {
        Values::Bool(bits) => bits.len() / 8,
        Values::Int16(values) => values.len() * 2,
        Values::Int32(values) => values.len() * 4,
        Values::Int64(values) => values.len() * 8,
        Values::Float32(values) => values.len() * 4,
        Values::Float64(values) => values.len() * 8,
        Values::Fixed(values) => values.bytes.len(),
        Values::Bytes(values) => values.len() * 16 + values.total_bytes(),
        Values::Numeric(values) => {
            values.len()
                * match &values.ints {
                    vector::NumericInts::Int32(_) => 4,
                    vector::NumericInts::Int64(_) => 8,
                    vector::NumericInts::Int128(_) => 16,
                }
        }
        Values::Constant(..) => 16,
        Values::Dictionary { codes, .. } => codes.len() * 4,
        Values::Runs { ends, values } => ends.len() * 4 + usize::try_from(vector_bytes(values)).unwrap_or(0),
    };
    bytes as u64
}
