//! Stripes and chunks: prune, filter, project.
//!
//! Called by the row loop whenever it runs out of rows. A chunk is taken through the steps in this order: its statistics (all clauses with a predicate), native
//! filtering on encoded data one clause after the other until no row is left, then the wanted columns, decoded whole or only the surviving rows.
//! What a stripe cannot answer natively (a column it is too old to have or that has changed its type since, decimals in the side lane) is checked
//! row by row for that chunk. Invariant: memory is bounded by one chunk a column; nothing of a chunk outlives it.

use std::rc::Rc;

use pgrx::pg_sys::{self, Datum, Relation};
use stripe::{OwnedChunk, Prune, Summary, prune_chunk, prune_stripe};
use vector::{Error, Predicate, Result, Selection, Values, Vector};

use super::batch::{self, Fill, Step};
use super::begin::{Column, Counters, Phase, Scan};
use super::clauses::{self, Clause};
use super::hot::Hot;
use crate::convert::missing_value;
use crate::host::error;
use crate::storage::codecs::ServerCodecs;
use crate::storage::directory::StripeEntry;
use crate::storage::open_stripe::{self, OpenStripe, Pages};

/// Where the values of a wanted column come from, for the loaded chunk.
enum Source {
    /// Not wanted in this chunk.
    Unwanted,
    /// Every row of the chunk.
    Whole(Vector),
    /// The selected rows only.
    Taken(Vector),
    /// The stripe is older than the column: one value for every row.
    Missing(Datum, bool),
}

/// A chunk whose rows are being handed out.
struct Loaded {
    /// Row number of the chunk's first row.
    base: u64,
    selection: Selection,
    /// One for each of `Scan::columns`.
    sources: Vec<Source>,
    /// Native clauses that have to be checked row by row here.
    checks: Vec<usize>,
    /// Selected rows handed out so far.
    done: usize,
}

/// What is left of the stripes.
pub struct Cold {
    /// Visible stripes.
    stripes: Vec<StripeEntry>,
    /// Those that pruning left, by position.
    kept: Vec<usize>,
    /// The next of `kept`.
    next: usize,
    /// The stripe being read and its next chunk.
    current: Option<(usize, Rc<OpenStripe>, u32)>,
    loaded: Option<Loaded>,
}

impl Scan {
    /// Finds the next rows, and says in `phase` where they are.
    ///
    /// # Safety
    /// Called under guard while the node runs.
    pub unsafe fn refill(&mut self) {
        unsafe {
            match self.phase {
                Phase::Start => self.start(),
                Phase::Cold => {}
                Phase::Hot => {
                    self.phase = Phase::Done;
                    return;
                }
                Phase::Done | Phase::Test => return,
            }
            if !self.next_batch() {
                self.phase = if self.hot.is_some() { Phase::Hot } else { Phase::Done };
            }
        }
    }

    /// Begins, or begins again.
    unsafe fn start(&mut self) {
        unsafe {
            let state = (*self.custom).ss.ps.state;
            clauses::resolve_all(&mut self.clauses, self.econtext);
            if self.hot.is_none() {
                let previous = pg_sys::MemoryContextSwitchTo((*state).es_query_cxt);
                let (hot, stripes) = Hot::open(self.rel, self.snapshot);
                pg_sys::MemoryContextSwitchTo(previous);
                self.hot = Some(hot);
                self.cold = Some(Cold { stripes, kept: Vec::new(), next: 0, current: None, loaded: None });
            }
            if let Some(cold) = &mut self.cold {
                cold.prune(self.rel, &self.clauses, &mut self.counters);
            }
            self.phase = Phase::Cold;
        }
    }

    /// Goes back to before the first row; parameters may have changed.
    ///
    /// # Safety
    /// Called under guard between rows.
    pub unsafe fn restart(&mut self) {
        unsafe {
            if self.phase == Phase::Start || self.phase == Phase::Test {
                return;
            }
            self.batch.at = 0;
            self.batch.end = 0;
            if let Some(cold) = &mut self.cold {
                cold.next = 0;
                cold.current = None;
                cold.loaded = None;
            }
            if let Some(hot) = &self.hot {
                hot.restart();
            }
            for residual in &mut self.residuals {
                residual.verdicts.clear();
            }
            self.phase = Phase::Start;
        }
    }

    /// Gives back what the server holds for us.
    ///
    /// # Safety
    /// Called once, when the node ends without an ERROR.
    pub unsafe fn close(&mut self) {
        unsafe {
            self.cold = None;
            if let Some(hot) = self.hot.take() {
                hot.close();
            }
        }
    }

    /// Puts the next rows of stripes into the batch.
    unsafe fn next_batch(&mut self) -> bool {
        unsafe {
            loop {
                let Some(cold) = &mut self.cold else { return false };
                if let Some(loaded) = &mut cold.loaded {
                    if loaded.done < loaded.selection.len() {
                        break;
                    }
                    cold.loaded = None;
                }
                let found = cold.load_next(
                    self.rel,
                    &self.columns,
                    &self.clauses,
                    self.keep_position,
                    &mut self.counters,
                );
                match found {
                    Ok(true) => {}
                    Ok(false) => return false,
                    Err((first_row, problem)) => error::raise_stripe(self.rel, first_row, problem),
                }
            }
            self.fill_batch();
            true
        }
    }

    /// Turns the next selected rows of the loaded chunk into Datums.
    unsafe fn fill_batch(&mut self) {
        let Some(loaded) = self.cold.as_mut().and_then(|cold| cold.loaded.as_mut()) else { return };
        let left = loaded.selection.len() - loaded.done;
        let any_values = loaded.sources.iter().any(|source| !matches!(source, Source::Unwanted));
        // Without values there is nothing to bound.
        let count = if any_values || self.keep_position { left.min(batch::ROWS) } else { left };
        let range = loaded.done..loaded.done + count;
        let picked = match &loaded.selection {
            Selection::Rows(rows) => Some(Selection::Rows(rows.get(range.clone()).unwrap_or(&[]).to_vec())),
            Selection::All(_) => None,
        };
        for (column, source) in self.columns.iter_mut().zip(&loaded.sources) {
            let data = &mut column.data;
            match source {
                Source::Unwanted => continue,
                Source::Missing(value, null) => {
                    data.resize(count);
                    data.values.fill(*value);
                    data.nulls.fill(*null);
                }
                Source::Whole(vector) | Source::Taken(vector) => {
                    data.resize(count);
                    column.reader.reset();
                    let (values, nulls) = (data.values.as_mut_slice(), data.nulls.as_mut_slice());
                    match (&picked, source) {
                        (Some(rows), Source::Whole(_)) => column.reader.datums(vector, rows, values, nulls),
                        _ => column.reader.datums_in(vector, range.clone(), values, nulls),
                    };
                }
            }
        }
        let batch = &mut self.batch;
        batch.at = 0;
        batch.end = count;
        batch.base = loaded.base;
        batch.positions.clear();
        if self.keep_position {
            match &picked {
                Some(Selection::Rows(rows)) => batch.positions.extend_from_slice(rows),
                _ => batch.positions.extend(range.clone().filter_map(|row| u32::try_from(row).ok())),
            }
        }
        self.set_steps(&picked, range);
        self.set_fills();
        if let Some(loaded) = self.cold.as_mut().and_then(|cold| cold.loaded.as_mut()) {
            loaded.done += count;
        }
    }

    /// The conditions to check for each row of this batch, with cached verdicts where a column is dictionary-coded.
    fn set_steps(&mut self, picked: &Option<Selection>, range: std::ops::Range<usize>) {
        let Some(loaded) = self.cold.as_ref().and_then(|cold| cold.loaded.as_ref()) else { return };
        let steps = &mut self.batch.steps;
        steps.clear();
        for clause in loaded.checks.iter().filter_map(|&at| self.clauses.get(at)) {
            steps.push(Step {
                state: clause.qual,
                codes: std::ptr::null(),
                verdicts: std::ptr::null_mut(),
                native: true,
            });
        }
        for residual in &mut self.residuals {
            let mut step = Step {
                state: residual.state,
                codes: std::ptr::null(),
                verdicts: std::ptr::null_mut(),
                native: false,
            };
            let coded = residual.column.and_then(|at| {
                let column = self.columns.get_mut(at)?;
                let (vector, taken) = match loaded.sources.get(at)? {
                    Source::Whole(vector) => (vector, false),
                    Source::Taken(vector) => (vector, true),
                    _ => return None,
                };
                let Values::Dictionary { codes, dictionary } = &vector.values else { return None };
                let code = |row: usize| match vector.is_valid(row) {
                    true => codes.get(row).copied().filter(|&c| (c as usize) < dictionary.entries.len()),
                    false => None,
                };
                let data = &mut column.data.codes;
                data.clear();
                match picked {
                    Some(Selection::Rows(rows)) if !taken => {
                        data.extend(rows.iter().map(|&row| code(row as usize).unwrap_or(batch::NO_CODE)));
                    }
                    _ => data.extend(range.clone().map(|row| code(row).unwrap_or(batch::NO_CODE))),
                }
                Some((data.as_ptr(), dictionary))
            });
            if let Some((codes, dictionary)) = coded {
                if residual.dictionary != dictionary.id || residual.verdicts.len() != dictionary.entries.len()
                {
                    residual.dictionary = dictionary.id;
                    residual.verdicts.clear();
                    residual.verdicts.resize(dictionary.entries.len(), batch::UNKNOWN);
                }
                step.codes = codes;
                step.verdicts = residual.verdicts.as_mut_ptr();
            }
            steps.push(step);
        }
    }

    /// Where each column's Datums go.
    fn set_fills(&mut self) {
        let Some(loaded) = self.cold.as_ref().and_then(|cold| cold.loaded.as_ref()) else { return };
        let batch = &mut self.batch;
        batch.checks.clear();
        batch.fills.clear();
        batch.outputs.clear();
        for (column, source) in self.columns.iter().zip(&loaded.sources) {
            if matches!(source, Source::Unwanted) {
                continue;
            }
            let fill = Fill {
                values: column.data.values.as_ptr(),
                nulls: column.data.nulls.as_ptr(),
                to: column.index,
            };
            let checked = !batch.steps.is_empty()
                && (column.in_checks
                    || loaded
                        .checks
                        .iter()
                        .filter_map(|&at| self.clauses.get(at))
                        .any(|clause| clause.reads.contains(&column.index)));
            if checked {
                batch.checks.push(fill);
            }
            if column.in_rows && !self.direct {
                batch.fills.push(fill);
            }
        }
        if self.direct {
            for (to, wanted) in self.output_columns.iter().enumerate() {
                if let Some(column) = self.columns.iter().find(|column| column.index == *wanted) {
                    batch.outputs.push(Fill {
                        values: column.data.values.as_ptr(),
                        nulls: column.data.nulls.as_ptr(),
                        to,
                    });
                }
            }
        }
    }
}

impl Cold {
    /// Drops the stripes whose summaries prove that no row can pass.
    fn prune(&mut self, rel: Relation, clauses: &[Clause], counters: &mut Counters) {
        self.kept.clear();
        self.next = 0;
        for (at, entry) in self.stripes.iter().enumerate() {
            let mut possible = true;
            if !clauses.is_empty() {
                match may_match(entry, clauses.iter().map(|clause| &clause.predicate)) {
                    Ok(verdict) => possible = verdict,
                    Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
                }
            }
            match possible {
                true => self.kept.push(at),
                false => counters.stripes_pruned += 1,
            }
        }
    }

    /// Loads the next chunk that has selected rows; false when there is none. Errors come with the first row number of their stripe.
    unsafe fn load_next(
        &mut self,
        rel: Relation,
        columns: &[Column],
        clauses: &[Clause],
        keep_position: bool,
        counters: &mut Counters,
    ) -> std::result::Result<bool, (u64, Error)> {
        loop {
            pgrx::check_for_interrupts!();
            let Some((at, open, chunk)) = self.current.take() else {
                let Some(&at) = self.kept.get(self.next) else { return Ok(false) };
                let Some(entry) = self.stripes.get(at) else { return Ok(false) };
                self.next += 1;
                counters.stripes_read += 1;
                if columns.is_empty() && clauses.is_empty() && !keep_position {
                    // Only the number of rows matters, and the directory knows it.
                    self.loaded = Some(Loaded {
                        base: entry.first_row,
                        selection: Selection::All(entry.row_count),
                        sources: Vec::new(),
                        checks: Vec::new(),
                        done: 0,
                    });
                    return Ok(true);
                }
                // SAFETY: rel is open.
                let open = unsafe { open_stripe::open(rel, entry) }.map_err(|e| (entry.first_row, e))?;
                self.current = Some((at, open, 0));
                continue;
            };
            if chunk >= open.reader.chunk_count() {
                continue;
            }
            let Some(entry) = self.stripes.get(at) else { return Ok(false) };
            // SAFETY: rel is open.
            let loaded = unsafe { load(rel, entry, &open, chunk, columns, clauses, counters) };
            let loaded = loaded.map_err(|problem| (entry.first_row, problem))?;
            self.current = Some((at, open, chunk + 1));
            if loaded.is_some() {
                self.loaded = loaded;
                return Ok(true);
            }
        }
    }
}

/// Whether a stripe can have rows for which all predicates are TRUE.
pub fn may_match<'p>(entry: &StripeEntry, predicates: impl Iterator<Item = &'p Predicate>) -> Result<bool> {
    let summary = Summary::open(&entry.summary)?;
    for predicate in predicates {
        if prune_stripe(&summary, predicate)? == Prune::NoRow {
            return Ok(false);
        }
    }
    Ok(true)
}

/// One column chunk of the chunk being loaded.
#[derive(Default)]
struct Part {
    read: Option<OwnedChunk>,
    decoded: Option<Vector>,
}

/// Reading one chunk.
struct Loader<'a> {
    open: &'a OpenStripe,
    pages: Pages,
    chunk: u32,
    columns: &'a [Column],
    /// One for each of `columns`.
    parts: Vec<Part>,
    counters: &'a mut Counters,
}

/// Takes a chunk through prune, filter and project. None when no row is left.
unsafe fn load(
    rel: Relation,
    entry: &StripeEntry,
    open: &OpenStripe,
    chunk: u32,
    columns: &[Column],
    clauses: &[Clause],
    counters: &mut Counters,
) -> Result<Option<Loaded>> {
    // SAFETY: rel is open.
    let pages = unsafe { Pages::new(rel, entry, std::ptr::null_mut()) };
    let mut to_filter = Vec::new();
    for (at, clause) in clauses.iter().enumerate() {
        match prune_chunk(&open.reader, chunk, &clause.predicate, &pages)? {
            Prune::NoRow => {
                counters.chunks_pruned += 1;
                return Ok(None);
            }
            Prune::SomeRows => to_filter.push(at),
            Prune::AllRows => {}
        }
    }
    counters.chunks_read += 1;
    let rows = open.reader.chunk_rows(chunk);
    let mut checks: Vec<usize> =
        (0..clauses.len()).filter(|&at| clauses.get(at).is_some_and(Clause::needs_check)).collect();
    let mut loader = Loader {
        open,
        pages,
        chunk,
        columns,
        parts: columns.iter().map(|_| Part::default()).collect(),
        counters,
    };
    let mut selection = Selection::All(rows.end - rows.start);
    for at in to_filter {
        let Some(clause) = clauses.get(at) else { continue };
        let before = selection.len();
        let filtered = match clause.predicate {
            Predicate::Always(true) => true,
            _ if !loader.understands(clause) => false,
            _ => match loader.filter(&clause.predicate, &mut selection) {
                Ok(()) => true,
                Err(Error::Unsupported(_)) => false,
                Err(problem) => return Err(problem),
            },
        };
        if !filtered && clause.native && !checks.contains(&at) {
            checks.push(at);
        }
        loader.counters.rows_filtered += (before - selection.len()) as u64;
        if selection.is_empty() {
            return Ok(None);
        }
    }
    checks.sort_unstable();
    let mut sources = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let wanted = column.in_rows
            || column.in_checks
            || checks
                .iter()
                .filter_map(|&at| clauses.get(at))
                .any(|clause| clause.reads.contains(&column.index));
        sources.push(match wanted {
            true => unsafe { loader.project(at, rel, &selection)? },
            false => Source::Unwanted,
        });
    }
    let base = entry.first_row + u64::from(rows.start);
    Ok(Some(Loaded { base, selection, sources, checks, done: 0 }))
}

impl Loader<'_> {
    /// Whether the stripe has the clause's columns, with the types that its predicate is about.
    fn understands(&self, clause: &Clause) -> bool {
        clause.columns.iter().all(|&index| {
            self.columns.iter().any(|column| {
                column.index == index && self.open.reader.logical(index) == Some(column.logical)
            })
        })
    }

    fn part(&mut self, at: usize) -> Result<&mut Part> {
        let (Some(column), Some(part)) = (self.columns.get(at), self.parts.get_mut(at)) else {
            return Err(Error::InvalidInput("column of a predicate is not wanted".into()));
        };
        if part.read.is_none() && part.decoded.is_none() {
            let read = self.open.reader.read_chunk(column.index, self.chunk, &self.pages, &ServerCodecs)?;
            self.counters.bytes_read += read.len() as u64;
            part.read = Some(read);
        }
        Ok(part)
    }

    /// Keeps the rows for which the predicate is TRUE. On error the selection is unspecified but not larger than it was, and holds all
    /// rows that qualify.
    fn filter(&mut self, predicate: &Predicate, selection: &mut Selection) -> Result<()> {
        let columns = predicate.columns();
        match (predicate, columns.as_slice()) {
            (Predicate::Always(true), _) => Ok(()),
            (Predicate::Always(false), _) => {
                selection.retain(|_| false);
                Ok(())
            }
            (_, &[index]) => {
                let Some(at) = self.columns.iter().position(|column| column.index == index) else {
                    return Err(Error::InvalidInput("column of a predicate is not wanted".into()));
                };
                self.filter_column(at, predicate, selection)
            }
            (Predicate::And(parts), _) => parts.iter().try_for_each(|part| match selection.is_empty() {
                true => Ok(()),
                false => self.filter(part, selection),
            }),
            (Predicate::Or(parts), _) => {
                let mut rest = selection.clone();
                let mut passed: Vec<u32> = Vec::new();
                for part in parts {
                    let mut here = rest.clone();
                    self.filter(part, &mut here)?;
                    let kept: Vec<u32> = here.iter().collect();
                    let mut at = 0;
                    // Rows that passed one part need not be asked about the next.
                    rest.retain(|row| {
                        while kept.get(at).is_some_and(|&k| k < row) {
                            at += 1;
                        }
                        kept.get(at) != Some(&row)
                    });
                    passed.extend(kept);
                    if rest.is_empty() {
                        break;
                    }
                }
                passed.sort_unstable();
                let mut at = 0;
                selection.retain(|row| {
                    while passed.get(at).is_some_and(|&k| k < row) {
                        at += 1;
                    }
                    passed.get(at) == Some(&row)
                });
                Ok(())
            }
            _ => Err(Error::Unsupported("predicate of this shape".into())),
        }
    }

    fn filter_column(&mut self, at: usize, predicate: &Predicate, selection: &mut Selection) -> Result<()> {
        let part = self.part(at)?;
        if let Some(vector) = &part.decoded {
            return encodings::filter_vector(vector, predicate, selection);
        }
        let Some(read) = &part.read else { return Ok(()) };
        if read.filter(predicate, selection, &ServerCodecs)? {
            return Ok(());
        }
        let vector = read.decode(&ServerCodecs)?;
        let size = super::cold::vector_bytes(&vector);
        let filtered = encodings::filter_vector(&vector, predicate, selection);
        part.decoded = Some(vector);
        self.counters.bytes_decoded += size;
        filtered
    }

    /// The values of a wanted column for the selected rows.
    unsafe fn project(&mut self, at: usize, rel: Relation, selection: &Selection) -> Result<Source> {
        let Some(column) = self.columns.get(at) else { return Ok(Source::Unwanted) };
        if column.index >= self.open.reader.column_count() {
            // SAFETY: the row type lives as long as the open relation.
            let (value, null) = unsafe { missing_value((*rel).rd_att, column.index) };
            return Ok(Source::Missing(value, null));
        }
        let part = self.part(at)?;
        if let Some(vector) = part.decoded.take() {
            return Ok(Source::Whole(vector));
        }
        let Some(read) = &part.read else { return Ok(Source::Unwanted) };
        let source = match selection {
            Selection::Rows(rows) if rows.len() * TAKE_BELOW < read.rows() as usize => {
                Source::Taken(read.take(rows, &ServerCodecs)?)
            }
            _ => Source::Whole(read.decode(&ServerCodecs)?),
        };
        if let Source::Whole(vector) | Source::Taken(vector) = &source {
            self.counters.bytes_decoded += vector_bytes(vector);
        }
        Ok(source)
    }
}

/// Rows are taken one by one when fewer than one in this many survived.
const TAKE_BELOW: usize = 4;

/// About how many bytes the values of a vector take.
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
