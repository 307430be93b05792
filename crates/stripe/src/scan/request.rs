//! What a reader of vectors wants of a scan, and what it gets.
//!
//! A host makes a request when a plan starts. With it the host hands on what operators say to their source
//! before the first row (`vector::flow::Source`).

use std::sync::Arc;

use vector::Predicate;
use vector::flow::{Batch, Members, Ranking, RowFilter, Summary, SummaryNeed};

use super::batch_layout::ChunkUnit;
use super::chunk::LoadedChunk;
use super::plan::{MemberColumns, ScanClause};
use super::ranked::Rank;

/// What comes next.
pub enum VectorPiece {
    /// Rows that passed everything.
    Rows(Batch),
    /// Rows that are known without looking at them.
    Known(Summary),
    /// A chunk that any thread can turn into rows.
    Unit(ChunkUnit),
    /// Rows that the host has to look at: some clause has to be checked row by row, or a column has another
    /// type than the stripe says. The layout's conditions have not been checked.
    Unchecked(LoadedChunk),
}

/// What the caller wants of a scan.
#[derive(Default)]
pub struct VectorRequest {
    /// Positions among the columns of the scan, in the order of the batch's columns.
    columns: Vec<usize>,
    /// What has to be known of each of them so that a summary is enough. None if rows are needed.
    summaries: Option<Vec<SummaryNeed>>,
    /// Rows that do not pass these need not come.
    narrowed: Vec<Predicate>,
    /// Rows that do not pass these must not come.
    conditions: Vec<Arc<dyn RowFilter>>,
    /// A condition was not taken, so no later condition may be taken.
    refused: bool,
    /// Columns whose values can tell that a row is of no use.
    members: MemberColumns,
    /// How a sort wants rows.
    rank: Option<Rank>,
    /// Chunks are handed out whole, for other threads to filter and decode.
    threads: bool,
}

impl VectorRequest {
    /// These columns of a scan, by position. `threads`: chunks may be worked on elsewhere.
    pub fn new(columns: Vec<usize>, threads: bool) -> Self {
        Self { columns, threads, ..Self::default() }
    }

    /// Positions among the columns of the scan, in the order of the batch's columns.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// What has to be TRUE of the rows that come, in this order.
    pub fn conditions(&self) -> &[Arc<dyn RowFilter>] {
        &self.conditions
    }

    /// Columns whose values can tell that a row is of no use.
    pub const fn members(&self) -> &MemberColumns {
        &self.members
    }

    /// How a sort wants rows.
    pub const fn rank(&self) -> Option<&Rank> {
        self.rank.as_ref()
    }

    /// Clauses that leave out rows which are of no use to anybody.
    pub fn narrowing(&self) -> impl Iterator<Item = ScanClause> + '_ {
        self.narrowed.iter().cloned().map(ScanClause::narrowing)
    }

    pub(super) const fn threads(&self) -> bool {
        self.threads
    }

    pub(super) fn summaries(&self) -> Option<&[SummaryNeed]> {
        self.summaries.as_deref()
    }

    /// From now on a summary that knows these things may come instead of rows.
    pub fn allow_summaries(&mut self, needs: &[SummaryNeed]) {
        self.summaries = Some(needs.to_vec());
    }

    /// Rows whose value in this column of the batch is not among `members` need not come. False: they come.
    pub fn narrow_members(&mut self, column: usize, members: &Arc<dyn Members>) -> bool {
        let place = self.columns.get(column).copied();
        self.members.extend(place.map(|at| (at, Arc::clone(members))));
        place.is_some()
    }

    /// Rows past what `ranking` wants by this column of the batch need not come. Rows that can come first are
    /// wanted first. False: `ranking` is not asked.
    pub fn rank_by(&mut self, column: usize, ranking: &Arc<dyn Ranking>) -> bool {
        let place = self.columns.get(column).copied();
        self.rank = place.map(|column| Rank { column, ranking: Arc::clone(ranking) });
        place.is_some()
    }

    /// Rows for which this is not TRUE do not come. False: they come.
    pub fn filter(&mut self, condition: &Arc<dyn RowFilter>) -> bool {
        // Columns past those of the scan are made after all others.
        let reads = condition.columns();
        self.refused |= reads.is_empty() || reads.iter().any(|&column| column >= self.columns.len());
        if !self.refused {
            self.conditions.push(Arc::clone(condition));
        }
        !self.refused
    }

    /// Rows for which this is not TRUE need not come. Columns are positions in the batch. `index` gives the
    /// stripe's column for a position among those of the scan.
    pub fn narrow(&mut self, mut predicate: Predicate, index: &dyn Fn(usize) -> Option<usize>) {
        if predicate.rename(&|at| self.columns.get(at).and_then(|&at| index(at))) {
            self.narrowed.push(predicate);
        }
    }
}
