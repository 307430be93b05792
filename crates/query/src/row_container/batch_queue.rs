//! Batches that wait to be read in the order they came: in memory, or all in a temporary file once there is too much of them.
//!
//! Everything is put in before the first batch is taken out.

use std::collections::VecDeque;

use vector::LogicalType;

use super::BatchFile;
use crate::{Batch, Result, SharedTempFiles};

/// The batches.
pub struct BatchQueue {
    types: Vec<LogicalType>,
    /// Bytes that it may take; without temporary files it may take more.
    memory: usize,
    files: Option<SharedTempFiles>,
    batches: VecDeque<Batch>,
    bytes: usize,
    file: Option<BatchFile>,
}

impl BatchQueue {
    /// No batches of these columns.
    pub fn new(types: &[LogicalType], memory: usize, files: Option<SharedTempFiles>) -> Self {
        Self { types: types.to_vec(), memory, files, batches: VecDeque::new(), bytes: 0, file: None }
    }

    /// Puts in a batch.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        if let Some(file) = &mut self.file {
            return file.write(&batch.columns, batch.rows);
        }
        self.bytes += batch.columns.iter().map(|column| column.bytes()).sum::<usize>();
        self.batches.push_back(batch);
        if self.bytes > self.memory
            && let Some(files) = &self.files
        {
            let mut file = BatchFile::new(&self.types, files)?;
            for batch in self.batches.drain(..) {
                file.write(&batch.columns, batch.rows)?;
            }
            self.file = Some(file);
        }
        Ok(())
    }

    /// Memory held by what was put in, in bytes.
    pub fn bytes(&self) -> usize {
        if self.file.is_some() { 0 } else { self.bytes }
    }

    /// Takes out the next batch.
    pub fn read(&mut self) -> Result<Option<Batch>> {
        match &mut self.file {
            Some(file) => file.read(),
            None => Ok(self.batches.pop_front()),
        }
    }
}
