//! Rows that are collected, put in order and given back in batches. Used by Sort, by ordered aggregates and by windows.

use std::sync::Arc;

use vector::{LogicalType, Vector};

use super::order::{Key, order};
use crate::row_container::{ValueColumn, flat};
use crate::{BATCH_ROWS, Batch, Error, Result};

/// The rows.
pub struct SortedRows {
    types: Vec<LogicalType>,
    keys: Vec<Key>,
    /// Rows wanted at the end.
    limit: usize,
    columns: Vec<ValueColumn>,
    rows: usize,
    /// Once sorted: positions in order, and how many were given back.
    order: Vec<u32>,
    given: usize,
}

impl SortedRows {
    /// No rows of these types yet.
    pub fn new(types: &[LogicalType], keys: &[Key], limit: Option<usize>) -> Self {
        Self {
            types: types.to_vec(),
            keys: keys.to_vec(),
            limit: limit.unwrap_or(usize::MAX),
            columns: types.iter().map(|&logical| ValueColumn::new(logical)).collect(),
            rows: 0,
            order: Vec::new(),
            given: 0,
        }
    }

    /// Takes rows.
    pub fn push(&mut self, columns: &[Arc<Vector>], rows: usize) -> Result<()> {
        self.append(columns, rows)?;
        if self.rows >= self.limit.saturating_mul(2).max(self.limit.saturating_add(8 * BATCH_ROWS)) {
            self.thin()?;
        }
        Ok(())
    }

    fn append(&mut self, columns: &[Arc<Vector>], rows: usize) -> Result<()> {
        self.rows += rows;
        if u32::try_from(self.rows).is_err() {
            return Err(Error::Decline("more than 4 billion rows to sort"));
        }
        for (kept, column) in self.columns.iter_mut().zip(columns) {
            kept.append_all(&flat(column))?;
        }
        Ok(())
    }

    /// Leaves only the wanted number of rows.
    fn thin(&mut self) -> Result<()> {
        let mut kept = order(&self.keys, &self.columns, self.rows, self.limit)?;
        // In the order they came, so that equal rows stay in it.
        kept.sort_unstable();
        let columns = self.columns.iter().map(|column| Arc::new(column.take(&kept))).collect::<Vec<_>>();
        self.columns = self.types.iter().map(|&logical| ValueColumn::new(logical)).collect();
        self.rows = 0;
        self.append(&columns, kept.len())
    }

    /// Takes over another thread's rows.
    pub fn merge(&mut self, mut other: Self) -> Result<()> {
        other.columns.iter_mut().for_each(ValueColumn::seal);
        for start in (0..other.rows).step_by(BATCH_ROWS) {
            let rows = BATCH_ROWS.min(other.rows - start);
            let columns = other.columns.iter().map(|column| Arc::new(column.slice(start, rows)));
            self.push(&columns.collect::<Vec<_>>(), rows)?;
        }
        Ok(())
    }

    /// All rows are there: puts them in order.
    pub fn sort(&mut self) -> Result<()> {
        self.columns.iter_mut().for_each(ValueColumn::seal);
        self.order = order(&self.keys, &self.columns, self.rows, self.limit)?;
        self.given = 0;
        Ok(())
    }

    /// The next rows in order, at most so many.
    pub fn next(&mut self, rows: usize) -> Result<Option<Batch>> {
        let end = self.order.len().min(self.given + rows);
        let positions = self.order.get(self.given..end).unwrap_or(&[]);
        if positions.is_empty() {
            return Ok(None);
        }
        let columns = self.columns.iter().map(|column| Arc::new(column.take(positions))).collect();
        self.given = end;
        Ok(Some(Batch::new(positions.len(), columns)))
    }
}
