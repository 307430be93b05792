//! Numbers for rows by value: a `RowSet` with a memo for keys of few values in front of it. What grouping and DISTINCT use.

use std::sync::Arc;

use vector::{LogicalType, Vector};

use super::front::Front;
use super::row_set::RowSet;
use crate::Result;

/// A set of rows and the memo in front of it.
#[derive(Debug)]
pub struct Numbering {
    set: RowSet,
    /// None where the keys have too many values, or are of types, for which it does not pay.
    front: Option<Front>,
    missed: Vec<u32>,
    fresh: Vec<u32>,
}

impl Numbering {
    /// An empty numbering of rows of these types; the memo takes at most so many bytes.
    pub fn new(types: &[LogicalType], memo: usize) -> Self {
        Self {
            set: RowSet::new(types),
            front: Front::new(types, memo),
            missed: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// The rows.
    pub const fn set(&self) -> &RowSet {
        &self.set
    }

    /// The rows, to freeze or seal them.
    pub const fn set_mut(&mut self) -> &mut RowSet {
        &mut self.set
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.set.bytes() + self.front.as_ref().map_or(0, Front::bytes)
    }

    /// Positions, in the last look-up, of the rows that were new then.
    pub fn fresh(&self) -> &[u32] {
        &self.fresh
    }

    /// The number of each row, as `RowSet::number`.
    ///
    /// # Errors
    /// As `RowSet::number`.
    pub fn number(&mut self, columns: &[Arc<Vector>], rows: usize, numbers: &mut Vec<u32>) -> Result<()> {
        self.fresh.clear();
        if let Some(front) = &mut self.front {
            if front.recall(columns, rows, numbers, &mut self.missed)? {
                if !self.missed.is_empty() {
                    let columns = columns.iter().map(|column| Arc::new(column.take(&self.missed)));
                    let mut found = Vec::new();
                    self.set.number(&columns.collect::<Vec<_>>(), self.missed.len(), &mut found)?;
                    self.fresh.extend(self.set.newest().iter().map(|&at| self.missed[at as usize]));
                    front.remember(&self.missed, &found, numbers);
                }
                return Ok(());
            }
            self.front = None;
        }
        self.set.number(columns, rows, numbers)?;
        self.fresh.extend_from_slice(self.set.newest());
        Ok(())
    }
}
