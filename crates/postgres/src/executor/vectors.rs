//! Rows of the scan as vectors: what the vectorised executor takes from the node instead of rows.
//!
//! Called by `vectorised::source` on a node that was initialised like any other and never runs itself.
//! Stripes come chunk by chunk through the same prune, filter and project as rows do; then hot rows, a
//! slotful at a time. Conditions of the plan's qual are left to the caller, native ones are answered here.
//! Invariant: a vector has the logical type that the column's type has now, whatever the stripe says.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, Datum};
use query::{Batch, Edge, Members, Ranking, RowFilter, Summary, SummaryNeed};
use vector::{Predicate, Selection, Vector};

use super::begin::{Column, Phase, Scan};
use super::chunk::{self, Loaded, Source};
use super::clauses::Clause;
use super::ranked::{Rank, Ranked};
use super::shape::{ChunkUnit, Shape};
use super::steps::Further;
use super::{cold, known, rows};
use crate::convert::{ColumnWriter, missing_value};
use crate::host::error;
use crate::storage::read::stripe_on_pages::{self, Pages};

/// What comes next.
pub enum Piece {
    /// Rows.
    Rows(Batch),
    /// Rows that are known without looking at them.
    Known(Summary),
    /// A chunk that any thread can turn into rows.
    Work(ChunkUnit),
}

/// Hot rows taken at once: each holds a pin on its page.
const SLOTS: usize = 64;

/// What the caller wants of a scan.
#[derive(Default)]
pub struct Wanted {
    /// Positions in `Scan::columns`, in the order of the batch's columns.
    columns: Vec<usize>,
    /// What has to be known of each of them to take a summary; None where rows are needed.
    summaries: Option<Vec<SummaryNeed>>,
    /// Rows that do not pass these need not come.
    narrowed: Vec<Predicate>,
    /// Rows that do not pass these must not come.
    conditions: Vec<Arc<dyn RowFilter>>,
    /// A condition was not taken, so that none that follows may be.
    refused: bool,
    /// Chunks are handed out whole, for other threads to filter and decode.
    threads: bool,
    /// Known once the scan starts.
    shape: Arc<Shape>,
    /// Hot rows that were looked at to know how early rows can come.
    pending: Option<Batch>,
}

impl Wanted {
    /// These attributes (zero-based) of a scan that has not started, which serves vectors from now on.
    /// `threads`: chunks may be worked on elsewhere. Positions of attributes in `unread` may hold anything;
    /// `further` columns are made of attributes, named by position, and follow them.
    pub fn of(
        scan: &mut Scan,
        attributes: &[usize],
        unread: &[usize],
        further: Further,
        threads: bool,
    ) -> Option<Self> {
        let place = |&wanted: &usize| scan.columns.iter().position(|column| column.index == wanted);
        let columns: Vec<usize> = attributes.iter().map(place).collect::<Option<_>>()?;
        let read = |at: usize| {
            let mut places = columns.iter().enumerate();
            places.any(|(place, &column)| column == at && !unread.contains(&place))
        };
        for (at, column) in scan.columns.iter_mut().enumerate() {
            column.in_rows = read(at);
            column.in_checks = false;
        }
        let made = |(place, derive)| Some((columns.get::<usize>(place).copied()?, derive));
        scan.members.clear();
        scan.rank = None;
        scan.further = further.into_iter().map(made).collect::<Option<_>>()?;
        scan.keep_position = false;
        Some(Self { columns, threads, ..Self::default() })
    }

    /// Summaries are welcome where these things are known.
    pub fn allow_summaries(&mut self, needs: &[SummaryNeed]) {
        self.summaries = Some(needs.to_vec());
    }

    /// Rows whose value in this column of the batch is not among `members` need not come. False: they come.
    pub fn narrow_members(&self, scan: &mut Scan, column: usize, members: &Arc<dyn Members>) -> bool {
        let place = self.columns.get(column).copied();
        scan.members.extend(place.map(|at| (at, Arc::clone(members))));
        place.is_some()
    }

    /// Rows past the bound by this column of the batch need not come, and those that can come first are
    /// wanted first. False: the bound is not asked.
    pub fn rank(&self, scan: &mut Scan, column: usize, bound: &Arc<dyn Ranking>) -> bool {
        let place = self.columns.get(column).copied();
        scan.rank = place.map(|column| Rank { column, bound: Arc::clone(bound) });
        place.is_some()
    }

    /// Rows for which this is not TRUE do not come. False: they come.
    pub fn filter(&mut self, condition: &Arc<dyn RowFilter>) -> bool {
        // Columns past those of the scan are made when all others are there.
        let reads = condition.columns();
        self.refused |= reads.is_empty() || reads.iter().any(|&column| column >= self.columns.len());
        if !self.refused {
            self.conditions.push(Arc::clone(condition));
        }
        !self.refused
    }

    /// Rows for which this is not TRUE need not come. Columns are positions in the batch.
    pub fn narrow(&mut self, scan: &Scan, mut predicate: Predicate) {
        let attribute = |at: usize| self.columns.get(at).and_then(|&at| scan.columns.get(at));
        if predicate.rename(&|at| attribute(at).map(|column| column.index)) {
            self.narrowed.push(predicate);
        }
    }
}

impl Scan {
    /// The next rows; None at the end.
    ///
    /// # Errors
    /// Those of conditions.
    ///
    /// # Safety
    /// Called under guard, on the main thread, while the node is initialised.
    pub unsafe fn next_piece(&mut self, wanted: &mut Wanted) -> query::Result<Option<Piece>> {
        // SAFETY: the caller's promise.
        unsafe {
            loop {
                if let Some(batch) = wanted.pending.take() {
                    return Ok(Some(Piece::Rows(wanted.shape.passing(batch)?)));
                }
                match self.phase {
                    Phase::Start => self.start_vectors(wanted),
                    Phase::Cold => {
                        let piece = self.cold_piece(wanted);
                        self.report_rows_read();
                        match piece {
                            Ok(Some(piece)) => return Ok(Some(piece)),
                            Ok(None) if self.rank.is_some() => self.phase = Phase::Done,
                            Ok(None) => self.phase = Phase::Hot,
                            Err((first_row, query::Error::Data(problem))) => {
                                error::raise_stripe(self.rel, first_row, problem)
                            }
                            Err((_, problem)) => return Err(problem),
                        }
                    }
                    Phase::Hot => match self.hot_batch(wanted) {
                        Some(batch) => return Ok(Some(Piece::Rows(wanted.shape.passing(batch)?))),
                        None => self.phase = self.after_hot(),
                    },
                    Phase::Done | Phase::Test | Phase::Scroll => return Ok(None),
                }
            }
        }
    }

    /// Begins, or begins again.
    unsafe fn start_vectors(&mut self, wanted: &mut Wanted) {
        let narrowed = wanted.narrowed.iter().cloned().map(Clause::narrowing).collect();
        // SAFETY: the caller's promise, that of `next_piece`.
        unsafe { self.start(narrowed) };
        wanted.shape = match self.shape(wanted) {
            Ok(shape) => shape,
            Err(problem) => error::raise_plain(problem),
        };
        if let (Some(rank), Some(cold)) = (&self.rank, &mut self.cold) {
            match Ranked::of(rank, &self.columns, cold, &mut self.counters) {
                Ok(ranked) => cold.ranked = Some(ranked),
                Err((first_row, problem)) => error::raise_stripe(self.rel, first_row, problem),
            }
            // All hot rows have to be looked at, and the bound that comes of them may spare stripes.
            self.phase = Phase::Hot;
        }
    }

    /// What comes when hot rows are used up.
    const fn after_hot(&self) -> Phase {
        if self.rank.is_some() { Phase::Cold } else { Phase::Done }
    }

    /// How early, in the order of its rank, the first row still to come can be; None where none is left.
    ///
    /// # Safety
    /// As `next_piece`.
    pub unsafe fn edge(&mut self, wanted: &mut Wanted) -> Option<Edge> {
        if self.phase == Phase::Start {
            // SAFETY: the caller's promise.
            unsafe { self.start_vectors(wanted) };
        }
        while self.phase == Phase::Hot && wanted.pending.is_none() {
            // SAFETY: the caller's promise.
            match unsafe { self.hot_batch(wanted) } {
                Some(batch) => wanted.pending = (batch.rows > 0).then_some(batch),
                None => self.phase = self.after_hot(),
            }
        }
        match self.phase {
            _ if wanted.pending.is_some() => Some(Edge::Anywhere),
            Phase::Start | Phase::Hot => Some(Edge::Anywhere),
            Phase::Cold => match self.cold.as_ref().map(|cold| cold.ranked.as_ref()) {
                Some(Some(ranked)) => ranked.edge(),
                Some(None) => Some(Edge::Anywhere),
                None => None,
            },
            Phase::Scroll | Phase::Done | Phase::Test => None,
        }
    }

    /// Rows that units made since this was asked last.
    pub fn take_unit_rows(&self) -> u64 {
        self.tally.rows.swap(0, Ordering::Relaxed)
    }

    /// The next rows of stripes; an error with the first row of the stripe that it was met in.
    unsafe fn cold_piece(&mut self, wanted: &Wanted) -> Result<Option<Piece>, (u64, query::Error)> {
        loop {
            pgrx::check_for_interrupts!();
            let Some(cold) = &mut self.cold else { return Ok(None) };
            if let Some(ranked) = &mut cold.ranked {
                // SAFETY: rel is open.
                let next = unsafe { ranked.next(self.rel, &cold.stripes, &self.columns, &mut self.counters) };
                let next = next.map_err(|(first_row, problem)| (first_row, problem.into()))?;
                let Some((at, open, chunk)) = next else { return Ok(None) };
                cold.current = Some(cold::Reading { at, open, chunk, end: chunk + 1 });
            }
            let Some(mut reading) = cold.current.take() else {
                let Some((at, _)) = cold.take(None, &mut self.counters) else { return Ok(None) };
                let Some(entry) = cold.stripes.get(at) else { return Ok(None) };
                let located = |problem: vector::Error| (entry.first_row, problem.into());
                if let Some(needs) = wanted.summaries.as_ref().filter(|_| self.further.is_empty()) {
                    // SAFETY: rel is open.
                    let known = unsafe {
                        let live = cold::live_rows(entry, &mut cold.dead);
                        let (clauses, columns) = (&self.clauses, &self.columns);
                        known::stripe(self.rel, entry, live, clauses, columns, &wanted.columns, needs)
                    };
                    if let Some(known) = known.map_err(located)? {
                        self.counters.rows_known += known.rows;
                        return Ok(Some(Piece::Known(known)));
                    }
                }
                self.counters.stripes_read += 1;
                if self.columns.is_empty() && self.clauses.is_empty() {
                    let rows = cold::live_rows(entry, &mut cold.dead);
                    self.counters.rows_read += u64::from(rows);
                    return Ok(Some(Piece::Rows(Batch::new(rows as usize, Vec::new()))));
                }
                // SAFETY: rel is open.
                let open = unsafe { stripe_on_pages::open(self.rel, entry) }.map_err(located)?;
                let end = open.reader.chunk_count();
                cold.current = Some(cold::Reading { at, open, chunk: 0, end });
                continue;
            };
            if reading.chunk >= reading.end {
                continue;
            }
            let Some(entry) = cold.stripes.get(reading.at) else { return Ok(None) };
            let located = |problem: vector::Error| (entry.first_row, problem.into());
            let chunk = reading.chunk;
            reading.chunk += 1;
            let open = std::rc::Rc::clone(&reading.open);
            if cold.ranked.is_none() {
                cold.current = Some(reading);
            }
            if let Some(needs) = wanted.summaries.as_ref().filter(|_| self.further.is_empty()) {
                let (clauses, columns) = (&self.clauses, &self.columns);
                let rows = open.reader.chunk_rows(chunk);
                let rows = entry.first_row + u64::from(rows.start)..entry.first_row + u64::from(rows.end);
                let dead = cold.dead.among(rows).len();
                // SAFETY: rel is open.
                let known = unsafe {
                    known::chunk(
                        self.rel,
                        entry,
                        &open,
                        chunk,
                        dead,
                        clauses,
                        columns,
                        &wanted.columns,
                        needs,
                    )
                };
                if let Some(known) = known.map_err(located)? {
                    self.counters.rows_known += known.rows;
                    return Ok(Some(Piece::Known(known)));
                }
            }
            // SAFETY: rel is open.
            let pages = unsafe { Pages::new(self.rel, entry, std::ptr::null_mut()) };
            let work = chunk::prune(&open, chunk, &mut cold.dead, &cold.steps, &pages, &mut self.counters);
            let Some(mut work) = work.map_err(located)? else { continue };
            if wanted.threads && work.is_vectors() {
                let mut fetch = chunk::fetch_for_later(&open, chunk, &pages);
                work.read_all(&mut fetch, &mut self.counters).map_err(located)?;
                // SAFETY: rel is open.
                let stripe = unsafe { ((*self.rel).rd_id.to_u32(), entry.first_row) };
                let unit = ChunkUnit::new(work, Arc::clone(&wanted.shape), stripe);
                let late = cold.ranked.as_ref().map(Ranked::taken);
                return Ok(Some(Piece::Work(unit.unless(late))));
            }
            let mut fetch = chunk::fetch(&open, chunk, &pages);
            let first_row = entry.first_row;
            let within = |problem: query::Error| (first_row, problem);
            let vectors = work.is_vectors();
            let loaded = match vectors {
                true => work.run_with(&wanted.shape, &mut fetch, &mut self.counters).map_err(within)?,
                false => work.run(&mut fetch, &mut self.counters).map_err(located)?,
            };
            if let Some(loaded) = loaded {
                let judged = vectors && loaded.checks.is_empty();
                // SAFETY: the caller's promise.
                let mut batch = unsafe { self.loaded_batch(loaded, wanted) };
                if !judged {
                    batch = wanted.shape.passing(batch).map_err(within)?;
                }
                if batch.rows > 0 {
                    return Ok(Some(Piece::Rows(batch)));
                }
            }
        }
    }

    /// How chunks of this scan become batches.
    fn shape(&self, wanted: &Wanted) -> vector::Result<Arc<Shape>> {
        let missing = |(at, column): (usize, &Column)| {
            wanted.columns.contains(&at).then(|| {
                let mut writer = ColumnWriter::new(*column.reader.kind());
                // SAFETY: the row type lives as long as the open relation; its value is of the column's type.
                unsafe {
                    let (value, null) = missing_value((*self.rel).rd_att, column.index);
                    writer.push_value(value, null);
                }
                Arc::new(writer.take())
            })
        };
        let missing: Vec<_> = self.columns.iter().enumerate().map(missing).collect();
        let mut missing_further = Vec::with_capacity(self.further.len());
        for (at, derive) in &self.further {
            if let Some(value) = missing.get(*at).and_then(Option::as_ref) {
                missing_further.push(Arc::new(derive.of_vector(value.as_ref().clone())?));
            }
        }
        Ok(Arc::new(Shape {
            columns: wanted.columns.clone(),
            missing,
            missing_further,
            conditions: wanted.conditions.clone(),
            tally: Arc::clone(&self.tally),
        }))
    }

    /// The selected rows of a chunk.
    unsafe fn loaded_batch(&mut self, mut loaded: Loaded, wanted: &Wanted) -> Batch {
        let mut passed = None;
        if !loaded.checks.is_empty() {
            // SAFETY: the caller's promise.
            (loaded, passed) = unsafe { self.check_rows(loaded) };
        }
        for (source, column) in loaded.sources.iter_mut().zip(&mut self.columns) {
            // SAFETY: as above.
            unsafe { as_of_today(column, source) };
        }
        let mut batch = wanted.shape.batch(loaded.sources, loaded.further, &loaded.selection);
        if let Some(rows) = passed {
            batch = batch.take(&rows);
        }
        batch
    }

    /// Runs the native conditions that a chunk could not answer, row by row: which of the selected rows pass.
    unsafe fn check_rows(&mut self, loaded: Loaded) -> (Loaded, Option<Vec<u32>>) {
        let mut passed = Vec::new();
        let mut first = 0u32;
        let count = loaded.selection.len();
        if let Some(cold) = &mut self.cold {
            cold.loaded = Some(loaded);
        }
        // SAFETY: the node is initialised; the batch keeps every pointer readable for its rows.
        unsafe {
            while (first as usize) < count {
                self.fill_batch();
                let end = self.batch.end;
                if end == 0 {
                    break;
                }
                for at in 0..end {
                    pg_sys::MemoryContextReset((*self.econtext).ecxt_per_tuple_memory);
                    rows::fill_for_checks(self, at);
                    (*self.econtext).ecxt_scantuple = self.scan_slot;
                    let native = self.batch.steps.iter().filter(|step| step.native);
                    if native.map(|step| step.state).all(|state| pg_sys::ExecQual(state, self.econtext)) {
                        passed.push(first + at as u32);
                    }
                }
                first += end as u32;
            }
        }
        self.counters.rows_filtered += (count - passed.len()) as u64;
        let loaded = self.cold.as_mut().and_then(|cold| cold.loaded.take());
        let empty = Loaded {
            base: 0,
            selection: Selection::All(0),
            sources: Vec::new(),
            further: Vec::new(),
            checks: Vec::new(),
            done: 0,
        };
        (loaded.unwrap_or(empty), Some(passed))
    }

    /// Hot rows that pass the native conditions; None when there are no more.
    unsafe fn hot_batch(&mut self, wanted: &Wanted) -> Option<Batch> {
        let hot = self.hot.as_ref()?;
        // SAFETY: scan, slots and expressions belong to the initialised node; the closure owns nothing that
        // an ERROR could skip.
        unsafe {
            if self.hot_slots.is_empty() {
                let previous = pg_sys::MemoryContextSwitchTo((*(*self.custom).ss.ps.state).es_query_cxt);
                // Once for all starts; released with the others of the executor state.
                let tables = &raw mut (*(*self.custom).ss.ps.state).es_tupleTable;
                self.hot_slots = (0..SLOTS).map(|_| pg_sys::table_slot_create(self.rel, tables)).collect();
                pg_sys::MemoryContextSwitchTo(previous);
            }
            let mut writers: Vec<(usize, ColumnWriter)> = Vec::new();
            for column in wanted.columns.iter().filter_map(|&at| self.columns.get(at)) {
                writers.push((column.index, ColumnWriter::new(*column.reader.kind())));
            }
            let mut rows = 0;
            let mut ended = false;
            while !ended && rows + SLOTS <= query::BATCH_ROWS {
                pgrx::check_for_interrupts!();
                let mut found = 0;
                let (steps, econtext, columns) = (&self.hot_steps, self.econtext, self.hot_columns);
                let slots = self.hot_slots.as_slice();
                let (mut seen, mut filtered) = (0, 0);
                pg_guard_ffi_boundary(|| {
                    while let Some(&slot) = slots.get(found) {
                        if !hot.next_into(slot) {
                            ended = true;
                            break;
                        }
                        rows::deform(slot, columns);
                        seen += 1;
                        if rows::passes_native(steps, econtext, slot) {
                            found += 1;
                        } else {
                            filtered += 1;
                        }
                    }
                });
                self.counters.hot_rows += seen;
                self.counters.hot_filtered += filtered;
                rows += found;
                for (index, writer) in &mut writers {
                    writer.push(slots.get(..found).unwrap_or_default(), *index);
                }
            }
            if ended {
                for &slot in &self.hot_slots {
                    pg_sys::ExecClearTuple(slot);
                }
                self.phase = self.after_hot();
            }
            let mut columns: Vec<Arc<Vector>> =
                writers.iter_mut().map(|(_, writer)| Arc::new(writer.take())).collect();
            for (at, derive) in &self.further {
                let place = wanted.columns.iter().position(|column| column == at);
                let Some(values) = place.and_then(|place| columns.get(place)) else { continue };
                match derive.of_vector(values.as_ref().clone()) {
                    Ok(made) => columns.push(Arc::new(made)),
                    Err(problem) => error::raise_plain(problem),
                }
            }
            (rows > 0 || !ended).then(|| Batch::new(rows, columns))
        }
    }
}

/// Gives a vector the type that its column has now: one with the same bytes (integer to oid, say), or the
/// table would have been rewritten.
unsafe fn as_of_today(column: &mut Column, source: &mut Source) {
    let (Source::Whole(vector) | Source::Taken(vector)) = source else { return };
    if vector.logical == column.reader.kind().logical {
        return;
    }
    let mut writer = ColumnWriter::new(*column.reader.kind());
    let (mut values, mut nulls) = (vec![Datum::null(); vector.len()], vec![true; vector.len()]);
    column.reader.reset();
    column.reader.datums_in(vector, 0..vector.len(), &mut values, &mut nulls);
    // SAFETY: Datums of the column's type, alive until the reader is reset.
    unsafe { writer.push_datums(&values, &nulls) };
    *vector = Arc::new(writer.take());
}
