//! Takes one chunk through the three steps: prune, filter, project.
//!
//! Called by `walk` for each chunk in turn:
//! 1. The chunk's statistics are asked about all clauses with a predicate.
//! 2. Clauses filter encoded data, one after the other, until no row is left. Rows that are out are left out
//!    (`pruned_chunk`).
//! 3. The wanted columns are decoded, whole or only the rows that are left.
//!
//! A stripe cannot answer a clause on a column that it is too old to have, on one that has changed its type
//! since, or on decimals in the side lane. Such clauses are left to be checked row by row, in this chunk
//! only.
//!
//! Pruning needs the store. The rest may run on any thread.

use std::sync::Arc;

use encodings::BlockCodecs;
use vector::{LogicalType, Result, Selection, Vector};

use super::counters::Counters;
use super::plan::ChunkPlan;
use super::pruned_chunk::PrunedChunk;
use crate::{ColumnChunk, OpenStripe, Prune, StripeBytes, prune_chunk};

/// Where the values of a column come from, for the loaded chunk.
#[derive(Debug)]
pub enum ColumnOrigin {
    /// Not wanted in this chunk.
    Unwanted,
    /// Every row of the chunk.
    Whole(Arc<Vector>),
    /// The selected rows only.
    Taken(Arc<Vector>),
    /// The stripe is older than the column. The host knows the one value that all rows have.
    Missing,
}

impl ColumnOrigin {
    /// The values of the selected rows. None if they are not wanted, or the stripe does not have the column.
    pub(super) fn selected(self, selection: &Selection) -> Option<Arc<Vector>> {
        match (self, selection) {
            (Self::Whole(vector), Selection::Rows(rows)) => Some(Arc::new(vector.take(rows))),
            (Self::Whole(vector) | Self::Taken(vector), _) => Some(vector),
            (Self::Unwanted | Self::Missing, _) => None,
        }
    }
}

/// A chunk whose rows are being handed out.
#[derive(Debug)]
pub struct LoadedChunk {
    /// Row number of the chunk's first row.
    pub base: u64,
    /// Rows that passed.
    pub selection: Selection,
    /// One for each column of the scan.
    pub origins: Vec<ColumnOrigin>,
    /// Derived columns for the selected rows. None if the stripe is older than the column that they are made
    /// of.
    pub derived: Vec<Option<Vector>>,
    /// Native clauses that have to be checked row by row here, by position.
    pub checks: Vec<usize>,
    /// Selected rows handed out so far.
    pub done: usize,
}

impl LoadedChunk {
    /// `rows` rows of which nothing is known but how many there are. The first has number `base`.
    pub const fn only_rows(base: u64, rows: u32) -> Self {
        Self {
            base,
            selection: Selection::All(rows),
            origins: Vec::new(),
            derived: Vec::new(),
            checks: Vec::new(),
            done: 0,
        }
    }
}

/// Gives the chunk of a column.
pub(super) type Fetch<'a> = dyn FnMut(usize) -> Result<Box<dyn ColumnChunk>> + 'a;

/// One chunk of a stripe that is open.
pub(super) struct Place<'a> {
    pub reader: &'a dyn OpenStripe,
    pub bytes: &'a dyn StripeBytes,
    /// Number of the stripe's first row.
    pub first_row: u64,
    pub chunk: u32,
}

impl Place<'_> {
    /// Numbers of the chunk's rows.
    pub(super) fn rows(&self) -> std::ops::Range<u64> {
        let rows = self.reader.chunk_rows(self.chunk);
        self.first_row + u64::from(rows.start)..self.first_row + u64::from(rows.end)
    }

    /// Reads column chunks.
    pub(super) fn fetch(
        &self,
        codecs: &'static dyn BlockCodecs,
    ) -> impl FnMut(usize) -> Result<Box<dyn ColumnChunk>> {
        let mut fetch = self.fetch_for_later(codecs);
        move |index| {
            let mut read = fetch(index)?;
            read.verify()?;
            Ok(read)
        }
    }

    /// As `fetch`, for `PrunedChunk::read_all`. The thread that runs the chunk compares checksums.
    pub(super) fn fetch_for_later(
        &self,
        codecs: &'static dyn BlockCodecs,
    ) -> impl FnMut(usize) -> Result<Box<dyn ColumnChunk>> {
        move |index| self.reader.read_chunk(index, self.chunk, self.bytes, codecs)
    }
}

/// Asks a chunk's statistics which clauses, by position, have to be asked of its rows. None if no row can
/// pass.
pub(super) fn clauses_to_ask(place: &Place<'_>, plan: &ChunkPlan) -> Result<Option<Vec<usize>>> {
    let Place { reader, bytes, chunk, .. } = *place;
    let mut asked = Vec::new();
    for (at, (clause, prunes_only)) in plan.clauses.iter().zip(&plan.prunes_only).enumerate() {
        match prune_chunk(reader, chunk, &clause.predicate, bytes)? {
            Prune::NoRow => return Ok(None),
            Prune::SomeRows if !prunes_only => asked.push(at),
            Prune::SomeRows | Prune::AllRows => {}
        }
    }
    Ok(Some(asked))
}

/// Asks a chunk's statistics. None if no row can pass, or if all rows are out. `out` gives the positions of
/// rows that are out. It is asked only if some row can pass.
pub(super) fn prune(
    place: &Place<'_>,
    out: impl FnOnce() -> Vec<u32>,
    plan: &Arc<ChunkPlan>,
    counters: &mut Counters,
) -> Result<Option<PrunedChunk>> {
    let Place { reader, bytes, chunk, .. } = *place;
    let Some(to_filter) = clauses_to_ask(place, plan)? else {
        counters.chunks_pruned += 1;
        return Ok(None);
    };
    counters.chunks_read += 1;
    let mut side = false;
    for clause in to_filter.iter().filter_map(|&at| plan.clauses.get(at)) {
        for &index in &clause.columns {
            if reader.logical(index) == Some(LogicalType::Numeric) {
                side |= reader.has_side_values(index, chunk, bytes)?;
            }
        }
    }
    let rows = place.rows();
    counters.rows_read += rows.end - rows.start;
    let out = out();
    let live = rows.end - rows.start > out.len() as u64;
    Ok(live.then(|| PrunedChunk::new(plan, reader, rows, out, to_filter, side)))
}
