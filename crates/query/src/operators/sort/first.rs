//! Keeps the first of rows that are equal in some keys, when rows come in order: DISTINCT ON, and DISTINCT of
//! values that an aggregate takes in order.

use std::sync::Arc;

use vector::Vector;

use super::order::{Key, compare_vectors};
use crate::Batch;

/// Leaves out rows that equal the one before them.
pub struct FirstOfEach {
    /// Keys that tell rows apart.
    keys: Vec<Key>,
    /// The last row that was seen.
    last: Option<Batch>,
}

impl FirstOfEach {
    /// By these keys.
    pub const fn new(keys: Vec<Key>) -> Self {
        Self { keys, last: None }
    }

    /// The rows of the next batch, of flat columns, that differ from the one before them.
    pub fn of(&mut self, batch: Batch) -> Batch {
        if batch.rows == 0 {
            return batch;
        }
        let differ = |a: (&[Arc<Vector>], usize), b| compare_vectors(&self.keys, a, b).is_ne();
        let columns = batch.columns.as_slice();
        let first = match &self.last {
            Some(last) => differ((&last.columns, 0), (columns, 0)),
            None => true,
        };
        let rest = (1..batch.rows).filter(|&row| differ((columns, row - 1), (columns, row)));
        let wanted: Vec<u32> = first.then_some(0).into_iter().chain(rest.map(|row| row as u32)).collect();
        self.last = Some(batch.slice(batch.rows - 1, 1));
        if wanted.len() == batch.rows { batch } else { batch.take(&wanted) }
    }
}
