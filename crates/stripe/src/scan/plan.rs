//! What a scan does with each of its chunks: the columns that it wants, the clauses that it asks, and the
//! values that it makes of a column in addition.
//!
//! A host makes the plan at each start of a scan, and `chunk` and `pruned_chunk` read it for every chunk.
//! Columns are those of the stripe. A host whose attributes have other places there maps them first.
//!
//! Invariant: a plan does not change from chunk to chunk, so threads share it.

use std::sync::Arc;

use encodings::BlockCodecs;
use vector::flow::Members;
use vector::{LogicalType, Predicate, Result, Scalar, Selection, Vector};

use crate::OwnedChunk;

/// Makes values of a column that the scan reads, such as what lies at a path of its documents.
pub trait DeriveColumn: Send + Sync {
    /// Its values for the selected rows of a chunk.
    ///
    /// # Errors
    /// `Corrupt` where stored bytes are bad.
    fn of_chunk(&self, chunk: &OwnedChunk, selection: &Selection) -> Result<Vector>;

    /// Its values for the rows of a vector.
    ///
    /// # Errors
    /// As `of_chunk`.
    fn of_vector(&self, values: Vector) -> Result<Vector>;
}

/// Columns that are made of others: the position of the column that each is made of, and how it is made.
pub type DerivedColumns = Vec<(usize, Arc<dyn DeriveColumn>)>;

/// Columns, by position, whose values can tell that a row is of no use.
pub type MemberColumns = Vec<(usize, Arc<dyn Members>)>;

/// A column that the scan looks at.
#[derive(Debug, Clone)]
pub struct ScanColumn {
    /// Its place in the stripe.
    pub index: usize,
    /// The type that a stripe must say it holds. Otherwise predicates do not apply.
    pub logical: LogicalType,
    /// Its values are handed out. Only predicates look at the values of other columns.
    pub wanted: bool,
}

/// A condition on the rows of a scan.
#[derive(Debug, Clone)]
pub struct ScanClause {
    /// TRUE at least where the condition is.
    pub predicate: Predicate,
    /// Columns that the predicate reads.
    pub columns: Vec<usize>,
    /// Columns that the condition reads, which a check of single rows needs.
    pub reads: Vec<usize>,
    /// Nobody else checks the condition.
    pub native: bool,
    /// The predicate says all that the condition says.
    pub exact: bool,
    /// It is not the query's: rows that fail it are of no use to anybody.
    pub narrowing: bool,
}

impl ScanClause {
    /// A condition of the query that its predicate says as a whole, and that nobody else checks.
    pub fn native(predicate: Predicate) -> Self {
        let columns = predicate.columns();
        let reads = columns.clone();
        Self { predicate, columns, reads, native: true, exact: true, narrowing: false }
    }

    /// A condition that is not the query's: rows that fail it are of no use to anybody.
    pub fn narrowing(predicate: Predicate) -> Self {
        let columns = predicate.columns();
        Self { predicate, columns, reads: Vec::new(), native: false, exact: true, narrowing: true }
    }

    /// Rows that pass the predicate still have to pass the condition.
    pub const fn needs_check(&self) -> bool {
        self.native && !self.exact
    }
}

/// What is done with each chunk of a scan, from one start to the next.
pub struct ChunkPlan {
    pub(super) columns: Vec<ScanColumn>,
    pub(super) clauses: Vec<ScanClause>,
    /// Of each clause, whether it is only used to prune. Its values are looked up one by one afterwards
    /// (`members`), and a row's value is to be looked at only once.
    pub(super) prunes_only: Vec<bool>,
    pub(super) derived: DerivedColumns,
    pub(super) members: MemberColumns,
    pub(super) codecs: &'static dyn BlockCodecs,
}

impl ChunkPlan {
    /// A plan for a scan of these columns that gives the rows that pass all clauses. Positions in `derived`
    /// and `members` are among `columns`.
    pub fn new(
        columns: Vec<ScanColumn>,
        clauses: Vec<ScanClause>,
        derived: DerivedColumns,
        members: MemberColumns,
        codecs: &'static dyn BlockCodecs,
    ) -> Self {
        let asked = |index: &usize| {
            members.iter().any(|(at, _)| columns.get(*at).is_some_and(|column| column.index == *index))
        };
        let prunes_only = |clause: &ScanClause| {
            clause.narrowing && is_slow(&clause.predicate) && clause.columns.iter().all(asked)
        };
        let prunes_only = clauses.iter().map(prunes_only).collect();
        Self { columns, clauses, prunes_only, derived, members, codecs }
    }

    /// The columns of the scan.
    pub fn columns(&self) -> &[ScanColumn] {
        &self.columns
    }

    /// The clauses of the scan.
    pub fn clauses(&self) -> &[ScanClause] {
        &self.clauses
    }

    /// Whether a scan needs nothing but the number of rows.
    pub fn only_counts(&self) -> bool {
        self.columns.is_empty() && self.clauses.is_empty()
    }

    /// The positions of columns that a chunk needs if rows of it pass the clauses at the positions `asked`.
    pub(super) fn needed_columns(&self, asked: &[usize]) -> Vec<usize> {
        let filtering = self.filtering_columns(asked);
        let needed = |at: &usize| {
            self.columns.get(*at).is_some_and(|column| column.wanted)
                || self.derived.iter().any(|(of, _)| of == at)
                || filtering.contains(at)
        };
        (0..self.columns.len()).filter(needed).collect()
    }

    /// Those of them that tell which rows pass.
    pub(super) fn filtering_columns(&self, asked: &[usize]) -> Vec<usize> {
        let filters = |index: usize| {
            let mut clauses = asked.iter().filter_map(|&at| self.clauses.get(at));
            clauses.any(|clause| clause.columns.contains(&index))
        };
        let filtering = |at: &usize| {
            self.members.iter().any(|(of, _)| of == at)
                || self.columns.get(*at).is_some_and(|column| filters(column.index))
        };
        (0..self.columns.len()).filter(filtering).collect()
    }

    /// Where a column of the stripe is among those of the scan.
    pub(super) fn place(&self, index: usize) -> Option<usize> {
        self.columns.iter().position(|column| column.index == index)
    }
}

/// Whether looking a value up is faster than testing a narrowing predicate. It is for bounds that most values
/// lie between, and for lists of integers, which are compared one by one.
fn is_slow(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::In { values, .. } => values.len() > 4 && matches!(values.first(), Some(Scalar::Int(_))),
        _ => matches!(predicate, Predicate::And(_)),
    }
}
