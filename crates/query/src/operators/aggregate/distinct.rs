//! DISTINCT: keeps values that came before from an accumulator.
//!
//! Rows of group and arguments are numbered; only those that are new go on to the accumulator. Equality is
//! that of grouping. When the rows seen have outgrown their memory, no further rows are kept. Rows that are
//! not among the kept ones go to temporary files by their hash. At the end each file is read with an empty
//! memory.

use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use super::Spec;
use super::accumulate::{Accumulator, Groups, same};
use crate::row_container::{ABSENT, BatchFile, Numbering, Partitions};
use crate::{AggregateFunction, BATCH_ROWS, Batch, Error, Result, SharedTempFiles, interrupt};

/// An accumulator that sees equal arguments of a group once.
pub struct Distinct {
    inner: Box<dyn Accumulator>,
    /// Of group number (where there are keys) and arguments.
    types: Vec<LogicalType>,
    seen: Numbering,
    keyed: bool,
    numbers: Vec<u32>,
    /// Bytes that the rows seen may take, and bytes that their memo may take.
    memory: usize,
    memo: usize,
    files: Option<SharedTempFiles>,
    level: u32,
    spilled: Option<Partitions>,
}

impl Distinct {
    /// Puts DISTINCT in front of this accumulator, whose arguments have these types.
    pub fn new(inner: Box<dyn Accumulator>, types: &[LogicalType], spec: &Spec) -> Self {
        let keyed = !spec.keys.is_empty();
        let group = keyed.then_some(LogicalType::Int32);
        let types: Vec<_> = group.into_iter().chain(types.iter().copied()).collect();
        // Half of the memory is for the sorters of all aggregates.
        let sharing = spec
            .aggregates
            .iter()
            .filter(|a| a.distinct && !a.is_ordered() && a.function != AggregateFunction::CountRows);
        let memory = spec.memory / spec.threads / 2 / sharing.count().max(1);
        let memo = memory / 4;
        Self {
            inner,
            seen: Numbering::new(&types, memo),
            types,
            keyed,
            numbers: Vec::new(),
            memory,
            memo,
            files: spec.files.clone(),
            level: 0,
            spilled: None,
        }
    }

    /// Takes rows of group number (where there are keys) and arguments.
    fn take(&mut self, columns: &[Arc<Vector>], rows: usize) -> Result<()> {
        self.seen.number(columns, rows, &mut self.numbers)?;
        if self.seen.is_frozen() {
            let absent: Vec<u32> =
                (0u32..).zip(&self.numbers).filter(|(_, n)| **n == ABSENT).map(|(row, _)| row).collect();
            if let (false, Some(files)) = (absent.is_empty(), &self.files) {
                let columns: Vec<_> = columns.iter().map(|column| Arc::new(column.take(&absent))).collect();
                let level = self.level;
                let spilled = self.spilled.get_or_insert_with(|| Partitions::new(level));
                spilled.write(&columns, &columns, absent.len(), files)?;
            }
            return Ok(());
        }
        let fresh = self.seen.fresh();
        if !fresh.is_empty() {
            let columns: Vec<_> = columns.iter().map(|column| Arc::new(column.take(fresh))).collect();
            let rows = fresh.len();
            self.pass(&columns, rows)?;
            if self.seen.bytes() > self.memory {
                if self.files.is_none() {
                    return Err(Error::Decline("distinct values past the memory, and no temporary files"));
                }
                self.seen.freeze();
            }
        }
        Ok(())
    }

    fn pass(&mut self, columns: &[Arc<Vector>], rows: usize) -> Result<()> {
        match split(columns, self.keyed) {
            (Some(groups), arguments) => self.inner.update(arguments, rows, Groups::Numbers(&groups)),
            (None, arguments) => self.inner.update(arguments, rows, Groups::One),
        }
    }

    /// As `take`, for rows of another thread's groups.
    fn take_mapped(&mut self, batch: &Batch, to: &[u32]) -> Result<()> {
        let (groups, arguments) = split(&batch.columns, self.keyed);
        let Some(groups) = groups else { return self.take(&batch.columns, batch.rows) };
        let groups: Vec<u32> = groups.iter().map(|&group| to[group as usize]).collect();
        self.update(arguments, batch.rows, Groups::Numbers(&groups))
    }
}

/// Group numbers and arguments.
fn split(columns: &[Arc<Vector>], keyed: bool) -> (Option<Vec<u32>>, &[Arc<Vector>]) {
    match columns.split_first() {
        Some((groups, arguments)) if keyed => match &groups.values {
            Values::Int32(groups) => (Some(groups.iter().map(|&group| group as u32).collect()), arguments),
            _ => (None, arguments),
        },
        _ => (None, columns),
    }
}

impl Accumulator for Distinct {
    fn also(&mut self, function: AggregateFunction) -> bool {
        self.inner.also(function)
    }

    fn grow(&mut self, groups: usize) {
        self.inner.grow(groups);
    }

    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()> {
        let Groups::Numbers(numbers) = groups else { return self.take(arguments, rows) };
        let numbers = numbers.iter().map(|&number| number as i32).collect();
        let mut columns = vec![Arc::new(Vector::new(LogicalType::Int32, Values::Int32(numbers)))];
        columns.extend_from_slice(arguments);
        self.take(&columns, rows)
    }

    fn merge(&mut self, other: &mut dyn Accumulator, _from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        let seen = &mut other.seen;
        seen.seal();
        for start in (0..seen.len()).step_by(BATCH_ROWS) {
            interrupt::check()?;
            let rows = BATCH_ROWS.min(seen.len() - start);
            self.take_mapped(&Batch::new(rows, seen.slice(start, rows)), to)?;
        }
        for (mut file, _) in other.spilled.take().into_iter().flat_map(Partitions::into_files) {
            while let Some(batch) = file.read()? {
                self.take_mapped(&batch, to)?;
            }
        }
        Ok(())
    }

    fn is_divisible(&self) -> bool {
        false
    }

    fn complete(&mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut files: Vec<(BatchFile, u32)> = Vec::new();
        loop {
            files.extend(self.spilled.take().into_iter().flat_map(Partitions::into_files));
            let Some((mut file, level)) = files.pop() else { break };
            self.level = level;
            self.seen = Numbering::new(&self.types, self.memo);
            while let Some(batch) = file.read()? {
                check()?;
                self.take(&batch.columns, batch.rows)?;
            }
        }
        self.inner.complete(check)
    }

    fn finish(&mut self, function: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        self.inner.finish(function, start, len)
    }

    fn bytes(&self) -> usize {
        self.inner.bytes() + self.seen.bytes()
    }
}
