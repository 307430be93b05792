//! Rows that all have one value: it is not in them, but said of them.

use std::sync::Arc;

use encodings::BlockCodecs;
use stripe::{ColumnChunk, ColumnStatistics, Sketch};
use vector::{Result, Values, Vector};

/// So many rows of a value, which is a vector of one row.
pub fn rows(value: &Vector, rows: usize) -> Vector {
    Vector::new(value.logical, Values::Constant(Box::new(value.clone()), rows))
}

/// Statistics of so many rows of a value.
pub fn statistics(value: &Vector, rows: u32) -> Option<ColumnStatistics> {
    let one = stripe::collect(value, 0..1, &mut Sketch::default()).ok()?;
    let null_count = if one.null_count > 0 { rows } else { 0 };
    let side_rows = if one.side_rows > 0 { rows } else { 0 };
    // A sum of them all is not worth to be known.
    Some(ColumnStatistics { rows, null_count, side_rows, sum: None, distinct: Some(1), ..one })
}

/// A chunk of such rows.
pub struct SameChunk {
    pub value: Arc<Vector>,
    pub rows: u32,
}

impl ColumnChunk for SameChunk {
    fn rows(&self) -> u32 {
        self.rows
    }

    fn stored_bytes(&self) -> u64 {
        0
    }

    fn decode(&self, _codecs: &dyn BlockCodecs) -> Result<Vector> {
        Ok(rows(&self.value, self.rows as usize))
    }

    fn take(&self, taken: &[u32], _codecs: &dyn BlockCodecs) -> Result<Vector> {
        Ok(rows(&self.value, taken.len()))
    }
}
