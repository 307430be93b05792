//! What flows between operators.

use std::sync::Arc;

use crate::Vector;

/// Rows of the batches that operators make themselves.
pub const BATCH_ROWS: usize = 2_048;

/// Some rows: vectors of one length. Columns are shared, because projections and joins pass most of them on
/// as they are. They may be encoded (`Constant`, `Dictionary`, `Runs`). An operator that cannot use that
/// flattens them.
///
/// There is no selection: a filter compacts what it keeps, and a scan decodes only the rows that survive.
/// Operators that make batches make them of `BATCH_ROWS`; a scan's batch is what is left of one chunk.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Length of every column. It is the only thing known if there is no column.
    pub rows: usize,
    /// The columns.
    pub columns: Vec<Arc<Vector>>,
}

impl Batch {
    /// A batch of these columns, all of `rows` rows.
    pub const fn new(rows: usize, columns: Vec<Arc<Vector>>) -> Self {
        Self { rows, columns }
    }

    /// The rows at these positions, in that order.
    #[must_use]
    pub fn take(&self, positions: &[u32]) -> Self {
        Self {
            rows: positions.len(),
            columns: self.columns.iter().map(|column| Arc::new(column.take(positions))).collect(),
        }
    }

    /// Rows `start..start + len`.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Self {
        if start == 0 && len >= self.rows {
            return self.clone();
        }
        let end = (start + len).min(self.rows);
        Self {
            rows: end - start.min(end),
            columns: self.columns.iter().map(|column| Arc::new(column.slice(start, len))).collect(),
        }
    }
}
