//! Giving out groups: those of a finished table, then those of the files it had no room for.
//!
//! Used by the sink for one table, on the main thread, and by each unit of a partition.

use super::Spec;
use super::table::Table;
use crate::row_container::BatchFile;
use crate::{BATCH_ROWS, Batch, Error, Result};

/// Gives out the groups of a table.
pub struct Output {
    table: Table,
    /// Rows that the table has not taken yet.
    waiting: Vec<Batch>,
    /// Rows that are read back into the table.
    reading: Option<BatchFile>,
    complete: bool,
    next: usize,
    /// Files of rows for further tables, and the level by which each table spreads its rows.
    files: Vec<(BatchFile, u32)>,
    /// Bytes that further tables may take.
    memory: usize,
}

impl Output {
    /// The groups of a table that all rows were pushed into. Tables of the rows for which it had no room may
    /// take this many bytes.
    pub const fn new(table: Table, memory: usize) -> Self {
        Self {
            table,
            waiting: Vec::new(),
            reading: None,
            complete: false,
            next: 0,
            files: Vec::new(),
            memory,
        }
    }

    /// The same once these rows were pushed, too.
    pub fn after(self, waiting: Vec<Batch>) -> Self {
        Self { waiting, ..self }
    }

    /// The next groups, None at the end. After some work without groups an empty batch comes, so that the
    /// caller can check whether to go on.
    pub fn step(&mut self, spec: &Spec, check: &mut dyn FnMut() -> Result<()>) -> Result<Option<Batch>> {
        if !self.complete {
            if let Some(batch) = self.waiting.pop() {
                self.table.push(&batch)?;
                return Ok(Some(Batch::default()));
            }
            if let Some(file) = &mut self.reading {
                match file.read()? {
                    Some(batch) => self.table.push(&batch)?,
                    None => self.reading = None,
                }
                return Ok(Some(Batch::default()));
            }
            self.reading = self.table.take_again();
            if self.reading.is_some() {
                return Ok(Some(Batch::default()));
            }
            self.table.complete(check)?;
            self.complete = true;
        }
        if self.next == self.table.groups() {
            self.files.extend(self.table.take_spilled());
            let Some((file, level)) = self.files.pop() else { return Ok(None) };
            self.table = Table::new(spec, level, self.memory)?;
            (self.reading, self.complete, self.next) = (Some(file), false, 0);
            return Ok(Some(Batch::default()));
        }
        // Averages of very different magnitude may have no common scale. Fewer are given out at a time then.
        let mut rows = BATCH_ROWS.min(self.table.groups() - self.next);
        let batch = loop {
            match self.table.output(self.next, rows) {
                Err(Error::Decline(_)) if rows > 1 => rows = rows.div_ceil(4),
                output => break output?,
            }
        };
        self.next += rows;
        Ok(Some(batch))
    }
}
