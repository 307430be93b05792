//! Merging sorted runs from temporary files.
//!
//! A heap of cursors, one for each run, gives the next row. The picked rows are copied run by run and then
//! put in order, so that copying goes by column. Among equal rows the rows of an earlier run come first. If
//! there are more runs than `FAN_IN`, some of them are first merged into one.

use std::cmp::Ordering;
use std::sync::Arc;

use vector::LogicalType;

use super::order::{Key, compare_vectors};
use crate::row_container::{BatchFile, ValueColumn};
use crate::{BATCH_ROWS, Batch, Result, SharedTempFiles};

/// Runs merged at once: each holds a batch in memory.
pub const FAN_IN: usize = 32;

/// Runs that are being merged.
pub struct Merge {
    types: Vec<LogicalType>,
    keys: Vec<Key>,
    cursors: Vec<Cursor>,
    /// Cursors that have rows; the first one's is the next.
    heap: Vec<usize>,
}

struct Cursor {
    run: BatchFile,
    batch: Batch,
    row: usize,
    /// Rows picked since the last output.
    picked: Vec<u32>,
}

impl Merge {
    /// Starts merging.
    pub fn new(
        types: &[LogicalType],
        keys: &[Key],
        mut runs: Vec<BatchFile>,
        files: &SharedTempFiles,
    ) -> Result<Self> {
        while runs.len() > FAN_IN {
            // The last ones are the shortest; neighbours, so that equal rows stay in the order they came.
            let some = (runs.len() - FAN_IN + 1).min(FAN_IN);
            let last = runs.split_off(runs.len() - some);
            runs.push(Self::into_run(types, keys, last, files)?);
        }
        Self::start(types, keys, runs)
    }

    /// One run of several.
    pub fn into_run(
        types: &[LogicalType],
        keys: &[Key],
        runs: Vec<BatchFile>,
        files: &SharedTempFiles,
    ) -> Result<BatchFile> {
        let mut merge = Self::start(types, keys, runs)?;
        let mut run = BatchFile::new(types, files)?;
        while let Some(batch) = merge.next_batch()? {
            run.write(&batch.columns, batch.rows)?;
        }
        run.rest()?;
        Ok(run)
    }

    fn start(types: &[LogicalType], keys: &[Key], runs: Vec<BatchFile>) -> Result<Self> {
        let mut merge =
            Self { types: types.to_vec(), keys: keys.to_vec(), cursors: Vec::new(), heap: Vec::new() };
        for mut run in runs {
            if let Some(batch) = run.read()? {
                merge.heap.push(merge.cursors.len());
                merge.cursors.push(Cursor { run, batch, row: 0, picked: Vec::new() });
            }
        }
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sink(at);
        }
        Ok(merge)
    }

    fn before(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.cursors[a], &self.cursors[b]);
        match compare_vectors(&self.keys, (&x.batch.columns, x.row), (&y.batch.columns, y.row)) {
            Ordering::Equal => a < b,
            order => order.is_lt(),
        }
    }

    /// Restores the heap below a place whose row grew.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// The next rows in order.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        let mut order: Vec<(usize, u32)> = Vec::with_capacity(BATCH_ROWS);
        while let Some(&first) = self.heap.first() {
            let cursor = &mut self.cursors[first];
            order.push((first, cursor.picked.len() as u32));
            cursor.picked.push(cursor.row as u32);
            cursor.row += 1;
            let used_up = cursor.row == cursor.batch.rows;
            if used_up {
                let output = self.gather(&order)?;
                let cursor = &mut self.cursors[first];
                match cursor.run.read()? {
                    Some(batch) => (cursor.batch, cursor.row) = (batch, 0),
                    None => {
                        self.heap.swap_remove(0);
                    }
                }
                self.sink(0);
                return Ok(Some(output));
            }
            self.sink(0);
            if order.len() == BATCH_ROWS {
                break;
            }
        }
        if order.is_empty() { Ok(None) } else { self.gather(&order).map(Some) }
    }

    /// The rows picked, in the order they were.
    fn gather(&mut self, order: &[(usize, u32)]) -> Result<Batch> {
        let mut columns: Vec<_> = self.types.iter().map(|&logical| ValueColumn::new(logical)).collect();
        let mut starts = vec![0; self.cursors.len()];
        let mut rows = 0;
        for (cursor, start) in self.cursors.iter_mut().zip(&mut starts) {
            *start = rows;
            for (kept, column) in columns.iter_mut().zip(&cursor.batch.columns) {
                kept.append(column, &cursor.picked)?;
            }
            rows += cursor.picked.len() as u32;
            cursor.picked.clear();
        }
        columns.iter_mut().for_each(ValueColumn::seal);
        let positions: Vec<u32> = order.iter().map(|&(cursor, at)| starts[cursor] + at).collect();
        let columns = columns.iter().map(|column| Arc::new(column.take(&positions))).collect();
        Ok(Batch::new(positions.len(), columns))
    }
}
