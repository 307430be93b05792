//! A queue of batches, read in the order they came. They are in memory, or all in a temporary file once they
//! are too large.
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
    /// Bytes of a file's page.
    page_bytes: Option<usize>,
    batches: VecDeque<Batch>,
    bytes: usize,
    file: Option<BatchFile>,
}

/// What was put in.
pub enum Queued {
    /// Batches.
    Batches(VecDeque<Batch>),
    /// A file of them.
    File(BatchFile),
}

impl BatchQueue {
    /// No batches of these columns.
    pub fn new(types: &[LogicalType], memory: usize, files: Option<SharedTempFiles>) -> Self {
        let batches = VecDeque::new();
        Self { types: types.to_vec(), memory, files, page_bytes: None, batches, bytes: 0, file: None }
    }

    /// The same with pages of about this many bytes in its file.
    pub fn with_pages(self, bytes: usize) -> Self {
        Self { page_bytes: Some(bytes), ..self }
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
            if let Some(bytes) = self.page_bytes {
                file = file.with_pages(bytes);
            }
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

    /// All batches, for a caller that reads them in an order of its own.
    pub fn into_queued(self) -> Result<Queued> {
        Ok(match self.file {
            Some(mut file) => {
                file.rest()?;
                Queued::File(file)
            }
            None => Queued::Batches(self.batches),
        })
    }

    /// Takes out the next batch.
    pub fn read(&mut self) -> Result<Option<Batch>> {
        match &mut self.file {
            Some(file) => file.read(),
            None => Ok(self.batches.pop_front()),
        }
    }
}
