//! What a scan does with each of its chunks: the columns it wants, the conditions it asks, what it makes of a
//! column beside.
//!
//! Made at each start of a scan (`cold`), read by `chunk` and `work` for every chunk. Invariant: nothing of
//! it changes from chunk to chunk, so threads share it.

use std::sync::Arc;

use stripe::OwnedChunk;
use vector::{LogicalType, Predicate, Result, Scalar, Selection, Vector};

use super::begin::Column;
use super::clauses::Clause;

/// Makes a further column of one that the scan reads.
pub trait Derive: Send + Sync {
    /// Its values for the selected rows of a chunk.
    fn of_chunk(&self, chunk: &OwnedChunk, selection: &Selection) -> Result<Vector>;
    /// Its values for the rows of a vector.
    fn of_vector(&self, values: Vector) -> Result<Vector>;
}

/// Further columns: position of the one they are made of, and how.
pub type Further = Vec<(usize, Arc<dyn Derive>)>;

/// Columns, by position, whose values can tell that a row is of no use.
pub type Members = Vec<(usize, Arc<dyn query::Members>)>;

/// What the steps need to know of the scan: the same for all its chunks, from start to start.
pub struct Steps {
    pub(super) columns: Vec<StepColumn>,
    pub(super) clauses: Vec<StepClause>,
    pub(super) further: Further,
    pub(super) members: Members,
}

pub(super) struct StepColumn {
    pub(super) index: usize,
    /// What a stripe must say it holds for predicates to apply.
    pub(super) logical: LogicalType,
    /// Its values are looked at after the steps.
    pub(super) wanted: bool,
}

pub(super) struct StepClause {
    pub(super) predicate: Predicate,
    /// Attributes that the predicate reads.
    pub(super) columns: Vec<usize>,
    /// Attributes that the expression reads.
    pub(super) reads: Vec<usize>,
    pub(super) native: bool,
    pub(super) needs_check: bool,
    /// About values that are looked for one by one afterwards (`Steps::members`): of use to prune, but a
    /// row's value is looked at only once.
    pub(super) prunes_only: bool,
}

/// Whether looking a value up is faster than asking a narrowing predicate of it: bounds that most values lie
/// between, and lists of integers, which are compared one by one.
fn is_slow(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::In { values, .. } => values.len() > 4 && matches!(values.first(), Some(Scalar::Int(_))),
        _ => matches!(predicate, Predicate::And(_)),
    }
}

impl Steps {
    /// For a scan whose clauses have been resolved.
    pub fn of(columns: &[Column], clauses: &[Clause], further: &Further, members: &Members) -> Arc<Self> {
        let column = |column: &Column| StepColumn {
            index: column.index,
            logical: column.logical,
            wanted: column.in_rows || column.in_checks,
        };
        let asked = |index: &usize| {
            members.iter().any(|(at, _)| columns.get(*at).is_some_and(|column| column.index == *index))
        };
        let clause = |clause: &Clause| StepClause {
            prunes_only: clause.is_narrowing()
                && is_slow(&clause.predicate)
                && clause.columns.iter().all(asked),
            predicate: clause.predicate.clone(),
            columns: clause.columns.clone(),
            reads: clause.reads.clone(),
            native: clause.native,
            needs_check: clause.needs_check(),
        };
        Arc::new(Self {
            columns: columns.iter().map(column).collect(),
            clauses: clauses.iter().map(clause).collect(),
            further: further.clone(),
            members: members.clone(),
        })
    }

    /// Where the attribute is among the columns.
    pub(super) fn place(&self, index: usize) -> Option<usize> {
        self.columns.iter().position(|column| column.index == index)
    }
}
