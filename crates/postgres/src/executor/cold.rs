//! Stripes, one chunk after the other, into batches.
//!
//! Called by the row loop whenever it runs out of rows. Stripes are pruned by their summaries all at once,
//! when the scan starts, because parameters may change from one start to the next; their chunks are loaded
//! (`chunk`) one at a time, and turned into Datums a batch at a time. In a parallel scan each participant
//! prunes all stripes and takes parts of them from the shared counter. Invariant: nothing of a chunk outlives
//! it, but for verdicts and Datums cached by dictionary.

use std::rc::Rc;
use std::sync::Arc;

use pgrx::pg_sys::{self, Relation};
use vector::{Error, Selection, Values};

use super::batch::{self, Fill, Step};
use super::begin::{Counters, Phase, Scan};
use super::chunk::{self, Loaded, Source};
use super::clauses::{self, Clause};
use super::hot::Hot;
use super::parallel::{PARTS, Shared};
use super::ranked::Ranked;
use super::scroll::Scroll;
use super::steps::Steps;
use crate::convert::missing_value;
use crate::host::error;
use crate::storage::change::delete_bitmap;
use crate::storage::change::row_proxy::Tombstones;
use crate::storage::directory::StripeEntry;
use crate::storage::read::stripe_on_pages::{self, Pages, StripeHandle};

/// What is left of the stripes.
pub struct Cold {
    /// Visible stripes.
    pub(super) stripes: Vec<StripeEntry>,
    /// Rows of them that are dead to the snapshot.
    pub(super) dead: Tombstones,
    /// Which of them pruning left.
    kept: Vec<bool>,
    /// The next stripe of a serial scan.
    next: usize,
    /// The stripe being read.
    pub(super) current: Option<Reading>,
    /// What is left of them, where a sort wants the first rows only.
    pub(super) ranked: Option<Ranked>,
    pub(super) loaded: Option<Loaded>,
    pub(super) steps: Arc<Steps>,
}

/// A stripe, or a part of one, being read.
pub(super) struct Reading {
    /// Position in the list of stripes.
    pub at: usize,
    /// The stripe.
    pub open: Rc<StripeHandle>,
    /// The next chunk.
    pub chunk: u32,
    /// One past the last chunk.
    pub end: u32,
}

impl Scan {
    /// Finds the next rows, and says in `phase` where they are.
    ///
    /// # Safety
    /// Called under guard while the node runs.
    pub unsafe fn refill(&mut self) {
        // SAFETY: the caller's promise: the node runs, so relation, slots and contexts are there.
        unsafe {
            match self.phase {
                Phase::Start => {
                    self.start(Vec::new());
                    if self.scrolls {
                        self.phase = Phase::Scroll;
                        return;
                    }
                }
                Phase::Cold => {}
                Phase::Hot => {
                    self.phase = Phase::Done;
                    return;
                }
                Phase::Done | Phase::Test | Phase::Scroll => return,
            }
            if !self.next_batch() {
                self.phase = if self.hot.is_some() { Phase::Hot } else { Phase::Done };
            }
        }
    }

    /// Begins, or begins again, with conditions besides the plan's that may leave rows out.
    pub(super) unsafe fn start(&mut self, more: Vec<Clause>) {
        // SAFETY: as refill; the hot scan is made in memory that lives as long as the query.
        unsafe {
            let state = (*self.custom).ss.ps.state;
            self.clauses.retain(|clause| !clause.is_narrowing());
            clauses::resolve_all(&mut self.clauses, self.econtext);
            self.clauses.extend(more);
            let steps = Steps::of(&self.columns, &self.clauses, &self.further, &self.members);
            if self.hot.is_none() {
                let shared = self.shared.as_ref().map_or(std::ptr::null_mut(), Shared::table);
                let previous = pg_sys::MemoryContextSwitchTo((*state).es_query_cxt);
                let (hot, stripes, dead) = Hot::open(self.rel, self.snapshot, shared);
                pg_sys::MemoryContextSwitchTo(previous);
                self.hot = Some(hot);
                self.cold = Some(Cold {
                    stripes,
                    dead,
                    kept: Vec::new(),
                    next: 0,
                    current: None,
                    ranked: None,
                    loaded: None,
                    steps: Arc::clone(&steps),
                });
            }
            if let Some(cold) = &mut self.cold {
                cold.steps = steps;
                cold.prune(self.rel, &self.clauses);
                cold.ranked = None;
            }
            self.phase = Phase::Cold;
        }
    }

    /// Goes back to before the first row; parameters may have changed.
    ///
    /// # Safety
    /// Called under guard between rows.
    pub unsafe fn restart(&mut self) {
        // SAFETY: as refill.
        unsafe {
            if self.phase == Phase::Start || self.phase == Phase::Test {
                return;
            }
            self.batch.at = 0;
            self.batch.end = 0;
            self.scroll = Scroll::new();
            if let Some(cold) = &mut self.cold {
                cold.next = 0;
                cold.current = None;
                cold.loaded = None;
            }
            match self.hot.take() {
                // Its shared state may be another one next time.
                Some(hot) if hot.is_parallel() => {
                    hot.close();
                    self.cold = None;
                }
                Some(hot) => {
                    hot.restart();
                    self.hot = Some(hot);
                }
                None => {}
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
        // SAFETY: the caller's promise.
        unsafe {
            self.cold = None;
            if let Some(hot) = self.hot.take() {
                hot.close();
            }
        }
    }

    /// Puts the next rows of stripes into the batch.
    unsafe fn next_batch(&mut self) -> bool {
        // SAFETY: as refill; the shared state is null or alive until shutdown.
        unsafe {
            loop {
                let Some(cold) = &mut self.cold else { return false };
                if let Some(loaded) = &mut cold.loaded {
                    if loaded.done < loaded.selection.len() {
                        break;
                    }
                    cold.loaded = None;
                }
                let only_count = self.columns.is_empty() && self.clauses.is_empty() && !self.keep_position;
                let found = cold.load_next(self.rel, only_count, self.shared.as_ref(), &mut self.counters);
                match found {
                    Ok(true) => {}
                    Ok(false) => {
                        self.report_rows_read();
                        return false;
                    }
                    Err((first_row, problem)) => error::raise_stripe(self.rel, first_row, problem),
                }
            }
            self.fill_batch();
            true
        }
    }

    /// Turns the next selected rows of the loaded chunk into Datums.
    pub(super) unsafe fn fill_batch(&mut self) {
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
                Source::Missing => {
                    // SAFETY: the row type lives as long as the open relation.
                    let (value, null) = unsafe { missing_value((*self.rel).rd_att, column.index) };
                    data.resize(count);
                    data.values.fill(value);
                    data.nulls.fill(null);
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
        // SAFETY: the relation is open.
        unsafe { self.report_rows_read() };
        if let Some(loaded) = self.cold.as_mut().and_then(|cold| cold.loaded.as_mut()) {
            loaded.done += count;
        }
    }

    /// Tells the server's statistics about rows read since it was last called, as heap does.
    pub(super) unsafe fn report_rows_read(&mut self) {
        let counters = &mut self.counters;
        let new = counters.rows_read - counters.rows_reported;
        counters.rows_reported = counters.rows_read;
        // SAFETY: null, or this backend's counters of the open relation.
        unsafe {
            if let Some(statistics) = (*self.rel).pgstat_info.as_mut() {
                statistics.t_counts.t_tuples_returned += i64::try_from(new).unwrap_or(0);
            }
        }
    }

    /// The conditions to check for each row of this batch, with cached verdicts where a column is
    /// dictionary-coded.
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
    fn prune(&mut self, rel: Relation, clauses: &[Clause]) {
        self.kept.clear();
        self.next = 0;
        for entry in &self.stripes {
            let mut possible = true;
            if !clauses.is_empty() {
                match entry.may_match(clauses.iter().map(|clause| &clause.predicate)) {
                    Ok(verdict) => possible = verdict,
                    Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
                }
            }
            self.kept.push(possible);
        }
    }

    /// Whether pruning left the stripe at this position of the list.
    pub(super) fn is_kept(&self, at: usize) -> bool {
        self.kept.get(at).copied().unwrap_or(false)
    }

    /// The next stripe to read and which part of it; None at the end.
    pub(super) fn take(&mut self, shared: Option<&Shared>, counters: &mut Counters) -> Option<(usize, u64)> {
        loop {
            let (at, part) = match shared {
                None => {
                    self.next += 1;
                    (self.next - 1, 0)
                }
                Some(shared) => {
                    let (at, part) = shared.take();
                    (usize::try_from(at).ok()?, part)
                }
            };
            if *self.kept.get(at)? {
                return Some((at, part));
            }
            counters.stripes_pruned += u64::from(part == 0);
        }
    }

    /// Loads the next chunk that has selected rows; false when there is none. Errors come with the first row
    /// number of their stripe.
    unsafe fn load_next(
        &mut self,
        rel: Relation,
        only_count: bool,
        shared: Option<&Shared>,
        counters: &mut Counters,
    ) -> std::result::Result<bool, (u64, Error)> {
        loop {
            pgrx::check_for_interrupts!();
            // SAFETY: a statement that changes rows may be what reads.
            unsafe { delete_bitmap::yield_to_waiters() }
            let Some(mut reading) = self.current.take() else {
                let Some((at, part)) = self.take(shared, counters) else { return Ok(false) };
                let Some(entry) = self.stripes.get(at) else { return Ok(false) };
                counters.stripes_read += u64::from(part == 0);
                if only_count {
                    if part > 0 {
                        continue;
                    }
                    // The directory knows the number of rows.
                    let rows = live_rows(entry, &mut self.dead);
                    counters.rows_read += u64::from(rows);
                    self.loaded = Some(Loaded::whole(entry, rows));
                    return Ok(true);
                }
                // SAFETY: rel is open.
                let open = unsafe { stripe_on_pages::open(rel, entry) }.map_err(|e| (entry.first_row, e))?;
                let chunks = u64::from(open.reader.chunk_count());
                let border = |part: u64| u32::try_from(chunks * part / PARTS).unwrap_or(u32::MAX);
                let (chunk, end) = match shared {
                    None => (0, open.reader.chunk_count()),
                    Some(_) => (border(part), border(part + 1)),
                };
                self.current = Some(Reading { at, open, chunk, end });
                continue;
            };
            if reading.chunk >= reading.end {
                continue;
            }
            let Some(entry) = self.stripes.get(reading.at) else { return Ok(false) };
            // SAFETY: rel is open.
            let pages = unsafe { Pages::new(rel, entry, std::ptr::null_mut()) };
            let loaded =
                chunk::load(&reading.open, reading.chunk, &mut self.dead, &self.steps, &pages, counters);
            let loaded = loaded.map_err(|problem| (entry.first_row, problem))?;
            reading.chunk += 1;
            self.current = Some(reading);
            if loaded.is_some() {
                self.loaded = loaded;
                return Ok(true);
            }
        }
    }
}

/// Rows of a stripe that are not dead.
pub(super) fn live_rows(entry: &StripeEntry, dead: &mut Tombstones) -> u32 {
    let dead = dead.among(entry.first_row..entry.end_row()).len();
    entry.row_count.saturating_sub(u32::try_from(dead).unwrap_or(u32::MAX))
}
