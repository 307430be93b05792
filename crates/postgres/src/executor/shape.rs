//! How a chunk becomes a batch: which columns, which conditions of the vectorised plan are looked at on the
//! way, and units of work that any thread can do.
//!
//! `vectors` makes the shape when the scan starts and hands out chunks with it. Invariant: rows of a unit
//! have passed all conditions of its shape.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use query::{Batch, Edge, Ranking, RowFilter, Step, Unit};
use vector::{Selection, Values, Vector};

use super::begin::Counters;
use super::chunk::Source;
use super::work::Work;

/// How a chunk's columns become those of a batch.
#[derive(Default)]
pub struct Shape {
    /// Positions in `Scan::columns`, in the order of the batch's columns.
    pub columns: Vec<usize>,
    /// One row for each of `Scan::columns`: the value in stripes that are older than it, which also stands
    /// where nobody reads the column.
    pub missing: Vec<Option<Arc<Vector>>>,
    /// The same for each further column.
    pub missing_further: Vec<Arc<Vector>>,
    /// What has to be TRUE of the batch's rows, in this order.
    pub conditions: Vec<Arc<dyn RowFilter>>,
    /// For EXPLAIN.
    pub tally: Arc<Tally>,
}

/// What units on other threads counted.
#[derive(Debug, Default)]
pub struct Tally {
    /// Rows that they gave.
    pub rows: AtomicU64,
    /// Rows left out by conditions.
    pub rows_filtered: AtomicU64,
    /// Bytes of values decoded.
    pub bytes_decoded: AtomicU64,
}

impl Shape {
    /// The columns of these sources for the selected rows.
    pub fn batch(&self, sources: Vec<Source>, further: Vec<Option<Vector>>, selection: &Selection) -> Batch {
        let mut ready: Vec<Option<Arc<Vector>>> = Vec::with_capacity(sources.len());
        for (at, source) in sources.into_iter().enumerate() {
            let wanted = self.columns.contains(&at);
            ready.push(match (source, selection) {
                _ if !wanted => None,
                (Source::Whole(vector), Selection::All(_)) | (Source::Taken(vector), _) => Some(vector),
                (Source::Whole(vector), Selection::Rows(rows)) => Some(vector.take(rows).into()),
                (Source::Missing | Source::Unwanted, _) => self.value_of_missing(at, selection.len()),
            });
        }
        let columns = self.columns.iter().filter_map(|&at| ready.get(at).cloned().flatten());
        let further = further.into_iter().zip(&self.missing_further);
        let further = further.map(|(made, missing)| match made {
            Some(made) => Arc::new(made),
            None => constant(missing, selection.len()),
        });
        Batch::new(selection.len(), columns.chain(further).collect())
    }

    /// `rows` rows of a column of the scan that a stripe does not have.
    pub fn value_of_missing(&self, at: usize, rows: usize) -> Option<Arc<Vector>> {
        self.missing.get(at).and_then(Option::as_ref).map(|value| constant(value, rows))
    }

    /// The rows of a batch that pass the conditions.
    pub fn passing(&self, mut batch: Batch) -> query::Result<Batch> {
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

/// A chunk whose column chunks are all there.
pub struct ChunkUnit {
    work: Option<Work>,
    shape: Arc<Shape>,
    /// The table's Oid and the stripe's first row number, for errors.
    stripe: (u32, u64),
    /// What may by now tell that none of its rows is wanted.
    late: Option<(Arc<dyn Ranking>, Edge)>,
}

impl ChunkUnit {
    /// What is left to do for a chunk of the stripe with this table and first row number.
    pub const fn new(work: Work, shape: Arc<Shape>, stripe: (u32, u64)) -> Self {
        Self { work: Some(work), shape, stripe, late: None }
    }

    /// The same, of which nothing is wanted once its edge is past the bound.
    pub fn unless(self, late: Option<(Arc<dyn Ranking>, Edge)>) -> Self {
        Self { late, ..self }
    }
}

impl Unit for ChunkUnit {
    fn next(&mut self) -> query::Result<Step> {
        let Some(work) = self.work.take() else { return Ok(Step::Done) };
        if self.late.as_ref().is_some_and(|(bound, edge)| bound.is_past(edge)) {
            return Ok(Step::Done);
        }
        let mut counters = Counters::default();
        let absent = || vector::Error::InvalidInput("a column chunk was not read".into());
        let loaded = work.run_with(&self.shape, &mut |_| Err(absent()), &mut counters);
        let loaded = loaded.map_err(|problem| match problem {
            query::Error::Data(problem) => problem.in_stripe(self.stripe.0, self.stripe.1).into(),
            other => other,
        })?;
        let tally = &self.shape.tally;
        tally.rows_filtered.fetch_add(counters.rows_filtered, Ordering::Relaxed);
        tally.bytes_decoded.fetch_add(counters.bytes_decoded, Ordering::Relaxed);
        let Some(loaded) = loaded else { return Ok(Step::Done) };
        if !loaded.checks.is_empty() {
            return Err(query::Error::Decline("a condition has to be checked row by row"));
        }
        let batch = self.shape.batch(loaded.sources, loaded.further, &loaded.selection);
        tally.rows.fetch_add(batch.rows as u64, Ordering::Relaxed);
        Ok(Step::Batch(batch))
    }
}
