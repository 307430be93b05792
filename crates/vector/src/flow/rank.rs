//! What a sort that wants only the first rows tells a source, so that the source need not read the others.

use std::cmp::Ordering;

use crate::Scalar;

/// How early, in the order of a sort's first key, the first of some rows can come.
#[derive(Debug, Clone, PartialEq)]
pub enum Edge {
    /// Not known.
    Anywhere,
    /// Where NULLs come.
    Null,
    /// Where this value comes, at the earliest.
    Value(Scalar),
}

/// What is known of some rows' values in a column.
#[derive(Debug, Clone, Copy)]
pub struct Extent<'a> {
    /// Some may be NULL.
    pub nulls: bool,
    /// Some may be not NULL.
    pub values: bool,
    /// No value is less, where known.
    pub least: Option<&'a Scalar>,
    /// No value is greater, where known.
    pub greatest: Option<&'a Scalar>,
}

/// Which rows a sort still wants: those that come first by its first key. The answer gets narrower while the
/// sort sees rows.
pub trait Ranking: Send + Sync {
    /// How early the first of some rows can come.
    fn edge(&self, extent: Extent<'_>) -> Edge;

    /// Which of two edges comes first. Rows that may be anywhere come before all others, because they have to
    /// be read in any case.
    fn compare(&self, a: &Edge, b: &Edge) -> Ordering;

    /// Whether no row that comes at this edge or after it is wanted any more.
    fn is_past(&self, edge: &Edge) -> bool;
}
