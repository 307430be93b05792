//! What is left to do for a chunk that its statistics did not rule out: filter on encoded data, one clause
//! after the other until no row is left, leave out dead rows, project.
//!
//! Made by `chunk::prune`, run there and, for `vectors`, on any thread: it reads column chunks as it needs
//! them, or owns all of them. What the stripe cannot answer natively is left to be checked row by row, in
//! this chunk only. Invariant: memory is bounded by one chunk a column.

use std::ops::Range;
use std::sync::Arc;

use query::Batch;
use stripe::OwnedChunk;
use vector::{Bitmap, Error, LogicalType, Predicate, Result, Selection, Values, Vector};

use super::begin::Counters;
use super::chunk::{Fetch, Loaded, Source};
use super::shape::Shape;
use super::steps::{StepClause, StepColumn, Steps};
use crate::storage::file::codecs::ServerCodecs;
use crate::storage::read::stripe_on_pages::StripeHandle;

/// One column chunk of the chunk being loaded.
struct Part {
    /// What the stripe holds; None when it is older than the column.
    logical: Option<LogicalType>,
    read: Option<OwnedChunk>,
    decoded: Option<Vector>,
}

/// Rows of a chunk that passed the steps so far.
struct Passed {
    selection: Selection,
    /// Native clauses that have to be checked row by row.
    checks: Vec<usize>,
    /// The values of the selected rows, of columns that were looked at.
    ready: Vec<Option<Arc<Vector>>>,
}

impl Passed {
    /// Leaves the rows at these positions among those selected.
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
pub struct Work {
    steps: Arc<Steps>,
    base: u64,
    rows: u32,
    /// Positions of rows that are dead, ascending.
    dead: Vec<u32>,
    /// Clauses whose predicate has to be looked at.
    to_filter: Vec<usize>,
    /// A predicate may meet decimals in the side lane.
    side: bool,
    /// One for each column of the scan.
    parts: Vec<Part>,
}

impl Work {
    /// For `rows` rows from number `base` on, of which those at the positions `dead` are dead; the clauses
    /// `to_filter` have to be asked, and `side` says whether they may meet decimals in the side lane.
    pub(super) fn of(
        steps: &Arc<Steps>,
        open: &StripeHandle,
        rows: Range<u64>,
        dead: Vec<u32>,
        to_filter: Vec<usize>,
        side: bool,
    ) -> Self {
        let part = |column: &StepColumn| Part {
            logical: open.reader.logical(column.index),
            read: None,
            decoded: None,
        };
        let parts = steps.columns.iter().map(part).collect();
        let count = u32::try_from(rows.end - rows.start).unwrap_or(u32::MAX);
        Self { steps: Arc::clone(steps), base: rows.start, rows: count, dead, to_filter, side, parts }
    }

    /// Whether vectors are all there will be: no condition has to be checked row by row, and every wanted
    /// column has its type of today.
    pub fn is_vectors(&self) -> bool {
        let wanted = self.steps.columns.iter().zip(&self.parts).filter(|(column, _)| column.wanted);
        !self.side
            && !self.steps.clauses.iter().any(|clause| clause.needs_check)
            && wanted.into_iter().all(|(column, part)| part.logical.is_none_or(|l| l == column.logical))
            && self
                .to_filter
                .iter()
                .filter_map(|&at| self.steps.clauses.get(at))
                .all(|clause| !clause.native || self.understands(clause))
    }

    /// Reads all column chunks that `run` may ask for (`fetch_for_later`).
    pub fn read_all(&mut self, fetch: &mut Fetch<'_>, counters: &mut Counters) -> Result<()> {
        let steps = Arc::clone(&self.steps);
        let filtered = |index: usize| {
            let mut clauses = self.to_filter.iter().filter_map(|&at| steps.clauses.get(at));
            clauses.any(|clause| clause.columns.contains(&index))
        };
        let needed: Vec<usize> = (0..steps.columns.len())
            .filter(|&at| {
                let derived = steps.further.iter().any(|(of, _)| *of == at);
                let column = steps.columns.get(at);
                let asked = steps.members.iter().any(|(of, _)| *of == at);
                column.is_some_and(|column| column.wanted || derived || asked || filtered(column.index))
            })
            .collect();
        for at in needed {
            if self.parts.get(at).is_some_and(|part| part.logical.is_some()) {
                self.part(at, fetch, counters)?;
            }
        }
        Ok(())
    }

    /// Filters and projects. None when no row is left.
    pub fn run(mut self, fetch: &mut Fetch<'_>, counters: &mut Counters) -> Result<Option<Loaded>> {
        let passed = self.passing(fetch, counters)?;
        passed.map(|passed| self.finish(passed, fetch, counters)).transpose()
    }

    /// The same with a shape's conditions, which are not looked at where rows have to be checked one by one.
    pub fn run_with(
        mut self,
        shape: &Shape,
        fetch: &mut Fetch<'_>,
        counters: &mut Counters,
    ) -> query::Result<Option<Loaded>> {
        let Some(mut passed) = self.passing(fetch, counters)? else { return Ok(None) };
        if passed.checks.is_empty() {
            let unread = Arc::new(Vector::new(LogicalType::Bool, Values::Bool(Bitmap::new())));
            for condition in &shape.conditions {
                let columns = vec![Arc::clone(&unread); shape.columns.len()];
                let mut batch = Batch::new(passed.selection.len(), columns);
                for &place in condition.columns() {
                    let at = shape.columns.get(place).copied().unwrap_or(usize::MAX);
                    let vector = self.selected(at, &mut passed, fetch, counters)?;
                    let known = vector.or_else(|| shape.value_of_missing(at, batch.rows));
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
        let steps = Arc::clone(&self.steps);
        self.parts.iter_mut().filter_map(|part| part.read.as_mut()).try_for_each(OwnedChunk::verify)?;
        let mut checks: Vec<usize> = (0..steps.clauses.len())
            .filter(|&at| steps.clauses.get(at).is_some_and(|clause| clause.needs_check))
            .collect();
        let mut selection = Selection::All(self.rows);
        for at in std::mem::take(&mut self.to_filter) {
            let Some(clause) = steps.clauses.get(at) else { continue };
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
        if !self.dead.is_empty() {
            selection.retain(|row| self.dead.binary_search(&row).is_err());
            if selection.is_empty() {
                return Ok(None);
            }
        }
        let ready = steps.columns.iter().map(|_| None).collect();
        let mut passed = Passed { selection, checks, ready };
        for (at, members) in &steps.members {
            let same = steps.columns.get(*at).zip(self.parts.get(*at));
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
    fn finish(&mut self, passed: Passed, fetch: &mut Fetch<'_>, counters: &mut Counters) -> Result<Loaded> {
        let steps = Arc::clone(&self.steps);
        let Passed { selection, checks, mut ready } = passed;
        let mut sources = Vec::with_capacity(steps.columns.len());
        for (at, column) in steps.columns.iter().enumerate() {
            let mut checked = checks.iter().filter_map(|&at| steps.clauses.get(at));
            let wanted = column.wanted || checked.any(|clause| clause.reads.contains(&column.index));
            sources.push(match wanted {
                true => match ready.get_mut(at).and_then(Option::take) {
                    Some(ready) => Source::Taken(ready),
                    None => self.project(at, &selection, fetch, counters)?,
                },
                false => Source::Unwanted,
            });
        }
        let mut further = Vec::with_capacity(steps.further.len());
        for (at, derive) in &steps.further {
            if self.parts.get(*at).is_none_or(|part| part.logical.is_none()) {
                further.push(None);
                continue;
            }
            let part = self.part(*at, fetch, counters)?;
            let made = match &part.read {
                Some(read) => derive.of_chunk(read, &selection)?,
                None => return Err(Error::InvalidInput("a column chunk was not kept".into())),
            };
            counters.bytes_decoded += vector_bytes(&made);
            further.push(Some(made));
        }
        Ok(Loaded { base: self.base, selection, sources, further, checks, done: 0 })
    }

    /// A column's values for the rows that passed; None where the stripe does not have it.
    fn selected(
        &mut self,
        at: usize,
        passed: &mut Passed,
        fetch: &mut Fetch<'_>,
        counters: &mut Counters,
    ) -> Result<Option<Arc<Vector>>> {
        let Some(place) = passed.ready.get_mut(at) else { return Ok(None) };
        if place.is_none() {
            *place = match (self.project(at, &passed.selection, fetch, counters)?, &passed.selection) {
                (Source::Whole(vector), Selection::Rows(rows)) => Some(Arc::new(vector.take(rows))),
                (Source::Whole(vector) | Source::Taken(vector), _) => Some(vector),
                (Source::Unwanted | Source::Missing, _) => None,
            };
        }
        Ok(place.clone())
    }

    /// The first value of a column whose values follow each other one by one (`Chunk::consecutive`) and were
    /// not looked at, where all rows have passed so far.
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
        let part = self.part(at, fetch, counters)?;
        match &part.read {
            Some(read) if part.decoded.is_none() => read.consecutive(&ServerCodecs),
            _ => Ok(None),
        }
    }

    /// Whether the stripe has the clause's columns, with the types that its predicate is about.
    fn understands(&self, clause: &StepClause) -> bool {
        clause.columns.iter().all(|&index| {
            let place = self.steps.place(index);
            let found = place.and_then(|at| self.steps.columns.get(at).zip(self.parts.get(at)));
            found.is_some_and(|(column, part)| part.logical == Some(column.logical))
        })
    }

    fn part(&mut self, at: usize, fetch: &mut Fetch<'_>, counters: &mut Counters) -> Result<&mut Part> {
        let (Some(column), Some(part)) = (self.steps.columns.get(at), self.parts.get_mut(at)) else {
            return Err(Error::InvalidInput("column of a predicate is not wanted".into()));
        };
        if part.read.is_none() && part.decoded.is_none() {
            let read = fetch(column.index)?;
            counters.bytes_read += read.len() as u64;
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
                let Some(at) = self.steps.place(index) else {
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
        let part = self.part(at, fetch, counters)?;
        if let Some(vector) = &part.decoded {
            return encodings::filter_vector(vector, predicate, selection);
        }
        let Some(read) = &part.read else { return Ok(()) };
        if read.filter(predicate, selection, &ServerCodecs)? {
            return Ok(());
        }
        let vector = read.decode(&ServerCodecs)?;
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
    ) -> Result<Source> {
        if self.parts.get(at).is_none_or(|part| part.logical.is_none()) {
            return Ok(Source::Missing);
        }
        let part = self.part(at, fetch, counters)?;
        if let Some(vector) = part.decoded.take() {
            return Ok(Source::Whole(Arc::new(vector)));
        }
        let Some(read) = &part.read else { return Ok(Source::Unwanted) };
        let source = match selection {
            Selection::Rows(rows) if rows.len() * TAKE_BELOW < read.rows() as usize => {
                Source::Taken(Arc::new(read.take(rows, &ServerCodecs)?))
            }
            _ => Source::Whole(Arc::new(read.decode(&ServerCodecs)?)),
        };
        if let Source::Whole(vector) | Source::Taken(vector) = &source {
            counters.bytes_decoded += vector_bytes(vector);
        }
        Ok(source)
    }
}

/// Rows are taken one by one when fewer than one in this many survived.
const TAKE_BELOW: usize = 4;

/// About how many bytes were made to decode a vector: of values that rows share only their codes, where
/// `Vector::bytes` says what the rows take.
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
