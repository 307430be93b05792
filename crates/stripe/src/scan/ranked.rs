//! Chooses the next chunk for a sort that wants only the first rows: of those left, the one whose rows can
//! come first by the sort's first key.
//!
//! Made by `walk` when the scan starts, from the stripes that pruning left. Stripes stand in one queue by
//! their summaries' bounds. A stripe that comes to the front is opened and replaced by its chunks. A stripe
//! or chunk that comes to the front and is past the sort's bound is skipped: its pages are never read.
//!
//! Invariant: stripes and chunks whose statistics know no bound are given out first, and never skipped.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use vector::flow::{Edge, Extent, Ranking};
use vector::{Error, LogicalType};

use super::counters::Counters;
use super::plan::{ChunkPlan, ScanColumn};
use super::store::{Located, Store};
use super::walk::opened_may_match;
use crate::{ColumnStatistics, OpenStripe, StripeBytes, Summary};

/// How a sort wants rows.
#[derive(Clone)]
pub struct Rank {
    /// Position of its first key among the columns of the scan.
    pub column: usize,
    /// How far it wants them, by now.
    pub ranking: Arc<dyn Ranking>,
}

/// A stripe, or a chunk of an open one.
struct Entry {
    ranking: Arc<dyn Ranking>,
    edge: Edge,
    /// Position in the list of stripes.
    at: usize,
    chunk: Option<u32>,
}

/// The entry that comes first is the greatest, because a heap gives out the greatest. Equal entries come in
/// the order in which they are stored.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |entry: &Self| (entry.at, entry.chunk);
        self.ranking.compare(&other.edge, &self.edge).then_with(|| place(other).cmp(&place(self)))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

/// A chunk to be read: its stripe's position in the list, the stripe, and which of its chunks.
type Next<T> = (usize, T, u32);

/// What is left of a scan's stripes. In front is what can come first.
pub(super) struct Ranked<S: Store> {
    ranking: Arc<dyn Ranking>,
    /// Position of the sort's first key among the columns of the scan.
    column: usize,
    queue: BinaryHeap<Entry>,
    /// The stripe that was read last.
    open: Option<(usize, S::Stripe)>,
    /// The edge of the chunk that was given out last.
    taken: Edge,
}

impl<S: Store> Ranked<S> {
    /// Of the stripes that pruning left.
    pub(super) fn new(
        rank: &Rank,
        columns: &[ScanColumn],
        store: &S,
        kept: &[bool],
        counters: &mut Counters,
    ) -> Result<Self, Located> {
        let mut queue = Vec::with_capacity(kept.len());
        for (at, &kept) in kept.iter().enumerate() {
            let Some(info) = store.stripe(at) else { break };
            if !kept {
                counters.stripes_pruned += 1;
                continue;
            }
            let edge = match columns.get(rank.column) {
                Some(column) => {
                    let known = Summary::open(info.summary).and_then(|known| known.column(column.index));
                    let known = known.map_err(|problem| Located::new(info.first_row, problem))?;
                    let known = known.as_ref().map(|(logical, known)| (*logical, known));
                    edge(rank.ranking.as_ref(), column, known)
                }
                None => Edge::Anywhere,
            };
            queue.push(Entry { ranking: Arc::clone(&rank.ranking), edge, at, chunk: None });
        }
        let (ranking, column) = (Arc::clone(&rank.ranking), rank.column);
        Ok(Self { ranking, column, queue: queue.into(), open: None, taken: Edge::Anywhere })
    }

    /// How early the first of the rows left can come. None if no row is left.
    pub(super) fn edge(&self) -> Option<Edge> {
        self.queue.peek().map(|entry| entry.edge.clone())
    }

    /// What tells whether the chunk that was given out last is still of use.
    pub(super) fn taken(&self) -> (Arc<dyn Ranking>, Edge) {
        (Arc::clone(&self.ranking), self.taken.clone())
    }

    /// The next chunk. None at the end.
    pub(super) fn next(
        &mut self,
        store: &S,
        plan: &ChunkPlan,
        counters: &mut Counters,
    ) -> Result<Option<Next<S::Stripe>>, Located> {
        while let Some(Entry { edge, at, chunk, .. }) = self.queue.pop() {
            if self.ranking.is_past(&edge) {
                match chunk {
                    None => counters.stripes_skipped += 1,
                    Some(_) => counters.chunks_skipped += 1,
                }
                continue;
            }
            let Some(first_row) = store.stripe(at).map(|info| info.first_row) else { continue };
            let located = |problem: Error| Located::new(first_row, problem);
            let open = match self.open.take().filter(|(open, _)| *open == at) {
                Some((_, open)) => open,
                None => store.open(at).map_err(located)?,
            };
            if chunk.is_none() && !opened_may_match(store, plan, at, &open).map_err(located)? {
                counters.stripes_pruned += 1;
                continue;
            }
            self.open = Some((at, open.clone()));
            if let Some(chunk) = chunk {
                self.taken = edge;
                return Ok(Some((at, open, chunk)));
            }
            counters.stripes_read += 1;
            let (reader, bytes) = (S::reader(&open), store.bytes(at).map_err(located)?);
            for chunk in 0..reader.chunk_count() {
                let edge = self.edge_of_chunk(&plan.columns, reader, chunk, &bytes).map_err(located)?;
                let ranking = Arc::clone(&self.ranking);
                self.queue.push(Entry { ranking, edge, at, chunk: Some(chunk) });
            }
        }
        Ok(None)
    }

    fn edge_of_chunk(
        &self,
        columns: &[ScanColumn],
        reader: &dyn OpenStripe,
        chunk: u32,
        bytes: &dyn StripeBytes,
    ) -> vector::Result<Edge> {
        let Some(column) = columns.get(self.column) else { return Ok(Edge::Anywhere) };
        let known = match reader.logical(column.index) {
            Some(logical) => reader.statistics(column.index, chunk, bytes)?.map(|known| (logical, known)),
            None => None,
        };
        Ok(edge(self.ranking.as_ref(), column, known))
    }
}

/// How early the rows that these statistics describe can come. The statistics count only if they are about
/// the type that the column has now.
fn edge(ranking: &dyn Ranking, column: &ScanColumn, known: Option<(LogicalType, &ColumnStatistics)>) -> Edge {
    let Some((_, known)) = known.filter(|(logical, _)| *logical == column.logical) else {
        return Edge::Anywhere;
    };
    // Values of the side lane are outside the bounds.
    let bounded = known.side_rows == 0;
    ranking.edge(Extent {
        nulls: known.null_count > 0,
        values: known.value_count() > 0,
        least: known.min.as_ref().filter(|_| bounded).map(|end| &end.value),
        greatest: known.max.as_ref().filter(|_| bounded).map(|end| &end.value),
    })
}
