//! Turns a chunk into a batch, and into units of work that any thread can do.
//!
//! A host makes the layout when a scan starts, and `walk` hands out chunks with it. The layout says which
//! columns a batch has, and which conditions of a plan the scan checks on the way.
//!
//! Invariant: rows of a unit have passed all conditions of its layout.

use std::collections::VecDeque;
use std::sync::Arc;

use vector::flow::{self, Batch, Edge, Ranking, RowFilter, Step, Unit};
use vector::{Values, Vector};

use super::chunk::LoadedChunk;
use super::counters::{Counters, Tally};
use super::pruned_chunk::PrunedChunk;

/// How a chunk's columns become those of a batch.
#[derive(Default)]
pub struct BatchLayout {
    /// Positions among the columns of the scan, in the order of the batch's columns.
    pub columns: Vec<usize>,
    /// One row for each column of the scan: the value in stripes that are older than the column. It also
    /// stands in columns that nobody reads.
    pub missing: Vec<Option<Arc<Vector>>>,
    /// The same for each derived column.
    pub missing_derived: Vec<Arc<Vector>>,
    /// What has to be TRUE of the batch's rows, in this order.
    pub conditions: Vec<Arc<dyn RowFilter>>,
    /// What units of this layout count.
    pub tally: Arc<Tally>,
}

impl BatchLayout {
    /// The selected rows of a chunk.
    pub fn batch(&self, loaded: LoadedChunk) -> Batch {
        let LoadedChunk { selection, origins, derived, .. } = loaded;
        let mut ready: Vec<Option<Arc<Vector>>> = Vec::with_capacity(origins.len());
        for (at, origin) in origins.into_iter().enumerate() {
            ready.push(match self.columns.contains(&at) {
                true => origin.selected(&selection).or_else(|| self.value_of_missing(at, selection.len())),
                false => None,
            });
        }
        let columns = self.columns.iter().filter_map(|&at| ready.get(at).cloned().flatten());
        let made = derived.into_iter().zip(&self.missing_derived);
        let made = made.map(|(made, missing)| match made {
            Some(made) => Arc::new(made),
            None => constant(missing, selection.len()),
        });
        Batch::new(selection.len(), columns.chain(made).collect())
    }

    /// `rows` rows of a column of the scan that a stripe does not have.
    pub fn value_of_missing(&self, at: usize, rows: usize) -> Option<Arc<Vector>> {
        self.missing.get(at).and_then(Option::as_ref).map(|value| constant(value, rows))
    }

    /// The rows of a batch that pass the conditions.
    pub fn passing(&self, mut batch: Batch) -> flow::Result<Batch> {
        for condition in &self.conditions {
            if let Some(rows) = condition.select(&batch)? {
                batch = batch.take(&rows);
            }
        }
        Ok(batch)
    }
}

fn constant(value: &Arc<Vector>, rows: usize) -> Arc<Vector> {
    let value = value.as_ref().clone();
    Arc::new(Vector::new(value.logical, Values::Constant(Box::new(value), rows)))
}

/// A chunk whose column chunks are all there, or several of one stripe.
pub struct ChunkUnit {
    chunks: VecDeque<PrunedChunk>,
    layout: Arc<BatchLayout>,
    /// The host's number of what is scanned and the stripe's first row number, for errors.
    stripe: (u32, u64),
    /// What may have learned meanwhile that none of its rows is wanted.
    late: Option<(Arc<dyn Ranking>, Edge)>,
}

impl ChunkUnit {
    /// The rest of the work for a chunk of the stripe with this number and first row. Nothing of the chunk is
    /// wanted once its edge is past what `late` ranks by.
    pub(super) fn new(
        chunk: PrunedChunk,
        layout: Arc<BatchLayout>,
        stripe: (u32, u64),
        late: Option<(Arc<dyn Ranking>, Edge)>,
    ) -> Self {
        Self { chunks: [chunk].into(), layout, stripe, late }
    }

    /// The next chunk of the same stripe is worked on as well, after the others.
    pub(super) fn push(&mut self, chunk: PrunedChunk) {
        self.chunks.push_back(chunk);
    }
}

impl Unit for ChunkUnit {
    fn next(&mut self) -> flow::Result<Step> {
        while let Some(chunk) = self.chunks.pop_front() {
            if self.late.as_ref().is_some_and(|(ranking, edge)| ranking.is_past(edge)) {
                break;
            }
            if let Some(batch) = self.batch_of(chunk)? {
                return Ok(Step::Batch(batch));
            }
        }
        Ok(Step::Done)
    }
}

impl ChunkUnit {
    /// The rows of a chunk that pass. None where there is none.
    fn batch_of(&self, chunk: PrunedChunk) -> flow::Result<Option<Batch>> {
        let mut counters = Counters::default();
        let absent = || vector::Error::InvalidInput("a column chunk was not read".into());
        let loaded = chunk.run_with(&self.layout, &mut |_| Err(absent()), &mut counters);
        let loaded = loaded.map_err(|problem| match problem {
            flow::Error::Data(problem) => problem.in_stripe(self.stripe.0, self.stripe.1).into(),
            other => other,
        })?;
        let Some(loaded) = loaded else {
            self.layout.tally.add(0, &counters);
            return Ok(None);
        };
        if !loaded.checks.is_empty() {
            self.layout.tally.add(0, &counters);
            return Err(flow::Error::Decline("a condition has to be checked row by row"));
        }
        let batch = self.layout.batch(loaded);
        self.layout.tally.add(batch.rows, &counters);
        Ok((batch.rows > 0).then_some(batch))
    }
}
