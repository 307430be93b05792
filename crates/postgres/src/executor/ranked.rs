//! Which chunk a sort that wants the first rows only is given next: of those left, the one whose rows can
//! come first by the sort's first key.
//!
//! Made by `vectors` when the scan starts, from the stripes that pruning left. Stripes stand in one queue by
//! their summaries' bounds; one that comes to the front is opened and gives way to its chunks. What comes to
//! the front past the sort's bound is skipped: its pages are never read. Invariant: what statistics do not
//! know is given out first, and never skipped.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

use pgrx::pg_sys::Relation;
use query::{Edge, Extent, Ranking};
use stripe::{ColumnStatistics, Summary};
use vector::{Error, LogicalType};

use super::begin::{Column, Counters};
use super::cold::Cold;
use crate::storage::directory::StripeEntry;
use crate::storage::read::stripe_on_pages::{self, Pages, StripeHandle};

/// How a sort wants rows.
pub struct Rank {
    /// Position in `Scan::columns` of its first key.
    pub column: usize,
    /// How far it wants them, by now.
    pub bound: Arc<dyn Ranking>,
}

/// A stripe, or a chunk of an open one.
struct Entry {
    bound: Arc<dyn Ranking>,
    edge: Edge,
    /// Position in the list of stripes.
    at: usize,
    chunk: Option<u32>,
}

/// What comes first is greatest, as a heap gives that out; among equals the order they are stored in.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |entry: &Self| (entry.at, entry.chunk);
        self.bound.compare(&other.edge, &self.edge).then_with(|| place(other).cmp(&place(self)))
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
type Next = (usize, Rc<StripeHandle>, u32);

/// What is left of a scan's stripes, what can come first in front.
pub struct Ranked {
    bound: Arc<dyn Ranking>,
    /// Position in `Scan::columns` of the sort's first key.
    column: usize,
    queue: BinaryHeap<Entry>,
    /// The stripe that was read last.
    open: Option<(usize, Rc<StripeHandle>)>,
    /// The edge of the chunk that was given out last.
    taken: Edge,
}

impl Ranked {
    /// Of the stripes that pruning left. Errors come with the first row number of their stripe.
    pub fn of(
        rank: &Rank,
        columns: &[Column],
        cold: &Cold,
        counters: &mut Counters,
    ) -> Result<Self, (u64, Error)> {
        let mut queue = Vec::with_capacity(cold.stripes.len());
        for (at, entry) in cold.stripes.iter().enumerate() {
            if !cold.is_kept(at) {
                counters.stripes_pruned += 1;
                continue;
            }
            let edge = match columns.get(rank.column) {
                Some(column) => {
                    let known = Summary::open(&entry.summary).and_then(|known| known.column(column.index));
                    let known = known.map_err(|problem| (entry.first_row, problem))?;
                    let known = known.as_ref().map(|(logical, known)| (*logical, known));
                    edge(rank.bound.as_ref(), column, known)
                }
                None => Edge::Anywhere,
            };
            queue.push(Entry { bound: Arc::clone(&rank.bound), edge, at, chunk: None });
        }
        let (bound, column) = (Arc::clone(&rank.bound), rank.column);
        Ok(Self { bound, column, queue: queue.into(), open: None, taken: Edge::Anywhere })
    }

    /// How early the first row left can come; None where none is left.
    pub fn edge(&self) -> Option<Edge> {
        self.queue.peek().map(|entry| entry.edge.clone())
    }

    /// What tells whether the chunk given out last is still of use.
    pub fn taken(&self) -> (Arc<dyn Ranking>, Edge) {
        (Arc::clone(&self.bound), self.taken.clone())
    }

    /// The next chunk; None at the end. Errors come with the first row number of their stripe.
    ///
    /// # Safety
    /// `rel` is open.
    pub unsafe fn next(
        &mut self,
        rel: Relation,
        stripes: &[StripeEntry],
        columns: &[Column],
        counters: &mut Counters,
    ) -> Result<Option<Next>, (u64, Error)> {
        while let Some(Entry { edge, at, chunk, .. }) = self.queue.pop() {
            if self.bound.is_past(&edge) {
                match chunk {
                    None => counters.stripes_skipped += 1,
                    Some(_) => counters.chunks_skipped += 1,
                }
                continue;
            }
            let Some(entry) = stripes.get(at) else { continue };
            let located = |problem: Error| (entry.first_row, problem);
            let open = match self.open.take().filter(|(open, _)| *open == at) {
                Some((_, open)) => open,
                // SAFETY: the caller's promise.
                None => unsafe { stripe_on_pages::open(rel, entry) }.map_err(located)?,
            };
            self.open = Some((at, Rc::clone(&open)));
            if let Some(chunk) = chunk {
                self.taken = edge;
                return Ok(Some((at, open, chunk)));
            }
            counters.stripes_read += 1;
            // SAFETY: the caller's promise.
            let pages = unsafe { Pages::new(rel, entry, std::ptr::null_mut()) };
            for chunk in 0..open.reader.chunk_count() {
                let edge = self.edge_of_chunk(columns, &open, chunk, &pages).map_err(located)?;
                let bound = Arc::clone(&self.bound);
                self.queue.push(Entry { bound, edge, at, chunk: Some(chunk) });
            }
        }
        Ok(None)
    }

    fn edge_of_chunk(
        &self,
        columns: &[Column],
        open: &StripeHandle,
        chunk: u32,
        pages: &Pages,
    ) -> vector::Result<Edge> {
        let Some(column) = columns.get(self.column) else { return Ok(Edge::Anywhere) };
        let known = match open.reader.logical(column.index) {
            Some(logical) => Some((logical, open.reader.statistics(column.index, chunk, pages)?)),
            None => None,
        };
        Ok(edge(self.bound.as_ref(), column, known))
    }
}

/// How early rows can come of which these statistics tell, if they are about the type that the column has
/// now.
fn edge(bound: &dyn Ranking, column: &Column, known: Option<(LogicalType, &ColumnStatistics)>) -> Edge {
    let Some((_, known)) = known.filter(|(logical, _)| *logical == column.logical) else {
        return Edge::Anywhere;
    };
    // Values of the side lane are outside the bounds.
    let end = |end: &'_ Option<stripe::Bound>| end.as_ref().filter(|_| known.side_rows == 0).cloned();
    let (least, greatest) = (end(&known.min), end(&known.max));
    bound.edge(Extent {
        nulls: known.null_count > 0,
        values: known.value_count() > 0,
        least: least.as_ref().map(|end| &end.value),
        greatest: greatest.as_ref().map(|end| &end.value),
    })
}
