//! A scan: goes through the stripes in turn, one chunk after the other.
//!
//! A host makes a [`StripeScan`] of a store and starts it with a plan. Every start prunes all stripes by
//! their summaries, because parameters may change from one start to the next. Then their chunks come one at a
//! time, for one of two readers: `next_chunk` and `load` give what a reader of rows hands out, and
//! `next_piece` gives vectors. In a parallel scan each participant prunes all stripes and takes parts of them
//! by `Turns`.
//! Invariant: nothing of a chunk is kept once it was given out.

use std::sync::Arc;

use vector::flow::{self, Batch, Edge};

use super::ahead::{Ahead, Scanned};
use super::batch_layout::{BatchLayout, ChunkUnit};
use super::chunk::{self, LoadedChunk, Place};
use super::counters::Counters;
use super::plan::ChunkPlan;
use super::ranked::{Rank, Ranked};
use super::request::{VectorPiece, VectorRequest};
use super::store::{Located, Store, positions_out};
use super::summaries::{OfSummary, Question};
use crate::{Prune, Summary, prune_opened, prune_stripe};

/// Where participants of a parallel scan take turns.
pub trait Turns {
    /// The next part of a stripe: position of the stripe, and which of its [`PARTS`].
    fn take(&self) -> (u64, u64);
}

/// A stripe is read in this many parts, so that a handful of stripes keeps several participants busy.
pub const PARTS: u64 = 4;

/// A stripe, or a part of one, being read.
struct Reading<T> {
    /// Position in the list of stripes.
    at: usize,
    open: T,
    /// Number of its first row.
    first_row: u64,
    /// The next chunk.
    chunk: u32,
    /// One past the last chunk.
    end: u32,
}

/// What is being read, and which of its chunks comes next.
type NextReading<T> = Option<(Reading<T>, u32)>;

/// A scan of a store's stripes.
pub struct StripeScan<S: Store> {
    store: S,
    plan: Arc<ChunkPlan>,
    /// Of each stripe, whether pruning left it.
    kept: Vec<bool>,
    /// The next stripe of a serial scan.
    next: usize,
    current: Option<Reading<S::Stripe>>,
    /// What is left of the stripes, where a sort wants the first rows only.
    ranked: Option<Ranked<S>>,
    /// What the store was told to read.
    ahead: Ahead,
}

impl<S: Store> StripeScan<S> {
    /// A scan that has yet to be started.
    pub fn new(store: S) -> Self {
        let codecs = store.codecs();
        let plan = Arc::new(ChunkPlan::new(Vec::new(), Vec::new(), Vec::new(), Vec::new(), codecs));
        Self { store, plan, kept: Vec::new(), next: 0, current: None, ranked: None, ahead: Ahead::default() }
    }

    /// The store that it reads.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// The codecs of its stripes.
    pub fn codecs(&self) -> &'static dyn encodings::BlockCodecs {
        self.store.codecs()
    }

    /// Begins, or begins again: drops the stripes whose summaries prove that no row can pass.
    ///
    /// # Errors
    /// `Corrupt` where a summary is bad.
    pub fn start(&mut self, plan: Arc<ChunkPlan>) -> Result<(), Located> {
        self.kept.clear();
        self.rewind();
        self.ranked = None;
        while let Some(info) = self.store.stripe(self.kept.len()) {
            let possible = plan.clauses.is_empty()
                || may_match(info.summary, plan.clauses.iter().map(|clause| &clause.predicate))
                    .map_err(|problem| Located::new(info.first_row, problem))?;
            self.kept.push(possible);
        }
        self.plan = plan;
        Ok(())
    }

    /// Goes back to before the first stripe.
    pub fn rewind(&mut self) {
        self.next = 0;
        self.current = None;
        self.ahead = Ahead::default();
        self.store.stop_ahead();
    }

    /// From here on the chunk that can come first in this order is given first. After `start`.
    ///
    /// # Errors
    /// `Corrupt` where a summary is bad.
    pub fn rank(&mut self, rank: &Rank, counters: &mut Counters) -> Result<(), Located> {
        self.ranked = Some(Ranked::new(rank, &self.plan.columns, &self.store, &self.kept, counters)?);
        Ok(())
    }

    /// How early, in the order of its rank, the first of the rows still to come can be. None if no row is
    /// left.
    pub fn edge(&self) -> Option<Edge> {
        self.ranked.as_ref().map_or(Some(Edge::Anywhere), Ranked::edge)
    }

    /// Whether pruning left the stripe at this position.
    pub fn is_kept(&self, at: usize) -> bool {
        self.kept.get(at).copied().unwrap_or(false)
    }

    /// Rows of the stripe at this position that are not out.
    pub fn live_rows(&self, at: usize) -> u32 {
        let Some((rows, numbers)) = self.store.stripe(at).map(|info| (info.row_count, info.rows())) else {
            return 0;
        };
        let out = positions_out(&self.store, numbers).len();
        rows.saturating_sub(u32::try_from(out).unwrap_or(u32::MAX))
    }

    /// Opens the stripe at this position. None past the last one.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open(&self, at: usize) -> Result<Option<S::Stripe>, Located> {
        let Some(first_row) = self.store.stripe(at).map(|info| info.first_row) else { return Ok(None) };
        self.store.open(at).map(Some).map_err(|problem| Located::new(first_row, problem))
    }

    /// Takes a chunk of an open stripe through all steps. None when no row is left.
    ///
    /// # Errors
    /// `Corrupt` where stored bytes are bad.
    pub fn load(
        &self,
        at: usize,
        open: &S::Stripe,
        chunk: u32,
        counters: &mut Counters,
    ) -> Result<Option<LoadedChunk>, Located> {
        let Some(first_row) = self.store.stripe(at).map(|info| info.first_row) else { return Ok(None) };
        let located = |problem| Located::new(first_row, problem);
        let bytes = self.store.bytes(at).map_err(located)?;
        let place = Place { reader: S::reader(open), bytes: &bytes, first_row, chunk };
        let out = || positions_out(&self.store, place.rows());
        match chunk::prune(&place, out, &self.plan, counters).map_err(located)? {
            Some(pruned) => pruned.run(&mut place.fetch(self.plan.codecs), counters).map_err(located),
            None => Ok(None),
        }
    }

    /// The next chunk that has selected rows. None if there is none. `only_count`: the caller asks only how
    /// many rows there are, and the rows of a stripe come in one piece.
    ///
    /// # Errors
    /// `Corrupt` where stored bytes are bad.
    pub fn next_chunk(
        &mut self,
        only_count: bool,
        turns: Option<&dyn Turns>,
        counters: &mut Counters,
    ) -> Result<Option<LoadedChunk>, Located> {
        loop {
            self.store.pause();
            let Some(mut reading) = self.current.take() else {
                let Some((at, part)) = self.take(turns, counters) else { return Ok(None) };
                let Some(first_row) = self.store.stripe(at).map(|info| info.first_row) else {
                    return Ok(None);
                };
                if only_count {
                    counters.stripes_read += u64::from(part == 0);
                    if part > 0 {
                        continue;
                    }
                    let rows = self.live_rows(at);
                    counters.rows_read += u64::from(rows);
                    return Ok(Some(LoadedChunk::only_rows(first_row, rows)));
                }
                let located = |problem| Located::new(first_row, problem);
                let open = self.store.open(at).map_err(located)?;
                if !opened_may_match(&self.store, &self.plan, at, &open).map_err(located)? {
                    counters.stripes_pruned += u64::from(part == 0);
                    continue;
                }
                counters.stripes_read += u64::from(part == 0);
                let count = S::reader(&open).chunk_count();
                let border = |part: u64| u32::try_from(u64::from(count) * part / PARTS).unwrap_or(u32::MAX);
                let (chunk, end) = match turns {
                    None => (0, count),
                    Some(_) => (border(part), border(part + 1)),
                };
                self.current = Some(Reading { at, open, first_row, chunk, end });
                continue;
            };
            if reading.chunk >= reading.end {
                continue;
            }
            let end = turns.map(|_| reading.end);
            let (store, plan, kept) = (&self.store, &*self.plan, self.kept.as_slice());
            let scanned = Scanned { store, plan, kept, question: None, lazy: true, end };
            self.ahead.before((reading.at, reading.chunk), &scanned);
            let loaded = self.load(reading.at, &reading.open, reading.chunk, counters)?;
            self.ahead.count(loaded.is_some());
            reading.chunk += 1;
            self.current = Some(reading);
            if loaded.is_some() {
                return Ok(loaded);
            }
        }
    }

    /// The next rows as vectors. None at the end.
    ///
    /// # Errors
    /// `Corrupt` where stored bytes are bad, and those of conditions.
    pub fn next_piece(
        &mut self,
        request: &VectorRequest,
        layout: &Arc<BatchLayout>,
        counters: &mut Counters,
    ) -> Result<Option<VectorPiece>, Located<flow::Error>> {
        loop {
            self.store.pause();
            let Some((mut reading, chunk)) = self.next_reading(counters)? else {
                if self.ranked.is_some() {
                    return Ok(None);
                }
                let Some((at, _)) = self.take(None, counters) else { return Ok(None) };
                if let Some(piece) = self.enter_stripe(at, request, counters)? {
                    return Ok(Some(piece));
                }
                continue;
            };
            if self.ranked.is_none() {
                let (store, plan, kept) = (&self.store, &*self.plan, self.kept.as_slice());
                let (question, lazy) = (question(plan, request), !request.threads());
                let scanned = Scanned { store, plan, kept, question, lazy, end: None };
                self.ahead.before((reading.at, chunk), &scanned);
            }
            let piece = self.piece_of_chunk(&reading, chunk, request, layout, counters);
            let piece = piece.and_then(|piece| self.with_rest(piece, &mut reading, counters));
            self.ahead.count(matches!(piece, Ok(Some(_))));
            let first_row = reading.first_row;
            if self.ranked.is_none() {
                self.current = Some(reading);
            }
            if let Some(piece) = piece.map_err(|error| Located { first_row, error })? {
                return Ok(Some(piece));
            }
        }
    }

    /// The next chunk of the stripe being read, or the chunk that can come first. None if another stripe has
    /// to be entered, or if nothing is left.
    fn next_reading(&mut self, counters: &mut Counters) -> Result<NextReading<S::Stripe>, Located> {
        if let Some(ranked) = &mut self.ranked {
            let next = ranked.next(&self.store, &self.plan, counters)?;
            let Some((at, open, chunk)) = next else { return Ok(None) };
            let Some(first_row) = self.store.stripe(at).map(|info| info.first_row) else { return Ok(None) };
            return Ok(Some((Reading { at, open, first_row, chunk, end: chunk + 1 }, chunk)));
        }
        let Some(mut reading) = self.current.take().filter(|reading| reading.chunk < reading.end) else {
            return Ok(None);
        };
        reading.chunk += 1;
        let chunk = reading.chunk - 1;
        Ok(Some((reading, chunk)))
    }

    /// Begins a stripe. If its rows need not be looked at, what is returned stands for all of them.
    fn enter_stripe(
        &mut self,
        at: usize,
        request: &VectorRequest,
        counters: &mut Counters,
    ) -> Result<Option<VectorPiece>, Located> {
        let Some(first_row) = self.store.stripe(at).map(|info| info.first_row) else { return Ok(None) };
        let located = |problem| Located::new(first_row, problem);
        if let Some(known) = self.known_stripe(at, request).map_err(located)? {
            counters.rows_known += known.rows;
            return Ok(Some(VectorPiece::Known(known)));
        }
        if self.plan.only_counts() {
            counters.stripes_read += 1;
            let rows = self.live_rows(at);
            counters.rows_read += u64::from(rows);
            return Ok(Some(VectorPiece::Rows(Batch::new(rows as usize, Vec::new()))));
        }
        let open = self.store.open(at).map_err(located)?;
        if !opened_may_match(&self.store, &self.plan, at, &open).map_err(located)? {
            counters.stripes_pruned += 1;
            return Ok(None);
        }
        counters.stripes_read += 1;
        let end = S::reader(&open).chunk_count();
        self.current = Some(Reading { at, open, first_row, chunk: 0, end });
        Ok(None)
    }

    /// What statistics say of all rows of a stripe, if nothing else is wanted.
    fn known_stripe(&self, at: usize, request: &VectorRequest) -> vector::Result<Option<flow::Summary>> {
        let Some(question) = question(&self.plan, request) else { return Ok(None) };
        let Some(info) = self.store.stripe(at) else { return Ok(None) };
        match question.of_summary(info.summary, info.row_count, || self.live_rows(at))? {
            OfSummary::Unknown => Ok(None),
            OfSummary::Known(known) => Ok(Some(known)),
            OfSummary::AskColumns { live } => {
                let open = self.store.open(at)?;
                question.of_columns(S::reader(&open), &self.store.bytes(at)?, live)
            }
        }
    }

    fn piece_of_chunk(
        &self,
        reading: &Reading<S::Stripe>,
        chunk: u32,
        request: &VectorRequest,
        layout: &Arc<BatchLayout>,
        counters: &mut Counters,
    ) -> flow::Result<Option<VectorPiece>> {
        let Reading { at, open, first_row, .. } = reading;
        let bytes = self.store.bytes(*at)?;
        let place = Place { reader: S::reader(open), bytes: &bytes, first_row: *first_row, chunk };
        let out = || positions_out(&self.store, place.rows());
        if let Some(question) = question(&self.plan, request)
            && let Some(known) = question.of_chunk(&place, || out().len())?
        {
            counters.rows_known += known.rows;
            return Ok(Some(VectorPiece::Known(known)));
        }
        let Some(mut pruned) = chunk::prune(&place, out, &self.plan, counters)? else { return Ok(None) };
        let vectors = pruned.is_vectors();
        // A sort may want other chunks first than those that come in turn.
        if request.threads() && vectors && !(place.reader.is_in_turn() && self.ranked.is_some()) {
            pruned.read_all(&mut place.fetch_for_later(self.plan.codecs), counters)?;
            let late = self.ranked.as_ref().map(Ranked::taken);
            let stripe = (self.store.number(), *first_row);
            return Ok(Some(VectorPiece::Unit(ChunkUnit::new(pruned, Arc::clone(layout), stripe, late))));
        }
        let mut fetch = place.fetch(self.plan.codecs);
        let loaded = match vectors {
            true => pruned.run_with(layout, &mut fetch, counters)?,
            false => pruned.run(&mut fetch, counters)?,
        };
        let Some(loaded) = loaded else { return Ok(None) };
        if !vectors || !loaded.checks.is_empty() {
            return Ok(Some(VectorPiece::Unchecked(loaded)));
        }
        let batch = layout.batch(loaded);
        Ok((batch.rows > 0).then_some(VectorPiece::Rows(batch)))
    }

    /// Where the chunks of a stripe are decoded in turn, a unit gets the others of the stripe as well.
    fn with_rest(
        &self,
        mut piece: Option<VectorPiece>,
        reading: &mut Reading<S::Stripe>,
        counters: &mut Counters,
    ) -> flow::Result<Option<VectorPiece>> {
        let reader = S::reader(&reading.open);
        let Some(VectorPiece::Unit(unit)) = &mut piece else { return Ok(piece) };
        if !reader.is_in_turn() {
            return Ok(piece);
        }
        let bytes = self.store.bytes(reading.at)?;
        while reading.chunk < reading.end {
            self.store.pause();
            let place = Place { reader, bytes: &bytes, first_row: reading.first_row, chunk: reading.chunk };
            let out = || positions_out(&self.store, place.rows());
            if let Some(mut pruned) = chunk::prune(&place, out, &self.plan, counters)? {
                if !pruned.is_vectors() {
                    break;
                }
                pruned.read_all(&mut place.fetch_for_later(self.plan.codecs), counters)?;
                unit.push(pruned);
            }
            reading.chunk += 1;
        }
        Ok(piece)
    }

    /// The next stripe to read, and which part of it. None at the end.
    fn take(&mut self, turns: Option<&dyn Turns>, counters: &mut Counters) -> Option<(usize, u64)> {
        loop {
            let (at, part) = match turns {
                None => {
                    self.next += 1;
                    (self.next - 1, 0)
                }
                Some(turns) => {
                    let (at, part) = turns.take();
                    (usize::try_from(at).ok()?, part)
                }
            };
            if *self.kept.get(at)? {
                return Some((at, part));
            }
            counters.stripes_pruned += u64::from(part == 0);
        }
    }
}

/// What is asked of statistics. None if rows are needed in any case.
fn question<'a>(plan: &'a ChunkPlan, request: &'a VectorRequest) -> Option<Question<'a>> {
    let needs = request.summaries().filter(|_| plan.derived.is_empty())?;
    let (columns, clauses) = (plan.columns.as_slice(), plan.clauses.as_slice());
    Some(Question { columns, clauses, wanted: request.columns(), needs })
}

/// Whether the filters of an open stripe leave it a row that can pass.
pub(super) fn opened_may_match<S: Store>(
    store: &S,
    plan: &ChunkPlan,
    at: usize,
    open: &S::Stripe,
) -> vector::Result<bool> {
    let reader = S::reader(open);
    if plan.clauses.is_empty() || !reader.has_stripe_filters() {
        return Ok(true);
    }
    let bytes = store.bytes(at)?;
    for clause in &plan.clauses {
        if prune_opened(reader, &clause.predicate, &bytes)? == Prune::NoRow {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a stripe with this summary can have rows for which all predicates are TRUE.
///
/// # Errors
/// `Corrupt` where the summary is bad.
pub fn may_match<'p>(
    summary: &[u8],
    predicates: impl Iterator<Item = &'p vector::Predicate>,
) -> vector::Result<bool> {
    let summary = Summary::open(summary)?;
    for predicate in predicates {
        if prune_stripe(&summary, predicate)? == Prune::NoRow {
            return Ok(false);
        }
    }
    Ok(true)
}
